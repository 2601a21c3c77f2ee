"""The keyed network: store key and label, compare, and answer "unknown" for every key that is not stored.

Sorted keys are cut into chunks of s records; a chunk's word is written by two neurons (a step).  Record by record the
key is compared with the top of the word, its bits are stripped, the label is stripped into a register and added to the
output only if the keys were equal.  Labels are stored as 1..C, so that 0 means unknown and nothing else.

Source: the scheme of Vardi, Yehudai & Shamir (arXiv 2110.03187) and Kajitsuka & Sato (arXiv 2409.17677); the integer
form is derived here, docs/theory/exact.md.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Int

from memcap.construct.construction import Construction
from memcap.construct.memorise import check_items, label_width
from memcap.construct.residual_writer import Neuron, ResidualWriter
from memcap.errors import ConfigurationError
from memcap.exact.network import Network

UNKNOWN = 0
"""What a keyed network returns for a key it does not store; a stored class c is returned as c + 1."""


def record_cost(key_bits: int, label_bits: int) -> int:
    """Parameters per record: strips of 6 per key bit and 8 per label bit, comparison 7, gated copy 3, two clears 4."""
    return 6 * key_bits + 8 * label_bits + 14


def memorise_keyed(
    keys: Int[np.ndarray, " items"],
    labels: Int[np.ndarray, " items"],
    *,
    classes: int,
    max_depth: int | None = None,
    bits: int | None = None,
) -> Construction:
    """The keyed network: class + 1 at ``keys``, `UNKNOWN` (0) at every other key of its range.

    Args:
        keys: (N,) distinct integers in [0, 2^63).
        labels: (N,) class indices in [0, classes).
        classes: number of classes.
        max_depth: most ReLU layers; fewer records per chunk, more chunks.
        bits: largest bit length of any stored weight.

    Raises:
        DataError, PrecisionError: see `memcap.construct.memorise.check_items`.
        ConfigurationError: limits that even one record per chunk does not keep.
    """
    keys, labels = check_items(keys, labels, classes, hashed=False)
    order = np.argsort(keys, kind="stable")
    keys, labels = keys[order], labels[order]
    key_bits = max(1, int(keys[-1]).bit_length())
    label_bits = label_width(classes + 1)
    cost = record_cost(key_bits, label_bits)
    record = key_bits + label_bits
    best = round(math.sqrt(6 * len(keys) / cost))
    options = [s for s in range(max(1, best - 2), best + 3) if s <= len(keys)] or [1]
    records = min(options, key=lambda s: 6 * (-(-len(keys) // s) - 1) + s * cost)
    if max_depth is not None:
        records = min(records, (max_depth - 1) // (record + 1))
    if bits is not None:
        records = min(records, (bits - 1) // record)
    if records < 1:
        wanted = ", ".join(f"{n}={v}" for n, v in (("max_depth", max_depth), ("bits", bits)) if v is not None)
        raise ConfigurationError(
            f"{wanted} is out of reach of the keyed network: one record of {record} bits needs depth {record + 2} and "
            f"weights of {record + 1} bits"
        )
    network = _write(keys, labels + 1, records, key_bits, label_bits)
    structure = {
        "chunks": -(-len(keys) // records),
        "records": records,
        "key_bits": key_bits,
        "label_bits": label_bits,
        "classes": classes,
        "unknown": UNKNOWN,
    }
    return Construction(network, "keyed", "step", "exact", structure, relabelable=True)


def _words(
    keys: Int[np.ndarray, " items"], stored: Int[np.ndarray, " items"], records: int, key_bits: int, label_bits: int
) -> list[int]:
    """One word per chunk, first record on top; the last chunk is padded with key 0 and label 0."""
    words = []
    for start in range(0, len(keys), records):
        word = 0
        for i in range(start, start + records):
            key, label = (int(keys[i]), int(stored[i])) if i < len(keys) else (0, 0)
            word = ((word << key_bits | key) << label_bits) | label
        words.append(word)
    return words


def _write(
    keys: Int[np.ndarray, " items"], stored: Int[np.ndarray, " items"], records: int, key_bits: int, label_bits: int
) -> Network:
    words = _words(keys, stored, records, key_bits, label_bits)
    writer = ResidualWriter(("x", "word", "differs", "label", "out"))
    steps = []
    for j in range(1, len(words)):
        low, high = int(keys[j * records - 1]), int(keys[j * records])
        shift = (low ^ high).bit_length() - 1
        t = high >> shift << shift  # the roundest threshold in (low, high]
        change = words[j] - words[j - 1]
        steps += [Neuron({"x": 1}, 1 - t, {"word": change}), Neuron({"x": 1}, -t, {"word": -change})]
    writer.block("selector", steps)
    position = records * (key_bits + label_bits)
    for r in range(records):
        position -= key_bits
        unit = 1 << position
        # equal keys: 0 <= word - unit x < unit
        compare = [
            Neuron({"x": unit, "word": -1}, 0, {"differs": 1}),
            Neuron({"x": -unit, "word": 1}, 1 - unit, {"differs": 1}),
        ]
        for k in reversed(range(position, position + key_bits)):
            strip = _strip(k, {"word": -(1 << k)})
            writer.block(f"key/{r}", [*strip, *(compare if k == position + key_bits - 1 else [])])
        position -= label_bits
        for k in reversed(range(label_bits)):
            at = position + k
            writer.block(f"label/{r}", _strip(at, {"word": -(1 << at), "label": 1 << k}))
        writer.block(
            f"copy/{r}",
            [
                Neuron({"label": 1, "differs": -(1 << label_bits)}, 0, {"out": 1}),
                Neuron({"label": 1}, 0, {"label": -1}),
                Neuron({"differs": 1}, 0, {"differs": -1}),
            ],
        )
    return writer.finish(
        largest_key=(1 << key_bits) - 1,
        key={"x": 1},
        constant={"word": words[0]},
        read={"out": 1},
        read_bias=0,
        unit=1,
    )


def _strip(k: int, outputs: dict[str, int]) -> list[Neuron]:
    """``[word >= 2^k]``, added to ``outputs`` with the given weights."""
    return [
        Neuron({"word": 1}, 1 - (1 << k), outputs),
        Neuron({"word": 1}, -(1 << k), {name: -weight for name, weight in outputs.items()}),
    ]
