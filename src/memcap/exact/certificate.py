"""The certificate: that these stored weights recall every one of these items, proved in integer arithmetic.

Two things apart.  *Identity*: the weights are the certified ones, by hash of every stored number.  *Recall*: every item
is evaluated from the stored entries by the reference evaluator, strict, with the range proof that makes the float
module compute the same integers.  This path shares no code with the constructions or the fast evaluators.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memcap.errors import ConfigurationError, FormatError, PrecisionError
from memcap.exact.counts import ParameterCount, count
from memcap.exact.engines import Audit
from memcap.exact.evaluate import Progress, evaluate
from memcap.exact.identity import Difference, LayerPrint, differences, network_identity, network_prints
from memcap.exact.inputs import Rows, as_rows
from memcap.exact.network import Network
from memcap.exact.ranges import RangeProof, limit_of, prove
from memcap.exact.seal import CHANGED, FACTS_CHANGED, INTACT, MISSING, STORED, UNSEALED, seal_of
from memcap.version import __version__

CERTIFICATE_VERSION = 2
"""Version of the JSON written by `Certificate.to_json`; version 1 had no seal."""

FastEvaluator = Callable[[Network, Rows], NDArray[np.int64]]

_ALL = 10_000
"""Up to this many items the reference evaluates all of them even when a fast evaluator is given."""


@dataclass(frozen=True)
class Certificate:
    """What was checked and what came out; truthy only when the claim holds.

    The claim: every one of ``items`` items of the data with hash ``data_hash`` is recalled by the network with hash
    ``network_hash``, in exact arithmetic and hence in ``weights``.

    Attributes:
        items: items asked (sequences, or distinct positions of them for a network read per position).
        recalled: items whose label came out exactly.
        wrong_rows: rows (1-based, as in the data) with an item that is not recalled.
        not_labels: items whose output was no label at all; they count as not recalled.
        data_hash, network_hash: what the claim is about.
        weights: the number format, ``float64`` | ``float32`` | ``int64`` | ``exact``.
        evaluator: which evaluator saw how many items.
        range: the range proof.
        parameters: counts of the network.
        bounds: lower bounds to compare with, as given by the caller.
        certified: layer name -> print of the certified network; it locates later changes.
        differences: layers that are not the certified ones (when checked against an earlier certificate).
        data_matches: False when checked against a certificate for other data, None when there was none.
        stored: of the stored certificate that this is, or was checked against: ``intact``, ``unsealed`` (written by an
            earlier memcap, without a hash of itself), ``changed`` or ``missing``; falsy in the last two.
        facts_match: False when checked for a memory whose labels, encoding or method are not the saved ones.
        seconds: time the check took.
        version: memcap version that made it.
    """

    items: int
    recalled: int
    wrong_rows: tuple[int, ...]
    not_labels: int
    data_hash: str
    network_hash: str
    weights: str
    evaluator: dict[str, Any]
    range: RangeProof
    parameters: ParameterCount
    bounds: dict[str, Any] = field(default_factory=dict)
    certified: dict[str, LayerPrint] = field(default_factory=dict)
    differences: tuple[Difference, ...] = ()
    structure_matches: bool = True
    data_matches: bool | None = None
    seconds: float = 0.0
    version: str = __version__
    stored: str = field(default=INTACT, compare=False)
    facts_match: bool = field(default=True, compare=False)

    @property
    def recall_holds(self) -> bool:
        """Every item is recalled."""
        return self.items > 0 and self.recalled == self.items

    @property
    def identity_holds(self) -> bool:
        """The weights are the certified ones, every number; False where no certificate says which those are."""
        return not self.differences and self.structure_matches and self.stored != MISSING

    @property
    def claim_holds(self) -> bool:
        """Recall, identity and range, by the figures in here."""
        return self.recall_holds and not self.differences and self.structure_matches and bool(self.range)

    def __bool__(self) -> bool:
        return self.claim_holds and self.facts_match and self.stored in (INTACT, UNSEALED)

    def __str__(self) -> str:
        recall = f"recall: {self.recalled:,} of {self.items:,} items" + (
            "" if self.recall_holds else f"; not recalled: rows {_some(self.wrong_rows)}"
        )
        if self.stored == MISSING:
            identity = "identity: no certificate is stored beside the weights to compare them with (memcap.certify)"
        elif self.differences:
            identity = "identity: weights differ from the certified ones: " + _some(self.differences)
        elif not self.structure_matches:
            identity = "identity: the network's structure differs from the certified one"
        else:
            identity = f"identity: {self.network_hash[:16]}, every stored number"
        notes = "" if self.stored != CHANGED else f"\ncertificate: {STORED[CHANGED]}"
        notes += "" if self.facts_match else f"\nfacts: {FACTS_CHANGED}"
        return f"{recall}\n{identity}\nrange: {self.range}{notes}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, the content of ``certificate.json``; ``seal`` is a hash of everything else in it."""
        record = {
            "format": "memcap certificate",
            "format_version": CERTIFICATE_VERSION,
            "claim": f"every one of {self.items} items is recalled exactly (strict: the output is unit * label)",
            "holds": self.claim_holds,
            "items": self.items,
            "recalled": self.recalled,
            "wrong_rows": list(self.wrong_rows),
            "not_labels": self.not_labels,
            "data_hash": self.data_hash,
            "network_hash": self.network_hash,
            "weights": self.weights,
            "evaluator": self.evaluator,
            "range": self.range.to_json(),
            "parameters": asdict(self.parameters),
            "bounds": self.bounds,
            "certified": {name: layer.to_json() for name, layer in self.certified.items()},
            "differences": [asdict(d) for d in self.differences],
            "structure_matches": self.structure_matches,
            "data_matches": self.data_matches,
            "seconds": self.seconds,
            "version": self.version,
        }
        return {**record, "seal": seal_of(record)}

    @classmethod
    def from_json(cls, record: Any) -> Certificate:
        """The certificate written by `to_json`.

        Raises:
            FormatError: for another format, a newer version, or a missing or mistyped field.
        """
        if not isinstance(record, dict) or record.get("format") != "memcap certificate":
            raise FormatError("certificate.json: this is not a memcap certificate")
        version = record.get("format_version")
        if not isinstance(version, int) or not 1 <= version <= CERTIFICATE_VERSION:
            raise FormatError(
                f"certificate.json: format version {version!r}, this memcap reads up to {CERTIFICATE_VERSION}; "
                "a newer memcap wrote it"
            )
        try:
            certificate = cls(
                items=int(record["items"]),
                recalled=int(record["recalled"]),
                wrong_rows=tuple(int(r) for r in record["wrong_rows"]),
                not_labels=int(record["not_labels"]),
                data_hash=str(record["data_hash"]),
                network_hash=str(record["network_hash"]),
                weights=str(record["weights"]),
                evaluator=dict(record["evaluator"]),
                range=RangeProof.from_json(record["range"]),
                parameters=ParameterCount(**record["parameters"]),
                bounds=dict(record["bounds"]),
                certified={str(n): LayerPrint.from_json(p) for n, p in record["certified"].items()},
                differences=tuple(Difference(**d) for d in record["differences"]),
                structure_matches=bool(record["structure_matches"]),
                data_matches=record["data_matches"],
                seconds=float(record["seconds"]),
                version=str(record["version"]),
                stored=UNSEALED if version == 1 else INTACT if record.get("seal") == seal_of(record) else CHANGED,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(f"certificate.json: missing or mistyped field ({error})") from None
        if certificate.stored != CHANGED and certificate.claim_holds != record.get("holds"):
            raise FormatError("certificate.json: 'holds' contradicts the figures in the certificate")
        return certificate


def certify_network(
    network: Network,
    rows: Rows,
    wanted: NDArray[np.int64],
    *,
    weights: str,
    data_hash: str,
    row_numbers: Sequence[int] | NDArray[np.int64] | None = None,
    against: Certificate | None = None,
    fast: FastEvaluator | None = None,
    sample: int = 200,
    bounds: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> Certificate:
    """Evaluate every item from the stored weights and say what holds.

    Args:
        network: the stored network.
        rows: token ids (items, length), padded, or keys (items,).
        wanted: the label number of every item, (items,), or (items, length) with -1 where nothing is asked; other
            negative numbers are labels the network cannot give.
        weights: number format whose exact range the proof is for.
        data_hash: content hash of the data the items come from.
        row_numbers: the row in the user's data of every item; 1, 2, 3, ... by default.
        against: an earlier certificate: its prints decide the identity.
        fast: a faster evaluator for exact networks; above 10,000 items it evaluates all and the reference a spread
            sample, which must agree.
        sample: items the reference evaluates beside ``fast``, at least 100.
        bounds: lower bounds to record.
        progress: called as ``progress(done, total, what)``.

    Raises:
        ConfigurationError: for shapes that do not belong together or no item at all.
    """
    started = time.perf_counter()
    array = as_rows(network, rows)
    if len(array) == 0 or len(wanted) != len(array) or (wanted.ndim == 2) != network.per_position:
        raise ConfigurationError(
            f"expected one label for each of at least one item, got rows {array.shape} and labels {wanted.shape}"
        )
    proof = prove(network, weights)  # from the weights alone; where that is not enough, every item is audited
    found, evaluator, audit = _answers(network, array, weights, not proof, fast, sample, progress)
    found = found[:, : wanted.shape[1]] if network.per_position else found
    asked = wanted != -1 if network.per_position else np.ones(len(wanted), dtype=bool)
    right = (found == wanted) & (wanted >= 0)
    lost = np.flatnonzero((asked & ~right).reshape(len(array), -1).any(axis=1))
    numbers = np.arange(1, len(array) + 1) if row_numbers is None else np.asarray(row_numbers)
    prints = network_prints(network)
    certified = against.certified if against is not None else prints
    changed = differences(network, certified) if against is not None else ()
    network_hash = network_identity(network)
    if audit is not None:
        proof = prove(network, weights, audit)
    return Certificate(
        items=int(asked.sum()),
        recalled=int((right & asked).sum()),
        wrong_rows=tuple(int(n) for n in numbers[lost]),
        not_labels=int(((found < 0) & asked).sum()),
        data_hash=data_hash,
        network_hash=network_hash,
        weights=weights,
        evaluator=evaluator,
        range=proof,
        parameters=count(network),
        bounds=bounds or {},
        certified=certified,
        differences=changed,
        structure_matches=against is None or bool(changed) or network_hash == against.network_hash,
        data_matches=None if against is None else against.data_hash == data_hash,
        seconds=round(time.perf_counter() - started, 3),
        stored=INTACT if against is None else against.stored,
    )


def _answers(
    network: Network,
    array: Rows,
    weights: str,
    audited: bool,
    fast: FastEvaluator | None,
    sample: int,
    progress: Progress | None,
) -> tuple[NDArray[np.int64], dict[str, Any], Audit | None]:
    """Labels of every item, who computed them, and the audit of partial sums where one is taken."""
    limit = limit_of(weights)
    if limit is not None:
        audit = Audit(limit) if audited else None
        with contextlib.suppress(PrecisionError):  # changed weights can leave int64: recall is still told, no proof is
            labels = evaluate(network, array, engine="int64", audit=audit, progress=progress)
            return labels, {"name": "reference, int64", "items": len(array), "version": __version__}, audit
    if limit is not None or fast is None or len(array) <= _ALL:
        labels = evaluate(network, array, progress=progress)
        return labels, {"name": "reference, integers", "items": len(array), "version": __version__}, None
    labels = fast(network, array)
    spread = np.unique(np.linspace(0, len(array) - 1, max(sample, 100)).astype(np.int64))
    reference = evaluate(network, array[spread], progress=progress)
    agree = bool(np.array_equal(reference, labels[spread]))
    if not agree:  # believe the reference, where it spoke; everything else counts as not recalled
        labels = np.full_like(labels, -1)
        labels[spread] = reference
    evaluator = {"name": "grouped", "items": len(array), "reference_items": len(spread), "agree": agree}
    return labels, {**evaluator, "version": __version__}, None


def read_certificate(text: str) -> Certificate:
    """The certificate in the JSON ``text``.

    Raises:
        FormatError: if it is truncated or not a certificate.
    """
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise FormatError(
            f"certificate.json: broken at line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except (RecursionError, ValueError) as error:
        raise FormatError(f"certificate.json: not usable JSON ({error})") from None
    return Certificate.from_json(record)


def _some(things: Sequence[object]) -> str:
    shown = ", ".join(str(t) for t in things[:5])
    return shown + (f" and {len(things) - 5} more" if len(things) > 5 else "")
