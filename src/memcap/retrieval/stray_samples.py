"""Training samples under a wrong label (label noise), by count: what they add to a competitor's correlation.

Not here: the fact's own samples, whose count is thinned before (``quadrature.label_count`` at N times the share kept).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.stats import poisson

from memcap.retrieval import quadrature

ROW_NODES = 3  # of how many strays a row holds
MOST_COPIES = 12  # more expected copies than this / 4 are Gaussian


@dataclass(frozen=True)
class Strays:
    """Samples that a label's row holds without being its fact's, one entry a setting of the attention.

    Attributes:
        rows: expected strays of a row, of any token.
        copies: expected strays of a row that are of the queried token: Poisson.
    """

    rows: Float[np.ndarray, " k"]
    copies: Float[np.ndarray, " k"]


def stray_samples(
    samples: float | int,
    vocabulary: int,
    keep: float,
    chance: Float[np.ndarray, " k"],
    mean: Float[np.ndarray, " k"] | float,
) -> Strays | None:
    """Strays of N samples of which the share 1 - ``keep`` carries a random label; None without any.

    Args:
        samples: N.
        vocabulary: V.
        keep: share of labels kept.
        chance: that attention succeeds on the queried token.
        mean: the same over all tokens.
    """
    if keep == 1.0:
        return None
    each = (1 - keep) * samples / vocabulary
    return Strays(each * mean + 0.0 * chance, each * chance / vocabulary)


Components = Float[np.ndarray, "k q n x _"]
Mixture = tuple[Components, Components, Components]


def with_strays(
    mixture: Mixture,
    strays: Strays,
    vocabulary: int,
    variance: Float[np.ndarray, "k q n x"],
    own: Float[np.ndarray, "k q n x"],
) -> Mixture:
    """A competitor's mixture (shares, means, variances) with strays added to each component.

    A row holds Poisson many strays; each adds an overlap of its own (``variance`` is that of the expected number of
    them), and each of the queried token adds that token's whole ``own`` overlap.

    Source: derived here: docs/theory/retrieval.md, "Label noise in the value step".
    """
    shares, means, variances = mixture
    mean = max(float(strays.rows.max()), 1e-300)
    number, number_weight = _poisson(mean)
    flat = (*shares.shape[:-1], -1)
    share = (shares[..., None] * number_weight).reshape(flat)
    centre = (means[..., None] + 0.0 * number).reshape(flat)
    wide = (variances[..., None] + variance[..., None, None] * (number / mean)).reshape(flat)
    rate = strays.copies[:, None, None, None, None]
    if strays.copies.max() > MOST_COPIES / 4:
        return share, centre, wide + rate * own[..., None] ** 2
    # the likeliest number among V - 1 rows has to be in
    most = int(poisson.isf(1e-3 / vocabulary, float(strays.copies.max()))) + 1
    chance = [np.asarray(poisson.pmf(k, rate)) for k in range(most)]
    found = [(share * chance[0], centre - rate * own[..., None], wide)]
    for k in range(1, most + 1):
        here = chance[k] if k < most else np.maximum(1 - np.sum(chance, axis=0), 0.0)
        found.append((shares * here, means + (k - rate) * own[..., None], variances + variance[..., None]))
    joined = [np.concatenate(column, axis=-1) for column in zip(*found, strict=True)]
    return joined[0], joined[1], joined[2]


def _poisson(mean: float) -> quadrature.Rule:
    if mean > 50:
        return np.array([mean]), np.ones(1)
    top = int(poisson.isf(1e-7, mean)) + 1
    number = np.arange(top + 1.0)
    return quadrature.merge(number, poisson.pmf(number, mean), ROW_NODES)
