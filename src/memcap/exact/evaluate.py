"""The reference evaluator: what a network computes, in integer arithmetic, from its stored entries alone.

It assumes nothing about how the network was constructed and it never rounds: an output that is not exactly
``unit * label`` is `NOT_A_LABEL`.  Faster evaluators are tested against this one.  Called by certificates and memories.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memcap.errors import ConfigurationError, PrecisionError, nearest
from memcap.exact.affine import INT64_MAX
from memcap.exact.engines import Audit, Engine, Int64Engine, ObjectEngine, Overflow, State, apply_block
from memcap.exact.inputs import Rows, as_rows, is_sequence, split
from memcap.exact.network import Attention, Block, Network

NOT_A_LABEL = -1
"""Returned where the output is not ``unit * label`` with an integer label in [0, 2^62)."""

ENGINES = ("auto", "int64", "object")
Progress = Callable[[int, int, str], None]
"""Called as ``progress(done, total, what)``."""

_CHUNK_BYTES = 2**25


def evaluate(
    network: Network,
    rows: Rows | Sequence[int] | Sequence[Sequence[int]],
    *,
    engine: str = "auto",
    table: bool = True,
    workers: int = 1,
    audit: Audit | None = None,
    progress: Progress | None = None,
) -> NDArray[np.int64]:
    """The label of every row, computed in integer arithmetic.

    Args:
        network: any network; only its stored entries are used.
        rows: token ids (rows, length), padded to the network's length, or integer keys (rows,).
        engine: ``int64`` (sparse int64 products, each batch proved free of overflow before it is computed),
            ``object`` (Python integers of any size), or ``auto``: int64 where the proof succeeds, else object.
        table: evaluate the stages before the attention once per distinct (token, position) and gather; the same
            numbers, computed once.  ``False`` evaluates them at every position of every row.
        workers: processes; results do not depend on it.
        audit: filled with an upper bound of every layer's partial sums over these rows (one worker, not ``object``).
        progress: called after every batch with rows done, rows in all and what is being done.

    Returns:
        int64 labels, (rows,) or (rows, length) for a network read per position; `NOT_A_LABEL` where the output is not
        exactly ``unit * label``, or a mean of the attention is not an integer.

    Raises:
        DomainError: for rows outside the range the network was built for.
        PrecisionError: if ``engine="int64"`` and a partial sum could leave int64.
        ConfigurationError: for an unknown engine or an audit that cannot be taken.

    Source: the network's definition, `memcap.exact.network`.
    """
    if engine not in ENGINES:
        raise ConfigurationError(
            f"engine must be one of {', '.join(ENGINES)}, got {engine!r}{nearest(engine, ENGINES)}"
        )
    if audit is not None and (engine == "object" or workers != 1):
        raise ConfigurationError("an audit is taken by the int64 engine in one process: engine='int64', workers=1")
    if workers < 1:
        raise ConfigurationError(f"workers must be at least 1, got {workers}")
    array = as_rows(network, rows)
    if workers > 1 and len(array) > workers:
        return _in_processes(network, array, engine, table, workers, progress)
    run = _Evaluation(network, engine, table, audit)
    parts = []
    done = 0
    for part in run.chunks(array):
        parts.append(part)
        done += len(part)
        if progress is not None:
            progress(done, len(array), f"evaluating in integers ({run.engine.name})")
    empty = np.zeros((0, network.length) if network.per_position else 0, dtype=np.int64)
    return np.concatenate([empty, *parts])


def trace(
    network: Network, rows: Rows | Sequence[int] | Sequence[Sequence[int]], *, engine: str = "object"
) -> list[tuple[str, State]]:
    """The state after the embedding and after every stage, for tests and for reading along.

    Returns:
        (stage name, state (channels, rows[, length])) pairs: ``embed``, every stage, ``output`` (1, rows[, length]).
    """
    array = as_rows(network, rows)
    try:
        return _traced(network, array, engine)
    except Overflow as overflow:
        if engine == "int64":
            raise PrecisionError(f"layer {overflow}: a partial sum could leave int64; use engine='object'") from None
        return _traced(network, array, "object")


def _traced(network: Network, array: Rows, engine: str) -> list[tuple[str, State]]:
    run = _Evaluation(network, engine, table=False, audit=None)
    shape = array.shape
    states: list[tuple[str, State]] = []
    state = run.embed([c.reshape(-1) for c in split(network, array)])
    states.append(("embed", state.reshape(-1, *shape)))
    for number, stage in enumerate(network.stages):
        if isinstance(stage, Block):
            state = run.blocks([(number, stage)], state)
        else:
            state = run.attend(number, stage, state.reshape(-1, *shape), every_position=True)[0].reshape(len(state), -1)
        states.append((stage.name, state.reshape(-1, *shape)))
    states.append(("output", run.read(state).reshape(-1, *shape)))
    return states


@dataclass
class _Table:
    """States before the attention, one per distinct (token, position)."""

    codes: NDArray[np.int64]
    states: State


class _Evaluation:
    """One evaluation: an engine, and the table of states before the attention."""

    def __init__(self, network: Network, engine: str, table: bool, audit: Audit | None) -> None:
        self.network, self.requested, self.audit = network, engine, audit
        at = network.attention_index
        stages = list(enumerate(network.stages))
        self.before = [(i, s) for i, s in stages[: at or 0] if isinstance(s, Block)]
        self.after = [(i, s) for i, s in stages[0 if at is None else at + 1 :] if isinstance(s, Block)]
        self.at = at
        narrow = all(layer.weight.dtype != object and layer.bias.dtype != object for _, layer in network.maps())
        if engine == "int64" and not narrow:
            raise PrecisionError("a stored weight is wider than int64; use engine='object' or 'auto'")
        self.engine: Engine = Int64Engine(audit) if narrow and engine != "object" else ObjectEngine()
        self.table = table and at is not None and is_sequence(network)

    def chunks(self, array: Rows) -> Iterator[NDArray[np.int64]]:
        """Labels of consecutive batches of rows."""
        network = self.network
        states = self._token_table(array) if self.table and len(array) else None
        positions = network.length if network.per_position or (self.at is not None and states is None) else 1
        per_row = 8 * max(network.widest, len(network.channels)) * positions
        per_row += 8 * len(network.channels) * network.length  # gathered states before the attention
        size = int(np.clip(_CHUNK_BYTES // per_row, 16, 8192))
        for start in range(0, len(array), size):
            rows = array[start : start + size]
            yield self._or_object(lambda rows=rows: self._labels(rows, states))  # type: ignore[misc]

    def _or_object(self, compute: Callable[[], NDArray[np.int64]]) -> NDArray[np.int64]:
        try:
            return compute()
        except Overflow as overflow:
            if self.requested == "int64" or self.audit is not None:
                raise PrecisionError(
                    f"layer {overflow}: a partial sum could leave int64 on these rows; use engine='object' or 'auto'"
                ) from None
            self.engine = ObjectEngine()
            return compute()

    def _token_table(self, array: Rows) -> _Table:
        """States of every distinct (token, position) of ``array`` before the attention."""
        length = self.network.length
        codes: NDArray[np.int64] = np.unique(array.astype(np.int64) * length + np.arange(length))
        state: State | None = None

        def compute() -> NDArray[np.int64]:
            nonlocal state
            parts = []
            for start in range(0, len(codes), 8192):
                some = codes[start : start + 8192]
                parts.append(self.blocks(self.before, self.embed([some // length, some % length])))
            state = np.concatenate(parts, axis=1)
            return codes

        self._or_object(compute)
        assert state is not None
        return _Table(codes, state)

    def _labels(self, rows: Rows, table: _Table | None) -> NDArray[np.int64]:
        network, shape = self.network, rows.shape
        whole: NDArray[np.bool_] = np.ones(len(rows), dtype=bool)
        if table is not None:
            wanted = rows.astype(np.int64) * network.length + np.arange(network.length)
            gathered = table.states[:, np.searchsorted(table.codes, wanted)]
            if isinstance(self.engine, ObjectEngine):  # a table from int64 stays usable after a switch
                gathered = gathered.astype(object)
        else:
            state = self.embed([c.reshape(-1) for c in split(network, rows)])
            gathered = self.blocks(self.before, state).reshape(-1, *shape)
        if self.at is not None:
            attention = network.stages[self.at]
            assert isinstance(attention, Attention)
            gathered, whole = self.attend(self.at, attention, gathered, every_position=network.per_position)
        elif is_sequence(network) and not network.per_position:
            gathered = gathered[:, :, -1]
        kept = gathered.shape[1:]
        out = self.read(self.blocks(self.after, gathered.reshape(len(gathered), -1)))[0]
        if network.unit > INT64_MAX:
            out = out.astype(object)
        quotient, rest = out // network.unit, out % network.unit
        good = np.asarray((rest == 0) & (quotient >= 0) & (quotient < 2**62), dtype=bool).reshape(kept)
        good &= whole if len(kept) == 1 else whole[:, None]
        labels = np.full(kept, NOT_A_LABEL, dtype=np.int64)
        labels[good] = quotient.reshape(kept)[good].astype(np.int64)
        return labels

    def embed(self, columns: list[Rows]) -> State:
        return self.engine.linear("embed", self.network.embed, self.engine.state(columns))

    def blocks(self, stages: Sequence[tuple[int, Block | Attention]], state: State) -> State:
        for number, stage in stages:
            assert isinstance(stage, Block)
            state = apply_block(self.engine, number, stage, state)
        return state

    def attend(
        self, number: int, stage: Attention, state: State, *, every_position: bool
    ) -> tuple[State, NDArray[np.bool_]]:
        """State (channels, rows[, length]) after the attention, and which rows had an integer mean."""
        channels, rows, length = state.shape
        name = f"{number:04d}.{stage.name}"
        value = self.engine.linear(f"{name}.value", stage.value, state.reshape(channels, -1))
        heads = value.reshape(-1, rows, length)
        if isinstance(self.engine, Int64Engine) and np.abs(heads.astype(np.float64)).max(initial=0) * length > 2.0**62:
            raise Overflow(f"{name}.mean")
        total = np.add.reduce(heads, axis=2)
        whole: NDArray[np.bool_] = np.logical_and.reduce(np.asarray(total % length == 0, dtype=bool), axis=0)
        mean = total // length
        if every_position:
            mean, base = np.repeat(mean, length, axis=1), state.reshape(channels, -1)
        else:
            base = np.ascontiguousarray(state[:, :, -1])
        after = self.engine.linear(f"{name}.output", stage.output, mean, base)
        if self.audit is not None:
            self.audit.note_after_attention(after)
        return (after.reshape(channels, rows, length) if every_position else after), whole

    def read(self, state: State) -> State:
        return self.engine.linear("read", self.network.read, state)


def _one_share(share: tuple[Network, Rows, str, bool]) -> NDArray[np.int64]:
    network, rows, engine, table = share
    return evaluate(network, rows, engine=engine, table=table)


def _in_processes(
    network: Network, array: Rows, engine: str, table: bool, workers: int, progress: Progress | None
) -> NDArray[np.int64]:
    shares = np.array_split(array, min(len(array), workers * 4))
    parts, done = [], 0
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        for part in pool.map(_one_share, [(network, share, engine, table) for share in shares]):
            parts.append(part)
            done += len(part)
            if progress is not None:
                progress(done, len(array), f"evaluating in integers ({workers} processes)")
    return np.concatenate(parts)
