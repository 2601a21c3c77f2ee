"""Writes a budgeted plan and its words as an integer network: every neuron an ordinary weight, none without use.

spread -> read index and base digits -> one-hot the index, load the words -> fold, emit -> read
Every number comes from the plan and the words.  Derived here: docs/theory/budgeted.md.
"""

from __future__ import annotations

import itertools

from jaxtyping import UInt64
from numpy import ndarray

from memcap.construct.budgeted_plan import BudgetedPlan
from memcap.construct.named_block import NamedBlock, Unit
from memcap.construct.prefix_decoder import FINISHED, NUMBER, decode_blocks
from memcap.exact.affine import Affine
from memcap.exact.network import Network


def word_channel(table: int, plane: int, part: int = 0) -> str:
    """Channel that holds a word of ``table`` for label bit ``plane``."""
    return f"word.{table}.{plane}" + (f".{part}" if part else "")


def write_network(
    plan: BudgetedPlan,
    solved: list[UInt64[ndarray, " _"]],
    *,
    inputs: tuple[str, ...],
    input_range: tuple[tuple[int, int], ...],
    key_limbs: tuple[int, int] | None,
) -> Network:
    """The network of ``plan`` with the words ``solved``, one array per label bit (`hash_tables.solve_labels`)."""
    channels = _channels(plan)
    folds = _Folds(plan)
    blocks: list[NamedBlock] = []
    for i in range(plan.doublings):
        block = NamedBlock(f"hash/warm-up/{i + 1}", [[]])
        for chain in plan.used_chains:
            if i < plan.chains[chain].doublings:
                _double(block, f"p{chain}", plan.chains[chain].reach)
        if plan.joins and i == plan.chains[0].doublings:
            blocks.append(_join(plan.chains[0].join))
        blocks.append(block)
    if plan.joins:
        blocks += [_fold_unread(c) for c in plan.chains[0].all_folds[: plan.chains[0].unread]]
    blocks += _index_blocks(plan, folds)
    for i in range(plan.early_digits):
        block = NamedBlock(f"hash/digit/{i + 1}", [[]])
        folds.base_digit(block)
        if i == 0:
            _mirror_pieces(plan, block)
        blocks.append(block)
    load = _table_block(plan, solved)
    if load.layers[0]:
        blocks.append(load)
    else:  # a single word: its constant needs no block of its own
        blocks[-1].bias |= load.bias
    blocks += [*_fold_blocks(plan, folds), *_read_blocks(plan)]
    embed = Affine.from_entries(
        len(channels),
        len(inputs),
        [(channels.index(f"p{c}"), i, w) for c in plan.used_chains for i, w in enumerate(plan.chains[c].factors)],
        [(channels.index(f"p{c}"), plan.chains[c].offset) for c in plan.used_chains],
    )
    output, unit, offset = ("label", 1, 0) if plan.tables == 1 else (word_channel(0, 0), 2, 0)
    if plan.code is not None:
        blocks += decode_blocks(plan.code, word_channel(0, 0))
        output, unit, offset = NUMBER, 1, plan.code.offset(plan.code.longest)
    return Network(
        inputs=inputs,
        input_range=input_range,
        length=1,
        channels=tuple(channels),
        embed=embed,
        stages=tuple(b.written(channels) for b in blocks),
        read=Affine.from_entries(1, len(channels), [(0, channels.index(output), 1)], [offset]),
        unit=unit,
        key_limbs=key_limbs,
    )


def _channels(plan: BudgetedPlan) -> list[str]:
    names = [f"p{c}" for c in plan.used_chains]
    if plan.layout.groups > 1:
        names.append("group")
    names += [f"piece.{t}" for t, n in enumerate(plan.layout.pieces) if n > 1]
    names += [f"x{i}" for i in range(plan.digits)]
    names += [word_channel(*lane) for lane in plan.lanes]
    if plan.tables == 1:
        names.append("label")
    if plan.code is not None:
        names += [NUMBER, FINISHED]
    return names


