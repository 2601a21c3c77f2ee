"""Fewer words for skewed labels: frequent classes have short codes, and a bit beyond a code's end constrains nothing.

Given a plan for labels of fixed length, every label bit gets tables just large enough for the items whose code reaches
it, by merging pieces of the first table and using fewer of the second.  Classes must come in the order of falling
frequency.  Called by `budgeted`.  Derived here: docs/theory/budgeted.md.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Int

from memcap.construct.budgeted_plan import BudgetedPlan, PlaneTables
from memcap.construct.budgeted_search import excess_rows
from memcap.construct.hash_tables import Places, PlaneSystem, eliminate
from memcap.construct.key_codes import KeyCodes
from memcap.construct.prefix_code import PrefixCode, limited_code

_MORE_DIGITS = (0, 2, 4, 6, 9)
_LONGER = 4


def prefix_code(labels: Int[np.ndarray, " items"], classes: int, bits: int) -> PrefixCode | None:
    """The code whose words and planes should cost least, or None if classes are not in falling order or too few.

    A longer limit saves words and costs a plane: 3 parameters per fold and one per hash bit in both tables.

    Args:
        labels: class per item.
        classes: number of classes.
        bits: longest word.
    """
    counts = np.bincount(labels, minlength=classes)
    if classes < 3 or bool(np.any(np.diff(counts) > 0)):
        return None
    least = (classes - 1).bit_length()
    codes = [limited_code(counts, least + more) for more in range(_LONGER + 1)]
    return min(codes, key=lambda c: int(counts @ c.lengths) / (0.95 * bits) + 8 * bits * c.longest)


def skewed_plan(
    codes: KeyCodes, plan: BudgetedPlan, labels: Int[np.ndarray, " items"], code: PrefixCode
) -> tuple[BudgetedPlan, list[PlaneSystem]] | None:
    """``plan`` with tables cut to what ``code`` needs, and the systems of its planes; None if nothing fits.

    Merged pieces tell fewer keys apart, so base digits are added as needed.

    Args:
        codes: digits of the keys.
        plan: for fixed labels; two tables, several groups and pieces.
        labels: class per item.
        code: of the classes.
    """
    if plan.tables != 2 or plan.layout.groups == 1:
        return None
    available = min(codes.base(plan.layout.digits)[1], 2 * plan.slot.bits - 2)
    for digits in (plan.digits + more for more in _MORE_DIGITS):
        if digits <= available:
            found = _with_digits(codes, replace(plan, digits=digits), labels, code)
            if found is not None:
                return found
    return None


def _with_digits(
    codes: KeyCodes, plan: BudgetedPlan, labels: Int[np.ndarray, " items"], code: PrefixCode
) -> tuple[BudgetedPlan, list[PlaneSystem]] | None:
    places = codes.places(plan)
    reach = code.lengths[labels]
    systems: list[PlaneSystem] = []
    tables: list[PlaneTables] = []
    for plane in range(code.longest):
        matters = reach >= code.longest - plane  # the first bit of a code is the highest plane
        if plane and _all_matter(reach, code, plane - 1):
            systems.append(systems[-1])  # the same equations
            tables.append(tables[-1])
            continue
        if bool(matters.all()):
            system = eliminate(places, plan.layout, plan.slot.bits)
            found = None if system is None else (plan.plane_tables(0), PlaneSystem(places, plan.layout, system))
        else:
            found = _cut(plan, places, matters)
        if found is None:
            return None
        tables.append(found[0])
        systems.append(found[1])
    return replace(plan, planes=code.longest, tables_by_plane=tuple(tables), code=code), systems


def _all_matter(reach: Int[np.ndarray, " items"], code: PrefixCode, plane: int) -> bool:
    return bool(np.all(reach >= code.longest - plane))


def _cut(
    plan: BudgetedPlan, places: Places, matters: Bool[np.ndarray, " items"]
) -> tuple[PlaneTables, PlaneSystem] | None:
    """The smallest tables that have a solution for the items that matter."""
    q, bits = plan.layout.groups, plan.slot.bits
    first, second = plan.layout.pieces
    options = []
    for merge in range(first.bit_length()):
        merged = places.piece[0] >> merge
        count = first >> merge
        loads = np.bincount((places.group * count + merged)[matters], minlength=q * count).reshape(q, count)
        worst = float(excess_rows(loads, bits).sum(axis=1).max())
        need = int(np.ceil((worst + 0.5 + 0.5 * np.sqrt(worst)) / bits)) + 1
        for pieces in (need, need + 1, need + 2):
            if 2 <= pieces <= second:
                options.append(((count + pieces - 1) * (q + 1), merge, pieces))
    for _, merge, pieces in sorted(options)[:6]:
        maps = (tuple(v >> merge for v in range(first)), tuple(v % pieces for v in range(second)))
        tables = PlaneTables((first >> merge, pieces), maps)
        piece = np.stack([np.array(m)[places.piece[t]] for t, m in enumerate(maps)])
        layout = replace(plan.layout, pieces=tables.pieces)
        moved = Places(places.group, piece, places.beta)
        system = eliminate(moved, layout, bits, matters)
        if system is not None:
            return tables, PlaneSystem(moved, layout, system)
    return None
