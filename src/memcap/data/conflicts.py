"""Items that occur more than once: equal labels are counted, different labels are a conflict.

An item is its token row (ordered) or its multiset of tokens (unordered).  `settle` decides which rows stay; it never
leaves a conflict out unless ``on_conflict`` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Int64

from memcap.data.grouping import Groups, group_rows
from memcap.data.origin import Origin, brief
from memcap.errors import ConfigurationError, ConflictError, ConflictGroup, nearest

CHOICES = ("error", "drop", "first")
SHOWN = 5
"""Groups, and labels of one group, that a message lists; the error object carries all."""


@dataclass(frozen=True)
class Dropped:
    """What an explicit ``on_conflict`` left out.

    Attributes:
        groups: ambiguous items (for label conflicts inside a sequence: (row, token) pairs).
        rows: rows left out (``drop``) or whose own label was not used (``first``).
    """

    groups: int = 0
    rows: int = 0


@dataclass(frozen=True, eq=False)
class Rows:
    """All rows as read, before duplicates and conflicts are looked at.

    Attributes:
        tokens: padded ids; ``codes``: provisional label code per row, or per position with -1 on padding.
        names: code -> label; ``rows``: 1-based row of the source; ``pad``: the padding id.
    """

    tokens: Int64[np.ndarray, "rows length"]
    codes: Int64[np.ndarray, " rows"] | Int64[np.ndarray, "rows length"]
    names: list[str | int | bool]
    rows: Int64[np.ndarray, " rows"]
    pad: int


@dataclass(frozen=True, eq=False)
class Settled:
    """Which rows stay (ascending), their label codes, and what was left out."""

    keep: Int64[np.ndarray, " kept"]
    codes: Int64[np.ndarray, " kept"] | Int64[np.ndarray, "kept length"]
    duplicates: int
    dropped: Dropped


def check_choice(on_conflict: str) -> None:
    """Refuse a misspelt ``on_conflict``."""
    if on_conflict not in CHOICES:
        hint = nearest(str(on_conflict), CHOICES)
        raise ConfigurationError(f"on_conflict must be one of {', '.join(CHOICES)}, got {on_conflict!r}{hint}")


def settle(data: Rows, *, ordered: bool, on_conflict: str, origin: Origin, show: Callable[[list[int]], str]) -> Settled:
    """Keep the first row of every item; refuse or resolve contradictions.

    Args:
        show: token ids -> short text for messages.

    Raises:
        ConflictError: if items carry different labels and ``on_conflict`` is ``"error"``.
        ConfigurationError: if ``on_conflict`` is not one of error, drop, first.
    """
    check_choice(on_conflict)
    tokens, codes = data.tokens, data.codes
    per_position = codes.ndim == 2
    alive = np.arange(len(tokens), dtype=np.int64)
    token_dropped = Dropped()
    item = tokens
    if not ordered and per_position:
        turn = np.argsort(tokens, axis=1, kind="stable")
        item, sorted_codes = np.take_along_axis(tokens, turn, axis=1), np.take_along_axis(codes, turn, axis=1)
        agreed = _run_starts(item, sorted_codes)
        clash = (agreed != sorted_codes) & (item != data.pad)
        if clash.any():
            bad = clash.any(axis=1)
            groups = _token_groups(data, item, sorted_codes, agreed, clash)
            if on_conflict == "error":
                raise _token_error(groups, origin, show)
            token_dropped = Dropped(len(groups), int(bad.sum()))
            if on_conflict == "drop":
                alive = alive[~bad]
            else:
                codes = codes.copy()
                np.put_along_axis(codes, turn, agreed, axis=1)
                sorted_codes = agreed
        label = group_rows(sorted_codes[alive] + 1).group
    else:
        if not ordered:
            item = np.sort(tokens, axis=1)
        label = group_rows(codes + 1).group if codes.ndim == 2 else codes
    groups_of = group_rows(item[alive])
    first_label = label[groups_of.first]
    other = label != first_label[groups_of.group]  # rows that contradict the first row of their item
    if not other.any():
        keep = np.sort(groups_of.first)
        return Settled(alive[keep], codes[alive[keep]], len(alive) - len(keep), token_dropped)
    ambiguous = np.zeros(len(groups_of.first), dtype=bool)
    ambiguous[groups_of.group[other]] = True
    if on_conflict == "error":
        raise _item_error(data, alive, groups_of, label, ambiguous, ordered, origin, show)
    in_conflict = ambiguous[groups_of.group]
    if on_conflict == "drop":
        keep = np.sort(groups_of.first[~ambiguous])
        left_out = int(in_conflict.sum())
    else:
        keep = np.sort(groups_of.first)
        left_out = int(other.sum())
    duplicates = len(alive) - len(keep) - left_out
    dropped = Dropped(token_dropped.groups + int(ambiguous.sum()), token_dropped.rows + left_out)
    return Settled(alive[keep], codes[alive[keep]], duplicates, dropped)


def _run_starts(
    item: Int64[np.ndarray, "rows length"], codes: Int64[np.ndarray, "rows length"]
) -> Int64[np.ndarray, "rows length"]:
    """For each place of a sorted row, the code at the first place with the same token."""
    start = np.ones(item.shape, dtype=bool)
    start[:, 1:] = item[:, 1:] != item[:, :-1]
    place = np.maximum.accumulate(np.where(start, np.arange(item.shape[1]), 0), axis=1)
    return np.take_along_axis(codes, place, axis=1)


def _token_groups(
    data: Rows,
    item: Int64[np.ndarray, "rows length"],
    codes: Int64[np.ndarray, "rows length"],
    agreed: Int64[np.ndarray, "rows length"],
    clash: Bool[np.ndarray, "rows length"],
) -> list[tuple[int, ConflictGroup]]:
    """(token, group) for every token of a row that carries more than one label."""
    found: dict[tuple[int, int], list[int]] = {}
    for i, j in np.argwhere(clash).tolist():
        seen = found.setdefault((i, int(item[i, j])), [int(agreed[i, j])])
        if int(codes[i, j]) not in seen:
            seen.append(int(codes[i, j]))
    return [
        (token, ConflictGroup((int(data.rows[i]),) * len(seen), tuple(data.names[c] for c in seen)))
        for (i, token), seen in found.items()
    ]


def _token_error(
    found: list[tuple[int, ConflictGroup]], origin: Origin, show: Callable[[list[int]], str]
) -> ConflictError:
    lines = [
        f"  {origin.unit} {group.rows[0]}: token {show([token])!r} -> {_labels(group.labels)}"
        for token, group in found[:SHOWN]
    ]
    message = (
        f"{origin.prefix()}{_count(len(found), 'token')} of one sequence with more than one label, read as multisets:\n"
        + _listing(lines, len(found))
        + "\npass ordered=True to tell positions apart, or on_conflict='drop' or 'first' "
        "(--ordered and --on-conflict on the command line)"
    )
    return ConflictError(message, kind="token", groups=tuple(group for _, group in found))


def _item_error(
    data: Rows,
    alive: Int64[np.ndarray, " alive"],
    groups: Groups,
    label: Int64[np.ndarray, " alive"],
    ambiguous: Bool[np.ndarray, " groups"],
    ordered: bool,
    origin: Origin,
    show: Callable[[list[int]], str],
) -> ConflictError:
    members = np.flatnonzero(ambiguous[groups.group])  # ascending, so the first of each pair is its first row
    leader = groups.first[groups.group[members]]  # groups are listed by their first row
    pairs = group_rows(np.stack([leader, label[members]], axis=1))
    shown_rows = members[pairs.first]  # one row per (item, label)
    shown_rows = shown_rows[np.lexsort((shown_rows, groups.first[groups.group[shown_rows]]))]
    cuts = [0, *(np.flatnonzero(np.diff(groups.group[shown_rows])) + 1).tolist(), len(shown_rows)]
    places = data.rows[alive[shown_rows]].tolist()
    labels = _named(data, alive[shown_rows])
    found = tuple(ConflictGroup(tuple(places[a:b]), tuple(labels[a:b])) for a, b in pairwise(cuts))
    kind, remedy, what = "duplicate-sequence", "", "sequence"
    if not ordered:
        what = "multiset of tokens"
        literal = _literal(data.tokens[alive[members]], label[members], groups.group[members])
        kind = "duplicate-sequence" if literal else "permutation"
        if literal < len(found):
            resolved = "" if not literal else f" ({len(found) - literal} of them)"
            remedy = f"pass ordered=True to tell permutations apart{resolved} (--ordered), or "
    lines = []
    for start, group in zip(cuts[:SHOWN], found, strict=False):
        ids = data.tokens[alive[shown_rows[start]]]
        told = list(zip(group.rows, group.labels, strict=True))
        listed = ", ".join(f"{row} -> {brief(label)}" for row, label in told[:SHOWN])
        listed += f", and {len(told) - SHOWN} more labels" if len(told) > SHOWN else ""
        lines.append(f"  {show(ids[ids != data.pad].tolist())!r}: {origin.unit} {listed}")
    plural = "carries" if len(found) == 1 else "carry"
    note = "" if origin.unit in ("line", "row") else f" ({origin.unit} = position of the window's first {origin.unit})"
    message = (
        f"{origin.prefix()}{_count(len(found), what)} {plural} more than one label{note}:\n"
        + _listing(lines, len(found))
        + f"\n{remedy}choose on_conflict='drop' (leave them out) or 'first' (keep the first label) "
        "(--on-conflict on the command line)"
    )
    return ConflictError(message, kind=kind, groups=found)


def _literal(
    tokens: Int64[np.ndarray, "members length"],
    label: Int64[np.ndarray, " members"],
    group: Int64[np.ndarray, " members"],
) -> int:
    """How many multisets have one and the same sequence under two labels: those ``ordered=True`` does not resolve."""
    same = group_rows(tokens)
    contradicts = label != label[same.first][same.group]
    return len(np.unique(group[contradicts]))


def _named(data: Rows, rows: Int64[np.ndarray, " shown"]) -> list[object]:
    """The label of each row; for labels per position the tuple of them."""
    codes = data.codes[rows].tolist()
    if data.codes.ndim == 1:
        return [data.names[code] for code in codes]
    return [tuple(data.names[code] for code in row if code >= 0) for row in codes]


def _labels(labels: tuple[object, ...]) -> str:
    more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
    return ", ".join(brief(label) for label in labels[:SHOWN]) + more


def _count(number: int, what: str) -> str:
    plural = what if number == 1 else "multisets of tokens" if what.startswith("multiset") else f"{what}s"
    return f"{number} {plural}"


def _listing(lines: list[str], total: int) -> str:
    more = f"\n  … and {total - SHOWN} more" if total > SHOWN else ""
    return "\n".join(lines) + more