class _Folds:
    """Walks down the chains and adds the neurons of one fold at a time to a block."""

    def __init__(self, plan: BudgetedPlan) -> None:
        self.plan = plan
        self.left = [list(chain.folds) for chain in plan.chains]
        order = plan.digit_order
        self.to_read = [plan.layout.digits + order.count(0), order.count(1)]
        self.next_base = 0

    def read(self, block: NamedBlock, chain: int, targets: list[tuple[str, int]]) -> None:
        """Fold and add ``weight * [p < 0]`` to every target: 5 parameters and 2 per target.

        p is an odd integer, so ``relu(-p) - relu(-p - 1)`` is 1 below zero and 0 above.
        """
        p = f"p{chain}"
        c = self.left[chain].pop(0)
        block.layers[0] += [Unit(f"{p} below", {p: -1}), Unit(f"{p} less one", {p: -1}, -1)]
        for channel, weight in targets:
            block.outputs += [(channel, f"{p} below", weight), (channel, f"{p} less one", -weight)]
        self.to_read[chain] -= 1
        if self.to_read[chain]:  # after the last digit nobody reads p
            block.outputs.append((p, f"{p} below", 2))
            block.bias[p] = -c

    def base_digit(self, block: NamedBlock) -> None:
        """Read the next base digit, if any is left."""
        if self.next_base < self.plan.digits:
            chain = self.plan.digit_order[self.next_base]
            self.read(block, chain, [(f"x{self.next_base}", 1)])
            self.next_base += 1


def _double(block: NamedBlock, p: str, reach: int) -> None:
    """``p <- reach - 2 |p|``: 5 parameters."""
    block.layers[0] += [Unit(f"{p} above", {p: 1}), Unit(f"{p} below", {p: -1})]
    block.outputs += [(p, f"{p} above", -3), (p, f"{p} below", -1)]
    block.bias[p] = reach


def _join(constant: int) -> NamedBlock:
    """``p0 <- p0 + |p1| - constant``: 5 parameters."""
    units = [Unit("p1 above", {"p1": 1}), Unit("p1 below", {"p1": -1})]
    return NamedBlock("hash/join", [units], [("p0", unit.name, 1) for unit in units], {"p0": -constant})


def _fold_unread(constant: int) -> NamedBlock:
    """``p0 <- |p0| - constant``: 3 parameters."""
    units = [Unit("p0 below", {"p0": -1})]
    return NamedBlock("hash/join", [units], [("p0", "p0 below", 2)], {"p0": -constant})


def _index_blocks(plan: BudgetedPlan, folds: _Folds) -> list[NamedBlock]:
    blocks = []
    for digit in range(plan.layout.digits):
        targets = []
        if digit in plan.layout.group_digits:
            targets.append(("group", 1 << plan.layout.group_digits.index(digit)))
        for table, digits in enumerate(plan.layout.piece_digits):
            if digit in digits:
                targets.append((f"piece.{table}", 1 << digits.index(digit)))
        block = NamedBlock(f"hash/index/{digit + 1}", [[]])
        folds.read(block, 0, targets)
        blocks.append(block)
    return blocks


def _mirror_pieces(plan: BudgetedPlan, block: NamedBlock) -> None:
    """``I <- min(I, 2 n - 1 - I)`` where there are more codes than pieces: 3 parameters."""
    for table, pieces in enumerate(plan.layout.pieces):
        if plan.layout.folded(table):
            name = f"piece.{table}"
            block.layers[0].append(Unit(f"mirror.{table}", {name: 2}, -(2 * pieces - 1)))
            block.outputs.append((name, f"mirror.{table}", -1))


def _one_hot(channel: str, values: int, first: int) -> tuple[list[Unit], list[Unit]]:
    """Two layers that turn a number in [0, values) into units ``channel=v`` for v >= first: 4 parameters a value.

    Hinges ``h_t = relu(x - t)``; ``[x = v] = relu(h_{v-1} - 2 h_v)``, which is 0 beyond v because 2 h_v grows faster.
    """
    hinges = [Unit(f"{channel}>{t}", {channel: 1}, -t) for t in range(values - 1)]
    units = []
    for v in range(first, values):
        if v == 0:
            units.append(Unit(f"{channel}=0", {f"{channel}>0": -1}, 1))
        elif v < values - 1:
            units.append(Unit(f"{channel}={v}", {f"{channel}>{v - 1}": 1, f"{channel}>{v}": -2}))
        else:
            units.append(Unit(f"{channel}={v}", {f"{channel}>{v - 1}": 1}))
    return hinges, units


