"""A memory: a network that recalls a data set, with all that is needed to use it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memcap.construct.front_choice import padded_length
from memcap.data.sequences import SequenceData
from memcap.errors import ConfigurationError, DataError
from memcap.exact.counts import ParameterCount, count
from memcap.exact.network import Network
from memcap.model.answering import answer
from memcap.model.bounds import information_bounds
from memcap.model.header import Header, Label
from memcap.model.recall import Recall

if TYPE_CHECKING:
    import torch

    from memcap.exact.certificate import Certificate
    from memcap.exact.plain_mlp import PlainMLP
    from memcap.model.onnx_export import OnnxReport

Progress = Callable[[int, int, str], None]

UNHEARD = 2**40
"""Class given to a label that a memory has never heard of."""


@dataclass(frozen=True, eq=False)
class Memory:
    """A transformer whose weights were written to recall a data set.

    Make one with `memcap.build` or `memcap.load`.

    Attributes:
        network: the integer network; every number of it is a stored weight.
        header: encoding, labels, method and provenance.
        certificate: the certificate it was saved with, if any.
        data: what it was built from; None after `memcap.load`.
        facts_changed: loaded with ``allow_changed`` and labels, encoding or method are not the saved ones.
    """

    network: Network
    header: Header
    certificate: Certificate | None = None
    data: SequenceData | None = None
    facts_changed: bool = False

    @property
    def parameters(self) -> ParameterCount:
        """Counts ``nonzero``, ``stored``, ``dense``, ``bits``, ``by_part``, and the ``bounds`` beside them."""
        counts = count(self.network)
        projection = self.header.encoding.projection
        if projection is not None:
            numbers = [n for n in (*projection.weights, projection.offset) if n]
            counts = replace(
                counts,
                nonzero=counts.nonzero + len(numbers),
                stored=counts.stored + len(numbers),
                dense=counts.dense + projection.dimension + 1,
                bits=counts.bits + sum(abs(n).bit_length() + 1 for n in numbers),
                by_part={"projection": len(numbers), **counts.by_part},
            )
        return replace(counts, bounds=information_bounds(self.header, counts))

    @property
    def identity(self) -> str:
        """SHA-256 over every stored number, zeros included."""
        from memcap.exact.identity import network_identity

        return network_identity(self.network)

    def predict(self, items: Sequence[Any] | NDArray[np.int64], *, engine: str = "auto") -> list[Any]:
        """The label of every item, as read; None where the output is no label.

        A keyed memory, or one with fingerprint bits, gives None for items it does not hold.  Any other memory gives a
        stranger an arbitrary label, or None when the output happens to be none.

        Args:
            items: raw items as the data had them (strings, or sequences of integers; a one-dimensional integer array is
                a list of one-token sequences).
            engine: see `memcap.model.answering.answer`.

        Returns:
            One label an item; for sequence to sequence one list of labels an item.

        Raises:
            DomainError: for an unknown symbol, an empty item, or one that is too long; it names the item.
        """
        tokens, lengths = self.encode(items)
        classes = self._classes(tokens, engine=engine)
        if not self.network.per_position:
            return [self._name(c) for c in classes.tolist()]
        return [[self._name(c) for c in row[:n]] for row, n in zip(classes.tolist(), lengths, strict=True)]

    def recall(self, data: SequenceData, *, engine: str = "auto", progress: Progress | None = None) -> Recall:
        """Ask for every item of ``data`` and compare with its label.

        Raises:
            DataError: if ``data`` was read with another encoding, order or labels than this memory.
        """
        self.check_fits(data)
        wanted = self.wanted(data)
        classes = self._classes(self.tokens_of(data), engine=engine, progress=progress)
        classes = classes[:, : wanted.shape[1]] if self.network.per_position else classes
        real = wanted >= 0
        right = (classes == wanted) & real
        bad_rows = np.flatnonzero(((~right) & real).reshape(len(wanted), -1).any(axis=1))
        return Recall(
            correct=int(right.sum()),
            total=int(real.sum()),
            wrong=tuple(int(r) for r in data.rows[bad_rows]),
            ties=int(((classes == -1) & real).sum()),
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the memory folder: ``memory.json``, the weights and, if there is one, ``certificate.json``.

        Raises:
            FormatError: if ``path`` exists and is not a memory folder.
            ConfigurationError: if the folder that is to hold it does not exist.
        """
        from memcap.model.files import write_folder

        write_folder(path, self.network, self.header.to_json(), self.certificate, self.header.weights)

    def to_onnx(
        self, path: str | PathLike[str], data: SequenceData | None = None, *, progress: Progress | None = None
    ) -> OnnxReport:
        """Write an ONNX file and ask every item of it through onnxruntime before it is kept.

        Its input is ``tokens``, int64 (rows, any length up to the memory's), or ``keys`` (rows,); its output
        ``labels`` holds label numbers, whose names are in the file's metadata; -1, and any number without a name (of an
        item the memory never saw), mean none.

        Args:
            path: the ``.onnx`` file.
            data: the data to certify on; by default what the memory was built from.  A loaded memory does not hold its
                data: without ``data`` the report is falsy, for nothing was asked.

        Raises:
            MissingExtraError: if onnx or onnxruntime is not installed.
            ConfigurationError: if the folder that is to hold the file does not exist.
            PrecisionError: if no number format of ONNX holds an exact memory, or the runtime lacks a kernel.
            RunError: if the runtime answers an item wrong; the file is not kept.
        """
        from memcap.model.exports import memory_to_onnx

        return memory_to_onnx(self, path, self.data if data is None else data, progress)

    def to_plain_mlp(self, data: SequenceData | None = None, *, neurons: int | None = None) -> PlainMLP:
        """The same memory without skip connections, as integer layers with ReLU between them; single tokens only.

        Args:
            data: the items it must be exact for; by default what the memory was built from.  A loaded memory without
                ``data`` is converted for every key in range.
            neurons: most neurons a layer adds to the carried channels; with 2 the width does not grow with the items:
                4 for exact memories with the step selector, more for others.

        Raises:
            ConfigurationError: for a memory of sequences.
        """
        from memcap.model.exports import memory_to_plain_mlp

        return memory_to_plain_mlp(self, self.data if data is None else data, neurons)

    def to_module(self) -> torch.nn.Module:
        """A torch module with ordinary weights: token ids (rows, length) or keys (rows,) in, class indices out.

        A memory of real-valued tokens reads vectors (rows, length, d).  What is no label (of an item the memory never
        saw) is -1; a keyed memory counts from 1, and 0 means unknown.

        Raises:
            PrecisionError: if the weights do not fit the memory's number format (exact memories).
        """
        from memcap.model.literal import to_module
        from memcap.model.projected import ProjectedNetwork

        module = to_module(self.network, self.header.weights)
        module.outputs = self.header.first_label + self.header.classes
        projection = self.header.encoding.projection
        return module if projection is None else ProjectedNetwork(module, projection)

    def encode(self, items: Sequence[Any] | NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Raw items -> padded token ids (rows, length) and true lengths (rows,)."""
        return self.header.encoding.encode_batch(items, length=self.network.length)

    def tokens_of(self, data: SequenceData) -> NDArray[np.int64]:
        """The items of ``data`` as this memory's token ids, padded to its length.

        Raises:
            DataError: if an item holds a symbol this memory does not know; it names the row.
        """
        tokens = data.translate(self.header.encoding)
        strange = np.flatnonzero((tokens < 0).any(axis=1))
        if len(strange):
            raise DataError(
                f"{len(strange)} items hold a {data.encoding.unit} this memory does not know, the first at "
                f"{data.row_unit} {int(data.rows[strange[0]])}"
            )
        padded = np.full((len(tokens), self.network.length), self.header.encoding.pad, dtype=np.int64)
        padded[:, : tokens.shape[1]] = tokens
        return padded

    def classes_of(self, data: SequenceData) -> NDArray[np.int64]:
        """The class this memory gives every item of ``data``: (rows, 1) or (rows, length); negative for no label."""
        return self._classes(self.tokens_of(data))

    def check_fits(self, data: SequenceData) -> None:
        """Raise `DataError` unless ``data`` speaks this memory's language."""
        header = self.header
        if data.ordered != header.ordered:
            wanted = "ordered" if header.ordered else "multiset"
            raise DataError(
                f"this memory was built from {wanted} sequences; read the data with ordered={header.ordered}"
            )
        if data.per_position != self.network.per_position:
            kind = "a label per position" if self.network.per_position else "one label per sequence"
            raise DataError(f"this memory gives {kind}; the data have the other kind")
        if padded_length(data.length) > self.network.length:
            raise DataError(
                f"the data have {data.length} tokens a row; this memory reads at most {self.network.length}"
            )

    def wanted(self, data: SequenceData) -> NDArray[np.int64]:
        """The class of every item in this memory's numbering: int64 (rows, 1) or (rows, length), -1 on padding.

        A label this memory has never heard of becomes a class that no output equals.
        """
        known = {(type(name), name): i for i, name in enumerate(self.header.label_names)}  # True is not 1 here
        places = [known.get((type(name), name), UNHEARD) for name in data.label_names]
        index = np.array([*places, -1], dtype=np.int64)
        classes = index[data.labels]
        shaped: NDArray[np.int64] = classes if data.per_position else classes.reshape(-1, 1)
        return shaped

    def relabel(self, labels: Sequence[Label] | SequenceData, data: SequenceData | None = None) -> Memory:
        """The same items with new labels.

        Full-rank networks change their word weights only; packed ones, whose structure depends on the labels, are built
        again (``memory.header.structure["relabelled"]`` says which).

        Args:
            labels: new labels, one per item in the order of the data, or the relabelled data.
            data: the data this memory was built from; needed after `load`, which does not keep it.

        Raises:
            DataError: if the data are not the items of this memory, or the labels do not fit them.
            ConfigurationError: if a loaded memory is given neither.
        """
        from memcap.model.build import relabelled
        from memcap.model.same_items import require_same_items

        source = data if data is not None else self.data
        if data is not None:
            require_same_items(self, data)
        if isinstance(labels, SequenceData):
            require_same_items(self, labels)
            return relabelled(self, labels)
        if source is None:
            raise ConfigurationError("a loaded memory does not hold its data: call relabel(labels, data=data)")
        return relabelled(self, source.with_labels(labels))

    def with_reading(self, options: dict[str, Any]) -> Memory:
        """The same memory, remembering how its data file was read."""
        return replace(self, header=replace(self.header, reading=dict(options)))

    def with_certificate(self, certificate: Certificate | None) -> Memory:
        """The same memory carrying ``certificate``."""
        return replace(self, certificate=certificate)

    def _classes(
        self, tokens: NDArray[np.int64], *, engine: str = "auto", progress: Progress | None = None
    ) -> NDArray[np.int64]:
        """Class of every padded row, (rows, 1) or (rows, length); -1 no label at all, -3 unknown."""
        header = self.header
        outputs = answer(self.network, header.weights, tokens, engine=engine, progress=progress)
        classes = outputs - header.first_label
        classes[(outputs >= 0) & (outputs < header.first_label)] = -3
        if header.reject_from is not None:
            classes[outputs >= header.reject_from] = -3
        classes[outputs < 0] = -1
        classes[classes >= header.classes] = -1
        return classes if self.network.per_position else classes.reshape(-1, 1)

    def _name(self, index: int | list[int]) -> Any:
        position = index[0] if isinstance(index, list) else index
        return self.header.label_names[position] if position >= 0 else None
