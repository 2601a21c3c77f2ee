"""Small networks written by hand, each with a plain Python function that says what it must answer.

One table for every layer of the tests: evaluator, ranges, identity, torch modules, files, ONNX, plain MLP.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from memcap.exact.affine import Affine
from memcap.exact.network import Attention, Block, Network


@dataclass(frozen=True)
class Golden:
    name: str
    network: Network
    answer: Callable[[object], object]
    rows: np.ndarray
    nonzero: int
    floats: bool = True  # every partial sum fits float32

    @property
    def labels(self):
        return np.array([self.answer(row) for row in self.rows], dtype=np.int64)


def from_entries(outputs, inputs, entries, bias=()):
    return Affine.from_entries(outputs, inputs, entries, bias)


def interpolator():
    """relu(x) - 2 relu(x - 3) + 3 relu(x - 7) ..., one hidden layer: a zigzag with labels 0..3."""
    thresholds, slopes = [0, 3, 6, 8, 10], [1, -2, 2, -2, 2]
    hidden = from_entries(5, 2, [(i, 0, 1) for i in range(5)], [-t for t in thresholds])
    out = from_entries(2, 5, [(1, i, a) for i, a in enumerate(slopes)])
    network = Network(
        ("key",), ((0, 12),), 1, ("x", "y"), from_entries(2, 1, [(0, 0, 1)]),
        (Block("interpolate", (hidden, out)),), from_entries(1, 2, [(0, 1, 1)]),
    )  # fmt: skip
    answer = lambda x: sum(a * max(x - t, 0) for t, a in zip(thresholds, slopes, strict=True))  # noqa: E731
    return Golden("interpolator", network, answer, np.arange(13), 1 + 9 + 5 + 1)


def one_hot():
    """A three-layer selector: h_j = relu(1 - relu(t_j - x) - relu(x - t_{j+1} + 1)), words 5 j + 2, pairs."""
    t = [0, 4, 9, 13, 20]
    pairs, bias = [], []
    for j in range(4):
        pairs += [(2 * j, 0, -1), (2 * j + 1, 0, 1)]
        bias += [t[j], 1 - t[j + 1]]
    first = from_entries(8, 2, pairs, bias)
    second = from_entries(4, 8, [(j, 2 * j + side, -1) for j in range(4) for side in (0, 1)], [1] * 4)
    third = from_entries(2, 4, [(1, j, 5 * j + 2) for j in range(4)])
    network = Network(
        ("key",), ((0, 19),), 1, ("x", "word"), from_entries(2, 1, [(0, 0, 1)]),
        (Block("selector", (first, second, third), frozenset({1})),), from_entries(1, 2, [(0, 1, 1)]),
    )  # fmt: skip
    return Golden(
        "one-hot",
        network,
        lambda x: 5 * (np.searchsorted(t, x, side="right") - 1) + 2,
        np.arange(20),
        1 + 15 + 12 + 4 + 1,
    )


def fold_chain(bits=6, unit=1):
    """Folds V <- |V| - c of a centred key down to one Gray digit, all in units of ``unit`` (which may exceed int64)."""
    cuts = [2**f for f in range(bits, 1, -1)]
    fold = from_entries(1, 1, [(0, 0, -1)])
    blocks = [Block(f"fold/{c}", (fold, from_entries(1, 1, [(0, 0, 2)], [-c * unit]))) for c in cuts]
    network = Network(
        ("key",), ((0, 2**bits - 1),), 1, ("V",),
        from_entries(1, 1, [(0, 0, 4 * unit)], [(2 - 2 ** (bits + 1)) * unit]),
        tuple(blocks), from_entries(1, 1, [(0, 0, 1)], [2 * unit]), 4 * unit,
    )  # fmt: skip

    def answer(x):
        v = 4 * int(x) + 2 - 2 ** (bits + 1)
        for c in cuts:
            v = abs(v) - c
        return (v + 2) // 4

    name = "fold-chain" if unit == 1 else "fold-chain-wide"
    return Golden(name, network, answer, np.arange(2**bits), 2 + 3 * (bits - 1) + 2, unit == 1)


def limbs():
    """A 40-bit key in two limbs: label = [key >= 2^20 * 700] + (q mod 2^12 >= 2000)."""
    hidden = from_entries(4, 3, [(0, 0, 1), (1, 0, 1), (2, 1, 1), (3, 1, 1)], [-699, -700, -1999, -2000])
    out = from_entries(3, 4, [(2, 0, 1), (2, 1, -1), (2, 2, 1), (2, 3, -1)])
    network = Network(
        ("sel", "q"), ((0, 2**20), (0, 2**12 - 1)), 1, ("sel", "q", "sum"),
        from_entries(3, 2, [(0, 0, 1), (1, 1, 1)]), (Block("selector", (hidden, out)),),
        from_entries(1, 3, [(0, 2, 1)]), key_limbs=(20, 12),
    )  # fmt: skip
    rows = np.array(
        [0, 5, 2**20 * 700, 2**20 * 700 - 1, 2**20 * 699 + 2**12 + 2000, 2**40 - 1, 2**39 + 1999], dtype=np.int64
    )
    return Golden("limbs", network, lambda x: int(x >> 20 >= 700) + int(x % 2**12 >= 2000), rows, 2 + 8 + 4 + 1)


def sequence(per_position=False, ordered=False):
    """Four tokens of a vocabulary of six.

    value(t) = t + relu(t - 2); key = sum of values; label = [key >= 10], per position + [token >= 3]; unit 7.
    """
    length = 4
    embed = from_entries(3, 2, [(0, 0, 1)] + ([(0, 1, 1)] if ordered else []))
    token = Block(
        "token/value",
        (
            from_entries(2, 3, [(0, 0, 1), (1, 0, 1)], [0, -2]),
            from_entries(3, 2, [(1, 0, 1), (1, 1, 1), (0, 0, -1 if not per_position else 0)]),
        ),
    )
    attention = Attention("attention", from_entries(1, 3, [(0, 1, length)]), from_entries(3, 1, [(2, 0, 1)]))
    entries = [(0, 2, 1), (1, 2, 1)] + ([(2, 0, 1), (3, 0, 1)] if per_position else [])
    bias = [-9, -10] + ([-2, -3] if per_position else [])
    steps = from_entries(len(bias), 3, entries, bias)
    clear = [(1, i, w) for i, w in enumerate([7, -7, 7, -7][: len(bias)])]
    out = from_entries(3, len(bias), clear)
    drop = Block("read/clear", (from_entries(1, 3, [(0, 1, 1)]), from_entries(3, 1, [(1, 0, -1)])))
    network = Network(
        ("token", "position"), ((0, 5), (0, 3)), length, ("t", "value", "key"), embed,
        (token, attention, drop, Block("read/steps", (steps, out))), from_entries(1, 3, [(0, 1, 1)]), 7, per_position,
    )  # fmt: skip

    def answer(row):
        t = [int(v) + (i if ordered else 0) for i, v in enumerate(row)]
        key = sum(v + max(v - 2, 0) for v in t)
        first = int(key >= 10)
        return [first + int(v >= 3) for v in t] if per_position else first

    rows = np.random.Generator(np.random.Philox(7)).integers(0, 6, size=(37, 4))
    name = "seq2seq" if per_position else ("next-token-ordered" if ordered else "next-token")
    nonzero = sum(m.nonzero for _, m in network.maps())
    return Golden(name, network, answer, rows, nonzero)


GOLDEN = {
    g.name: g
    for g in (
        interpolator(), one_hot(), fold_chain(), fold_chain(unit=2**70), limbs(),
        sequence(), sequence(ordered=True), sequence(per_position=True),
    )
}  # fmt: skip
