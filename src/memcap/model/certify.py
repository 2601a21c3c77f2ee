"""Certifying a memory against data, and checking a stored one, by `memcap.exact.certificate`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from memcap.data.sequences import SequenceData
from memcap.errors import ConfigurationError
from memcap.exact.certificate import Certificate, certify_network
from memcap.exact.seal import MISSING
from memcap.model.answering import fast_exact
from memcap.model.memory import Memory

Progress = Callable[[int, int, str], None]


def certify(memory: Memory, data: SequenceData, *, progress: Progress | None = None) -> Certificate:
    """Evaluate every item of ``data`` from the stored weights, in integer arithmetic.

    Args:
        memory: any memory.
        data: the data it was built from (or other data it should recall).
        progress: called as ``progress(done, total, what)``.

    Returns:
        A certificate, truthy only when every item is recalled and the range proof holds.

    Raises:
        DataError: if ``data`` cannot be asked of this memory (another order, longer rows, unknown symbols).
    """
    return _examine(memory, data, None, progress)


def check(memory: Memory, data: SequenceData, *, progress: Progress | None = None) -> Certificate:
    """Check a stored memory against the certificate it carries: identity of the weights and recall, apart.

    What was damaged is read with ``memcap.load(path, allow_changed=True)``; the result then names layer and entry, as
    ``memcap check`` does.

    Args:
        memory: a stored memory, with its certificate.
        data: what it should recall.
        progress: called as ``progress(done, total, what)``.

    Returns:
        A certificate, truthy only when weights, facts and certificate are the stored ones and every item is recalled.
        ``differences`` names the changed layers, ``facts_match`` is about labels, encoding and method, ``stored`` about
        the certificate itself.  Without a stored certificate the weights cannot be compared with anything: the result
        is falsy, and recall is told (`certify` makes a certificate).

    Raises:
        DataError: if ``data`` cannot be asked of this memory (another order, longer rows, unknown symbols).
    """
    verdict = _examine(memory, data, memory.certificate, progress)
    stored = MISSING if memory.certificate is None else verdict.stored
    return replace(verdict, stored=stored, facts_match=not memory.facts_changed)


def _examine(memory: Memory, data: SequenceData, against: Certificate | None, progress: Progress | None) -> Certificate:
    given: tuple[object, object] = (memory, data)
    if not (isinstance(given[0], Memory) and isinstance(given[1], SequenceData)):
        kinds = " and ".join(type(thing).__name__ for thing in given)
        raise ConfigurationError(
            f"expected a Memory (memcap.load) and SequenceData (memcap.read_sequences), got {kinds}"
        )
    memory.check_fits(data)
    wanted = memory.wanted(data)
    first = memory.header.first_label
    asked = wanted + first * (wanted >= 0)
    tokens = memory.tokens_of(data)
    network = memory.network
    return certify_network(
        network,
        tokens if network.inputs == ("token", "position") else tokens[:, 0],
        asked if network.per_position else asked[:, 0],
        weights=memory.header.weights,
        data_hash=data.content_hash,
        row_numbers=data.rows,
        against=against,
        fast=fast_exact(network),
        bounds=dict(memory.parameters.bounds),
        progress=progress,
    )
