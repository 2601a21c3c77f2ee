"""Looks for the cheapest budgeted plan for given keys: how many tables, pieces, groups, bits, and which digits.

Loads are counted, not estimated: every candidate is scored by its parameters given where the keys really fall.
`candidates` yields plans in rising cost; the caller tries to solve them in that order.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from memcap.construct.budgeted_plan import BudgetedPlan, digits_needed
from memcap.construct.gf2_packed import rank_of
from memcap.construct.hash_tables import TableLayout
from memcap.construct.key_codes import KeyCodes, KeyHash
from memcap.construct.word_format import WordFormat
from memcap.random import stream

# Expected rank deficit of a random matrix whose sides differ by 0, 1, 2, ... (rows or columns), over GF(2).
_DEFICIT = np.array([0.85, 0.42, 0.20, 0.10, 0.05, 0.025, 0.0125, 0.006])
_MOST_GROUP_DIGITS = 9
_SUBSETS = 48
_ROUND_CHOICES = 4
_ROUNDS = (0, 1, 2, 3, 4, 6, 8, 11, 14, 18, 22, 26, 30, 34, 38, 42, 46, 50, 54, 58, 62)
_SPARE_DIGITS = 2
_SAMPLED_CELLS = 8
_ROUGH_CHOICES = 8
_PLANS = 10
_PLANS_FOR_FEW = 40
_FEW_KEYS = 20_000
"""Up to this many keys a trial costs little: more plans are tried before the next hash."""
_MOST_BASE_DIGITS = 30
_CROWDED_PRICE = 30.0
"""The same where keys crowd so much that what overflows would crowd in the second table as well."""
_SLOT_BITS = 60
_FEW_TWINS = 0.5
_OVERFLOW_PRICE = 3.0
"""Parameters per word that overflow takes in a second table, its unevenness over the groups included."""


@dataclass(frozen=True)
class Demand:
    """What the plan must do.

    Attributes:
        planes: label bits.
        most_bits: longest word allowed; a place of a table holds several where that leaves room (`most_slot`).
        most_depth: deepest network allowed, or None.
        tables: words per key and label bit, 1 or 2, or None for the cheaper.
    """

    planes: int
    most_bits: int
    most_depth: int | None = None
    tables: int | None = None

    @property
    def most_slot(self) -> int:
        """Most bits a place of a table may have."""
        return self.most_bits * max(1, _SLOT_BITS // self.most_bits)

    def parts(self, bits: int) -> int:
        """Words that ``bits`` bits of a place need."""
        return -(-bits // self.most_bits)


def excess_rows(loads: Int[np.ndarray, "..."], bits: int | Int[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Rows that words of ``bits`` bits cannot take, overflow and expected deficit, per cell."""
    apart = np.minimum(np.abs(loads - bits), len(_DEFICIT) - 1)
    excess: np.ndarray = np.maximum(loads - bits, 0) + np.where(loads > 0, _DEFICIT[apart], 0.0)
    return np.asarray(excess)


def candidates(hashing: KeyHash, demand: Demand) -> tuple[list[BudgetedPlan], int | None]:
    """Plans that should have a solution, cheapest first, and the least depth seen, allowed or not."""
    found: dict[tuple[object, ...], BudgetedPlan] = {}
    draw = stream(hashing.seed, "layout", hashing.attempt)
    caps = {demand.most_bits}
    if demand.most_depth is not None:  # folds take one layer each, everything else a few dozen
        caps = {min(demand.most_bits, max(2, demand.most_depth - rest)) for rest in (12, 16, 20, 24, 28, 32, 36)}
    doublings = _doublings(hashing, demand)
    for cap in sorted(caps):
        capped = replace(demand, most_bits=cap)
        for rounds, cell_digits, group_digits in _rough(hashing, doublings, capped):
            codes = hashing.codes(rounds)
            if codes is not None:
                for plan in _refined(codes, capped, cell_digits, group_digits, draw):
                    found[(rounds, plan.layout, plan.slot, plan.digits)] = plan
    least = min((plan.depth for plan in found.values()), default=None)
    allowed = [
        plan
        for plan in found.values()
        if (demand.most_depth is None or plan.depth <= demand.most_depth)
        and (demand.tables is None or plan.tables == demand.tables)
    ]
    ranked = sorted(allowed, key=lambda p: (p.parameters, p.depth))[
        : _PLANS if len(hashing.inputs) > _FEW_KEYS else _PLANS_FOR_FEW
    ]
    if len(hashing.inputs) + 4 <= demand.most_slot and doublings:  # a single place holds them all and seldom fails
        codes = hashing.codes(doublings[0])
        alone = None if codes is None else _plan(codes, demand, 0, (), min(demand.most_slot, codes.items + 8), 0, {})
        if alone is not None and (demand.most_depth is None or alone.depth <= demand.most_depth):
            ranked.append(alone)
    return ranked, least