def _table_block(plan: BudgetedPlan, solved: list[UInt64[ndarray, " _"]]) -> NamedBlock:
    """One-hot group and piece numbers, then one neuron per piece and label bit: (q + 2) / q parameters a word.

    With exactly one group unit at 1, ``sum_l (w_l - gate) [L = l] + gate [I = i]`` is the word if I = i, else not
    positive.  No partial sum exceeds ``gate``.  Without words to choose from the word is a constant.  The first hash
    bit of part 0, always 1, is part of the constant.
    """
    layout, words = plan.layout, plan.words
    q, gate = layout.groups, words.gate
    hinges: list[Unit] = []
    hot: list[Unit] = []
    if q > 1:
        hinges, hot = _one_hot("group", q, 0)
    for table, pieces in enumerate(layout.pieces):
        if pieces > 1:
            more, units = _one_hot(f"piece.{table}", pieces, layout.first_piece(table))
            hinges, hot = hinges + more, hot + units
    bias = {word_channel(*lane): (lane[2] == 0) - words.shift for lane in plan.lanes}
    gated = q > 1 and max(layout.pieces) > 1
    units, outputs = [], []
    for plane, part in itertools.product(range(plan.planes), range(plan.parts)):
        stored = words.stored(plan.slot.part(solved[plane], part)).tolist()
        tables = plan.plane_tables(plane)
        for table, pieces in enumerate(tables.pieces):
            channel = word_channel(table, plane, part)
            for piece in range(layout.first_piece(table), pieces):
                start = q * (sum(tables.pieces[:table]) + piece)
                row = stored[start : start + q]
                hot_values = [v for v, p in enumerate(tables.maps[table]) if p == piece and layout.pieces[table] > 1]
                if gated:
                    lowered = gate if table or pieces > 1 else 0
                    inputs = {f"group={g}": w - lowered for g, w in enumerate(row)}
                    if lowered:
                        inputs |= {f"piece.{table}={v}": gate for v in hot_values}
                    name = f"{channel} piece {piece}"
                    units.append(Unit(name, inputs))
                    outputs.append((channel, name, 1))
                elif q > 1:
                    outputs += [(channel, f"group={g}", w) for g, w in enumerate(row)]
                elif pieces > 1:
                    outputs += [(channel, f"piece.{table}={v}", row[0]) for v in hot_values]
                else:
                    bias[channel] += row[0]
    layers = [hinges, hot, units] if gated else [hinges, hot]
    return NamedBlock("load/words", layers, outputs, bias)


def _emit(plan: BudgetedPlan, block: NamedBlock, position: int) -> None:
    """Add the hash bit of ``position`` to the word channels of every part: one neuron a part."""
    for part in range(plan.parts):
        reads = plan.hash_bits[position, part]
        if not reads:
            continue
        name = f"hash bit {part}"
        block.layers[0].append(Unit(name, {f"x{i}": w for i, w in zip(reads, (1, -1), strict=False)}))
        block.outputs += [(word_channel(*lane), name, 1) for lane in plan.lanes if lane[2] == part]


def _fold_blocks(plan: BudgetedPlan, folds: _Folds) -> list[NamedBlock]:
    """``V <- |V| - (G/2) 2^(B-f)`` in every word channel; the last one leaves ``S + G/2 > 0``."""
    blocks = []
    bits = plan.words.bits
    if plan.parts > 1:
        before = NamedBlock("fold/0", [[]])
        _emit(plan, before, 0)
        folds.base_digit(before)
        blocks.append(before)
    for fold in range(1, bits + 1):
        block = NamedBlock(f"fold/{fold}", [[]])
        for channel in (word_channel(*lane) for lane in plan.lanes):
            block.layers[0].append(Unit(f"{channel} below", {channel: -1}))
            block.outputs.append((channel, f"{channel} below", 2))
            if fold < bits:
                block.bias[channel] = -plan.words.half_gap << (bits - fold)
        if fold < bits:
            _emit(plan, block, fold)
        folds.base_digit(block)
        blocks.append(block)
    return blocks


def _read_blocks(plan: BudgetedPlan) -> list[NamedBlock]:
    """Join all word channels into the first one, then keep the label bits of the sum."""
    acc = word_channel(0, 0)
    blocks = []
    others = [(word_channel(*lane), lane[1]) for lane in plan.lanes[1:]]
    if others:
        units = [Unit(channel, {channel: 1}) for channel, _ in others]
        blocks.append(NamedBlock("readout/join", [units], [(acc, channel, 1 << k) for channel, k in others]))
    if plan.planes == 1:
        for i, mirror in enumerate(plan.read_folds):
            blocks.append(NamedBlock(f"readout/fold/{i + 1}", [[Unit("m", {acc: 2}, -mirror)]], [(acc, "m", -1)]))
        if plan.tables == 1:
            blocks.append(NamedBlock("readout/label", [[Unit("two", {acc: 1}, -1)]], [("label", "two", 1)]))
        return blocks
    for digit in plan.read_strips:
        size = 1 << digit
        block = NamedBlock(f"readout/bit/{digit}", [[Unit("over", {acc: 1}, 1 - size), Unit("less", {acc: 1}, -size)]])
        last = plan.tables == 1 and digit == 1
        if not last:
            block.outputs += [(acc, "over", -size), (acc, "less", size)]
        if plan.tables == 1 and digit <= plan.planes:
            block.outputs += [("label", "over", size // 2), ("label", "less", -size // 2)]
        blocks.append(block)
    return blocks
