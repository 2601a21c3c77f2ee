"""`SequenceData`: what is to be remembered, as distinct items with one label each.

Readers (``readers.py``) and `SequenceData.from_arrays` make it; nothing else about files or text is in here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from memcap.data.arrays import integer_rows, label_rows, vector_rows
from memcap.data.conflicts import Dropped, Rows, check_choice, settle
from memcap.data.encoding import Encoding
from memcap.data.identity import content_hash
from memcap.data.labels import Label, order_classes
from memcap.data.origin import Origin
from memcap.data.padding import pad_rows
from memcap.data.projection import distinct_vectors, fit_projection
from memcap.errors import DataError


@dataclass(frozen=True, eq=False)
class SequenceData:
    """Distinct token sequences (or multisets) with one label each, or one label per position.

    The arrays are read-only: what is certified is named by `content_hash`.

    Attributes:
        tokens: ids in [0, V), right-padded with V where a row is shorter than ``length``; distinct items only.
        lengths: true length of each row, at least 1.
        labels: class index in [0, C) per row; or per position, -1 on padding.
        ordered: True: position matters; False: rows are multisets (kept in the order read).
        vocabulary_size: V; the padding id is V.
        label_names: class index -> label as read (str, int or bool); common labels first, equally common by value.
        encoding: how raw items become ids.
        rows: 1-based row of the source (see ``row_unit``) of the first occurrence of each item.
        duplicates: rows not kept because they repeat an item with the same label.
        dropped: what an explicit ``on_conflict`` left out.
        row_unit: what ``rows`` counts: line, row, or the first word (character, ...) of a text window.
        points: of real-valued tokens: the ids in ascending order and the vector of each; None otherwise.

    >>> data = SequenceData.from_arrays([[1, 2], [2, 1], [1, 2], [3]], ["a", "b", "a", "b"])
    >>> data.tokens.tolist(), data.labels.tolist(), data.label_names, data.duplicates
    ([[1, 2], [2, 1], [3, 4]], [1, 0, 0], ('b', 'a'), 1)
    """

    tokens: Int64[np.ndarray, "rows length"]
    lengths: Int64[np.ndarray, " rows"]
    labels: Int64[np.ndarray, " rows"] | Int64[np.ndarray, "rows length"]
    ordered: bool
    vocabulary_size: int
    label_names: tuple[Label, ...]
    encoding: Encoding
    rows: Int64[np.ndarray, " rows"]
    duplicates: int
    dropped: Dropped
    row_unit: str = "row"
    points: tuple[Int64[np.ndarray, " distinct"], Float64[np.ndarray, "distinct dimension"]] | None = None

    def __post_init__(self) -> None:
        for array in (self.tokens, self.lengths, self.labels, self.rows):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        kind = "ordered" if self.ordered else "multisets"
        where = " per position" if self.per_position else ""
        left_out = f", {self.dropped.groups} ambiguous" if self.dropped.groups else ""
        return (
            f"SequenceData({len(self)} items, length {self.length}, {kind}, {self.vocabulary_size} "
            f"{self.encoding.unit} ids, {self.classes} classes{where}, {self.duplicates} duplicates{left_out})"
        )

    @property
    def length(self) -> int:
        """Length of the longest item (columns of ``tokens``)."""
        return int(self.tokens.shape[1])

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return len(self.label_names)

    @property
    def per_position(self) -> bool:
        """True for sequence-to-sequence data: one label per position."""
        return self.labels.ndim == 2

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 (hex) of everything that defines the data; the order of rows, file names and duplicates do not."""
        return content_hash(
            self.tokens,
            self.lengths,
            self.labels,
            ordered=self.ordered,
            label_names=self.label_names,
            encoding=self.encoding,
        )

    def encode(self, items: Iterable[object]) -> tuple[Int64[np.ndarray, "items length"], Int64[np.ndarray, " items"]]:
        """Raw items (text, lists, arrays) as padded ids and true lengths, with this data's encoding.

        Raises:
            DomainError: on an unknown symbol, an empty item or one longer than `length`; names the item.
            DataError: on an item of a type that the encoding does not read.
        """
        return self.encoding.encode_batch(items, length=self.length)

    def item(self, index: int) -> Any:
        """The raw form of one item: as `Encoding.decode` gives it, or its vectors, float64 (length, d)."""
        if self.points is not None:
            ids, vectors = self.points
            return vectors[np.searchsorted(ids, self.tokens[index, : self.lengths[index]])]
        return self.encoding.decode(self.tokens[index, : self.lengths[index]].tolist())

    def translate(self, encoding: Encoding) -> Int64[np.ndarray, "rows length"]:
        """The same items in the ids of another ``encoding`` (that of a memory), -1 for symbols it does not know.

        Raises:
            DomainError: if the kinds differ, or the tokenizers.
        """
        return self.encoding.translate(self.tokens, encoding)

    def with_labels(self, labels: Any) -> SequenceData:
        """The same items with other labels, one per item (or one per position) in the order of ``tokens``.

        Raises:
            DataError: if the number of labels differs, a label is null or a float, or there is one class only.
        """
        origin = Origin("", self.row_unit)
        codes, names = label_rows(labels, self.lengths, lambda i: f"item {i}")
        flat = self.tokens[np.arange(self.length) < self.lengths[:, None]]
        made = SequenceData.from_rows(
            flat,
            self.lengths,
            codes,
            names,
            self.rows,
            self.encoding,
            ordered=self.ordered,
            on_conflict="error",
            origin=origin,
        )
        return replace(made, duplicates=self.duplicates, dropped=self.dropped, points=self.points)

    @classmethod
    def from_arrays(cls, tokens: Any, labels: Any, *, ordered: bool = True, on_conflict: str = "error") -> SequenceData:
        """Data from integers.

        Args:
            tokens: integers >= 0: 1-D (each row is one token), 2-D, or a ragged list of sequences.
            labels: any scalars, one per row; or one per position, in the shape of ``tokens``.
            ordered: False reads rows as multisets.
            on_conflict: ``error``, ``drop`` (leave out items with several labels) or ``first`` (keep the first label).

        Raises:
            DataError: on anything that is not integers, empty rows, null or float labels, one class only.
            ConflictError: if an item carries different labels; lists the rows.
        """
        check_choice(on_conflict)
        origin = Origin()
        flat, lengths = integer_rows(tokens)
        codes, names = label_rows(labels, lengths, origin.at)
        encoding = Encoding.of_integers(int(flat.max()) + 1)
        rows = np.arange(1, len(lengths) + 1, dtype=np.int64)
        return cls.from_rows(
            flat, lengths, codes, names, rows, encoding, ordered=ordered, on_conflict=on_conflict, origin=origin
        )

    @classmethod
    def from_vectors(
        cls,
        tokens: Any,
        labels: Any,
        *,
        separation: float | None = None,
        radius: float | None = None,
        ordered: bool = True,
        on_conflict: str = "error",
        seed: int = 0,
    ) -> SequenceData:
        """Data from real-valued tokens in R^d, token-wise (r, delta)-separated as in the paper.

        Args:
            tokens: floats (rows, length, d), or a ragged list of (length, d) arrays.
            labels: any scalars, one per row; or one per position.
            separation: delta: distinct tokens keep at least this distance (checked); measured when None.
            radius: r: norms stay within this (checked); measured when None.
            ordered: False reads rows as multisets.
            on_conflict: ``error``, ``drop`` or ``first``.
            seed: of the projection to integers.

        Raises:
            DataError: on tokens that are not finite, not separated (it names the closest pair) or of mixed dimension.
            ConflictError: if an item carries different labels; lists the rows.
        """
        check_choice(on_conflict)
        origin = Origin()
        flat, lengths = vector_rows(tokens)
        codes, names = label_rows(labels, lengths, origin.at)
        distinct, places = distinct_vectors(flat, lengths)
        projection = fit_projection(distinct, places, separation=separation, radius=radius, seed=seed)
        rows = np.arange(1, len(lengths) + 1, dtype=np.int64)
        encoding = Encoding.of_vectors(projection)
        made = cls.from_rows(
            projection.project(flat + 0.0),
            lengths,
            codes,
            names,
            rows,
            encoding,
            ordered=ordered,
            on_conflict=on_conflict,
            origin=origin,
        )
        ids = projection.project(distinct)
        order = np.argsort(ids)
        return replace(made, points=(ids[order], distinct[order]))

    @classmethod
    def from_rows(
        cls,
        flat: Int64[np.ndarray, " tokens"],
        lengths: Int64[np.ndarray, " all"],
        codes: Int64[np.ndarray, " all"] | Int64[np.ndarray, "all width"],
        names: list[Label],
        rows: Int64[np.ndarray, " all"],
        encoding: Encoding,
        *,
        ordered: bool,
        on_conflict: str,
        origin: Origin,
    ) -> SequenceData:
        """Data from encoded rows: settle duplicates and conflicts, order the classes.  For readers."""
        table = pad_rows(flat, lengths, encoding.pad, place=lambda row: origin.at(int(rows[row - 1])))
        settled = settle(
            Rows(table, codes, names, rows, encoding.pad),
            ordered=ordered,
            on_conflict=on_conflict,
            origin=origin,
            show=encoding.show,
        )
        if not len(settled.keep):
            raise DataError(f"{origin.prefix()}every item is ambiguous: nothing is left after on_conflict='drop'")
        kept = lengths[settled.keep]
        width = int(kept.max())
        labels, label_names = order_classes(settled.codes, names, origin.prefix())
        return cls(
            tokens=np.ascontiguousarray(table[settled.keep, :width]),
            lengths=kept,
            labels=np.ascontiguousarray(labels[:, :width]) if labels.ndim == 2 else labels,
            ordered=ordered,
            vocabulary_size=encoding.vocabulary_size,
            label_names=label_names,
            encoding=encoding,
            rows=rows[settled.keep],
            duplicates=settled.duplicates,
            dropped=settled.dropped,
            row_unit=origin.unit,
        )