def _rough(hashing: KeyHash, doublings: list[int], demand: Demand) -> list[tuple[int, int, int]]:
    """(tent rounds, cell digits, group digits) with the best estimated cost, best first."""
    bits = np.arange(1, demand.most_slot + 1)
    scored = []
    for rounds in doublings:
        codes = hashing.codes(rounds)
        if codes is None:
            continue
        items = codes.items
        most_cells = min((2 * items).bit_length(), codes.lengths[0] - 1, 22)
        loads = np.bincount(codes.index(most_cells).astype(np.int64), minlength=1 << most_cells)
        for cell_digits in range(most_cells, -1, -1):
            if cell_digits == 0 or items < demand.most_slot * 4 << cell_digits:
                best = _rough_cost(loads, cell_digits, bits, demand, items)
                scored += [(cost + 5 * rounds, rounds, cell_digits, g) for cost, g in best]
            if cell_digits:
                loads = loads.reshape(-1, 2).sum(axis=1)
    scored.sort()
    return [(rounds, cells, groups) for _, rounds, cells, groups in scored[:_ROUGH_CHOICES]]


def _doublings(hashing: KeyHash, demand: Demand) -> list[int]:
    """Tent rounds worth a closer look: what overflows of words of full length, priced, plus 5 parameters a round."""
    items = len(hashing.inputs)
    cell_digits = max(0, (items // demand.most_slot).bit_length())
    priced = []
    for rounds in _ROUNDS:
        chains = hashing.chains(rounds)
        if chains is None:
            continue
        # twice as many cells as words: digits of crowded keys must be random beyond the index as well
        digits = max(0, min(cell_digits + 1, len(chains[0].folds) - 1))
        index = chains[0].code_of(chains[0].spread(hashing.inputs), digits)
        loads = np.bincount(index.astype(np.int64), minlength=1 << digits)
        over = int(np.maximum(loads - (demand.most_slot + 1) // 2, 0).sum())
        price = _OVERFLOW_PRICE if hashing.joined is None else _CROWDED_PRICE
        priced.append((5 * rounds + demand.planes * over * price / demand.most_bits, rounds))
    good: list[int] = []
    for _, rounds in sorted(priced):
        codes = hashing.codes(rounds)
        if codes is not None and _base_digits_are_random(codes, cell_digits, demand):
            good.append(rounds)
            if len(good) == _ROUND_CHOICES:
                break
        elif rounds:
            hashing.forget(rounds)
    return good or [rounds for _, rounds in sorted(priced)[:_ROUND_CHOICES]]


def _base_digits_are_random(codes: KeyCodes, cell_digits: int, demand: Demand) -> bool:
    """Whether enough base digits make independent hash bits: too few tent rounds leave crowded keys alike below."""
    bits = demand.most_slot
    cell_digits = min(cell_digits, codes.lengths[0] - 2)
    available = codes.base(cell_digits)[1]
    digits = min(available, max(digits_needed(bits), 24), 2 * bits - 2)
    if digits < digits_needed(bits):
        return False
    layout = TableLayout((), (1 << cell_digits,), (tuple(range(cell_digits)),))
    words, parts = WordFormat(demand.most_bits), demand.parts(bits)
    plan = BudgetedPlan(codes.chains, layout, digits, words, 1, parts=parts)
    enough = with_enough_digits(codes, plan)
    return enough is not None and enough.digits <= max(_MOST_BASE_DIGITS, digits_needed(bits))


def _rough_cost(
    loads: Int[np.ndarray, " cells"], cell_digits: int, bits: Int[np.ndarray, " bits"], demand: Demand, items: int
) -> list[tuple[float, int]]:
    """Estimated parameters for every number of group digits, as if overflow were spread evenly over the groups."""
    cells = len(loads)
    # overflow of every word length at once, from the histogram of loads
    histogram = np.bincount(loads)
    sizes = np.arange(len(histogram))
    excess = (histogram * excess_rows(sizes[None, :], bits[:, None])).sum(axis=1)
    costs = []
    planes = demand.planes
    parts = -(-bits // demand.most_bits)
    base_digits = max(2, int(2 * np.log2(max(items, 2))) - cell_digits - 4)
    for group_digits in range(min(cell_digits, _MOST_GROUP_DIGITS) + 1):
        q = 1 << group_digits
        pieces = cells // q
        per_group = excess / q + 2.0 * np.sqrt(excess / q + 1) + 2
        second = np.where(excess < 0.7, 0, np.ceil(per_group / bits) + 1).astype(np.int64)
        tables = np.where(second > 0, 2, 1)
        lanes = tables * planes
        allowed = ((second <= 2 * pieces + 2) | (second == 0)) & (_twins(loads, bits, second) < _FEW_TWINS)
        words = planes * parts * np.maximum(pieces + second - (second > 0), 1) * (q + 2)
        fixed = 4 * (q + pieces + second) + 7 * (cell_digits + np.ceil(np.log2(np.maximum(second, 1))) + base_digits)
        positions = bits * (2 + lanes + 3 * lanes)
        cost = np.where(allowed, words + fixed + positions, np.inf)
        costs.append((float(cost.min()), group_digits))
    costs.sort()
    return costs[:2]


def _twins(
    loads: Int[np.ndarray, " cells"], bits: Int[np.ndarray, " bits"], second: Int[np.ndarray, " bits"]
) -> Float[np.ndarray, " bits"]:
    """Pairs of keys expected to have the same hash bits and the same place in every table: no words tell them apart."""
    pairs = float((loads * (loads - 1.0)).sum() / 2)
    expected: np.ndarray = pairs / np.maximum(second, 1) * 0.5 ** (bits - 1.0)
    return expected


def _refined(
    codes: KeyCodes,
    demand: Demand,
    cell_digits: int,
    group_digits: int,
    draw: np.random.Generator,
) -> list[BudgetedPlan]:
    """Plans for one rough choice: which digits number the groups, how many bits, how large the second table."""
    cells = np.bincount(codes.index(cell_digits).astype(np.int64), minlength=1 << cell_digits)
    cube = cells.reshape((2,) * cell_digits)
    subsets = {tuple(range(group_digits)): None}
    for _ in range(_SUBSETS if 0 < group_digits < cell_digits else 0):
        subsets[tuple(sorted(draw.choice(cell_digits, size=group_digits, replace=False).tolist()))] = None
    plans = []
    separated: dict[int, int | None] = {}
    for bits in _bits_to_try(cells, demand):
        excess = excess_rows(cube, bits)
        best, best_worst = next(iter(subsets)), np.inf
        for subset in subsets:
            others = tuple(d for d in range(cell_digits) if d not in subset)
            worst = float(excess.sum(axis=others).max()) if others else float(excess.max())
            if worst < best_worst:
                best, best_worst = subset, worst
        if float(excess.sum()) < 0.7:
            seconds = [0]
        else:
            need = best_worst + 1.0 + 0.7 * np.sqrt(best_worst)
            second = int(np.ceil(need / bits)) + 1
            seconds = [second, second + 1, second + 3]
        for second in seconds:
            if _twins(cells, np.array([bits]), np.array([second]))[0] >= _FEW_TWINS:
                continue
            plan = _plan(codes, demand, cell_digits, best, bits, second, separated)
            if plan is not None:
                plans.append(plan)
    return plans


def _bits_to_try(cells: Int[np.ndarray, " cells"], demand: Demand) -> list[int]:
    """Bits of a place: around the largest load, words of all lengths alone, and several of the longest together."""
    most = demand.most_bits
    worst = int(cells.max(initial=1))
    around = [b for b in range(worst - 1, worst + 6) if 2 <= b <= demand.most_slot]
    alone = [b for b in itertools.chain(range(most, max(0, most - 4), -1), range(most - 4, 1, -4)) if b >= 2]
    together = [parts * word for parts in range(2, demand.parts(demand.most_slot) + 1) for word in (most, most - 1)]
    return list(dict.fromkeys(b for b in (*around, *alone, *together, most) if b))


def _plan(
    codes: KeyCodes,
    demand: Demand,
    cell_digits: int,
    subset: tuple[int, ...],
    bits: int,
    second: int,
    separated: dict[int, int | None],
) -> BudgetedPlan | None:
    parts = demand.parts(bits)
    words = WordFormat(-(-bits // parts))
    bits = parts * words.bits
    first = tuple(d for d in range(cell_digits) if d not in subset)
    more = (second - 1).bit_length() if second else 0
    index_digits = cell_digits + more
    if index_digits > codes.lengths[0]:
        return None
    if index_digits not in separated:
        separated[index_digits] = codes.digits_to_separate(index_digits)
    needed = separated[index_digits]
    if needed is None:
        return None
    available = codes.base(index_digits)[1]
    digits = max(needed + _SPARE_DIGITS, digits_needed(bits))
    digits = min(digits, available, max(needed, 2 * bits - 2))
    if needed > 2 * bits - 2 or digits < max(needed, digits_needed(bits)):
        return None
    layout = TableLayout(
        subset,
        (1 << len(first), second) if second else (1 << len(first),),
        (first, tuple(range(cell_digits, index_digits))) if second else (first,),
    )
    return BudgetedPlan(codes.chains, layout, digits, words, demand.planes, parts=parts)


def most_digits(codes: KeyCodes, plan: BudgetedPlan) -> int:
    """Base digits that ``plan`` can use at all."""
    available = codes.base(plan.layout.digits)[1]
    return min(available, max(plan.digits, 2 * plan.slot.bits - 2))


def with_enough_digits(codes: KeyCodes, plan: BudgetedPlan) -> BudgetedPlan | None:
    """``plan`` with base digits added until the hash bits of a few words are as independent as random ones."""
    layout = plan.layout
    most = most_digits(codes, plan)
    cells = 1 << (len(layout.group_digits) + len(layout.piece_digits[0]))
    index = codes.index(layout.digits) >> np.uint64(layout.digits - cells.bit_length() + 1)
    loads = np.bincount(index.astype(np.int64), minlength=cells)
    full = np.argsort(loads)[-_SAMPLED_CELLS:]
    members = [np.flatnonzero(index == np.uint64(c))[: 2 * plan.slot.bits] for c in full[loads[full] > 0]]
    expected = sum(_DEFICIT[min(abs(len(m) - plan.slot.bits), len(_DEFICIT) - 1)] for m in members)
    while True:
        base, length = codes.base(layout.digits)
        deficit = 0
        for m in members:
            beta = plan.beta(base[m] >> np.uint64(length - plan.digits))
            deficit += min(len(m), plan.slot.bits) - rank_of(beta)
        if deficit <= 0.5 + np.sqrt(expected) + 2 * expected:
            return plan
        if plan.digits >= most:
            return None
        plan = replace(plan, digits=min(most, plan.digits + 3))
