"""The literal torch module of a network: every neuron an ordinary weight, a real softmax attention, nothing hidden.

It computes in float64, float32 or int64 and is exact because every partial sum is an exact integer of that format (see
`memcap.exact.ranges`).  It is the readable form; faster ones are tested against it.  Called by `Memory.to_module`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from memcap.errors import DomainError, PrecisionError
from memcap.exact.affine import Affine
from memcap.exact.evaluate import NOT_A_LABEL, Progress
from memcap.exact.inputs import is_sequence
from memcap.exact.network import Attention, Block, Network
from memcap.exact.ranges import format_for, limit_of
from memcap.model.arithmetic import plain_arithmetic
from memcap.model.network_json import DENSE, PAIRS, dense_arrays

_DTYPES = {"float32": torch.float32, "float64": torch.float64, "int64": torch.int64}

Rows = Int64[Tensor, "rows length"] | Int64[Tensor, "rows"]


def number_format(name: str) -> tuple[torch.dtype, int]:
    """The torch dtype and exact range of ``float64``, ``float32`` or ``int64``.

    Raises:
        PrecisionError: for float16 and bfloat16, which cannot hold the states.
        ConfigurationError: for any other name.
    """
    limit = limit_of(name)
    if limit is None:
        raise PrecisionError("torch has no integers of any size: choose float64, float32 or int64")
    return _DTYPES[name], limit


def exact_tensor(values: NDArray[Any], dtype: str, where: str) -> Tensor:
    """Integers as a tensor of ``dtype``, made from int64 and checked by the way back.

    Raises:
        PrecisionError: if a value is not exactly representable; names the layer, the value and what would hold it.
    """
    kind, limit = number_format(dtype)
    largest = max((abs(int(v)) for v in values.reshape(-1)), default=0)
    if largest > limit:
        fits = [name for name in _DTYPES if largest <= number_format(name)[1]]
        remedy = f"{' or '.join(fits)} would hold it" if fits else "only exact integers (weights='exact') hold it"
        raise PrecisionError(
            f"layer {where}: a weight of {largest.bit_length()} bits does not fit {dtype}, which holds every integer "
            f"up to {limit.bit_length() - (dtype != 'int64')} bits; {remedy}"
        )
    whole = torch.from_numpy(np.ascontiguousarray(values.astype(np.int64)))
    tensor = whole.to(kind)
    if not torch.equal(tensor.to(torch.int64), whole):
        raise PrecisionError(f"layer {where}: a weight changed on its way to {dtype}")
    return tensor


def _parameter(values: NDArray[Any], dtype: str, where: str) -> nn.Parameter:
    tensor = exact_tensor(values, dtype, where)
    return nn.Parameter(tensor, requires_grad=tensor.is_floating_point())


class AffineLayer(nn.Module):
    """``W x + b`` with an ordinary dense weight, or (outputs, 2) weights for structured pairs; any number format."""

    def __init__(self, layer: Affine, dtype: str, where: str, *, pairs: bool = False) -> None:
        super().__init__()
        self.pairs = pairs
        weight, bias = dense_arrays(layer, PAIRS if pairs else DENSE)
        self.weight, self.bias = _parameter(weight, dtype, where), _parameter(bias, dtype, where)

    def forward(self, x: Tensor) -> Tensor:
        if self.pairs:
            paired: Tensor = (x.reshape(*x.shape[:-1], -1, 2) * self.weight).sum(-1) + self.bias
            return paired
        if x.is_floating_point():
            return functional.linear(x, self.weight, self.bias)
        # No device has a fast int64 matrix product: multiply along the non-zero entries and add them up.
        row, column = torch.nonzero(self.weight, as_tuple=True)
        products = x[..., column] * self.weight[row, column]
        return self.bias.expand(*x.shape[:-1], -1).clone().index_add_(-1, row, products)


class ResidualBlock(nn.Module):
    """``x + layers[-1](relu(... relu(layers[0](x))))``."""

    def __init__(self, block: Block, dtype: str, where: str) -> None:
        super().__init__()
        self.name = block.name
        self.layers = nn.ModuleList(
            AffineLayer(layer, dtype, f"{where}.{depth}", pairs=depth in block.grouped)
            for depth, layer in enumerate(block.layers)
        )

    def forward(self, x: Tensor) -> Tensor:
        hidden = x
        for depth, layer in enumerate(self.layers):
            hidden = layer(torch.relu(hidden) if depth else hidden)
        return x + hidden


class UniformAttention(nn.Module):
    """One softmax head whose queries and keys are zero: every position attends to all positions alike.

    Softmax weights are 1/length, exact in floating point because the length is a power of two.
    """

    def __init__(self, stage: Attention, length: int, dtype: str, where: str) -> None:
        super().__init__()
        kind, _ = number_format(dtype)
        if kind.is_floating_point and length & (length - 1):
            raise PrecisionError(f"a softmax over {length} positions is not exact in {dtype}: pad to a power of two")
        self.name, self.length = stage.name, length
        shape = (stage.value.outputs, stage.value.inputs)
        self.query = nn.Parameter(torch.zeros(shape, dtype=kind), requires_grad=kind.is_floating_point)
        self.key = nn.Parameter(torch.zeros(shape, dtype=kind), requires_grad=kind.is_floating_point)
        self.value = AffineLayer(stage.value, dtype, f"{where}.value")
        self.output = AffineLayer(stage.output, dtype, f"{where}.output")

    def forward(self, x: Tensor, every_position: bool) -> tuple[Tensor, Tensor]:
        """State (rows, positions, channels) after the attention, and which rows had an exact mean (rows,)."""
        asked = x if every_position else x[:, -1:]
        value = self.value(x)
        if x.is_floating_point():
            scores = functional.linear(asked, self.query) @ functional.linear(x, self.key).mT
            mean = torch.softmax(scores / value.shape[-1] ** 0.5, dim=-1) @ value
            whole = torch.ones(len(x), dtype=torch.bool, device=x.device)
        else:  # softmax of zero logits in integers: the sum over the length, which must divide it
            total = value.sum(1, keepdim=True)
            mean = total.div(self.length, rounding_mode="floor").expand(-1, asked.shape[1], -1)
            whole = (total % self.length == 0).flatten(1).all(1)
        return asked + self.output(mean), whole


class LiteralNetwork(nn.Module):
    """A network as a torch module: token ids or keys in, label numbers out.

    Args:
        network: what to write down.
        dtype: ``float64``, ``float32`` or ``int64``.

    Raises:
        PrecisionError: if a weight is not exactly representable, or the softmax would round.
    """

    def __init__(self, network: Network, dtype: str = "float64") -> None:
        super().__init__()
        self.number_format = dtype
        self.inputs, self.input_range = network.inputs, network.input_range
        self.length, self.per_position = network.length, network.per_position
        self.key_limbs, self.unit, self.channels = network.key_limbs, network.unit, network.channels
        self.reads_tokens = is_sequence(network)
        self.outputs: int | None = None  # outputs from here on are no label either; set by a memory
        exact_tensor(np.array([network.unit], dtype=object), dtype, "read (unit)")
        self.embed = AffineLayer(network.embed, dtype, "embed")
        stages: list[nn.Module] = []
        for number, stage in enumerate(network.stages):
            where = f"{number:04d}.{stage.name}"
            if isinstance(stage, Block):
                stages.append(ResidualBlock(stage, dtype, where))
            else:
                stages.append(UniformAttention(stage, network.length, dtype, where))
        self.stages = nn.ModuleList(stages)
        self.read = AffineLayer(network.read, dtype, "read")

    def forward(self, rows: Rows) -> Tensor:
        """Label numbers, int64 (rows,), or (rows, length) when read per position.

        Args:
            rows: int64 token ids (rows, at most length); shorter rows are padded with the highest token id; or keys
                (rows,).

        Returns:
            Labels; -1 where the output is not exactly ``unit * label``.

        Raises:
            DomainError: for a token or key outside the range the network was built for, or a wrong shape.
        """
        if self.embed.weight.dtype != number_format(self.number_format)[0]:
            raise PrecisionError(
                f"this module computes exactly in {self.number_format} only, and was cast to "
                f"{self.embed.weight.dtype}; build the memory with the number format you need"
            )
        if rows.is_floating_point():
            raise DomainError(f"expected integer token ids or keys, got {rows.dtype}")
        given = rows.shape[-1]
        with plain_arithmetic(rows.device.type):
            out, whole = self._run(self.columns(rows))
            label = (out / self.unit).round() if out.is_floating_point() else out.div(self.unit, rounding_mode="floor")
            good = (label * self.unit == out) & (label >= 0) & whole
            if self.outputs is not None:
                good &= label < self.outputs
            answer: Tensor = torch.where(good, label, torch.full_like(label, NOT_A_LABEL)).to(torch.int64)
        return answer[:, :given] if self.per_position else answer[:, -1]

    def columns(self, rows: Rows) -> Tensor:
        """What the embedding reads, in the module's number format: (rows, positions, inputs)."""
        low, high = self.input_range[0]
        if self.reads_tokens:
            if rows.ndim != 2 or not 1 <= rows.shape[1] <= self.length:
                raise DomainError(f"expected token ids (rows, 1 to {self.length}), got shape {tuple(rows.shape)}")
            rows = functional.pad(rows, (0, self.length - rows.shape[1]), value=high)
            columns = [rows, torch.arange(self.length, device=rows.device).expand_as(rows)]
        elif rows.ndim != 1:
            raise DomainError(f"expected one key a row, shape (rows,), got shape {tuple(rows.shape)}")
        elif self.key_limbs is not None:
            shift, bits = self.key_limbs
            columns = [(rows >> shift)[:, None], (rows & ((1 << bits) - 1))[:, None]]
        else:
            columns = [rows[:, None]] * len(self.inputs)
        for name, column, (low, high) in zip(self.inputs, columns, self.input_range, strict=True):
            if column.numel() and bool(((column < low) | (column > high)).any()):
                row = int(torch.nonzero((column < low) | (column > high))[0, 0])
                raise DomainError(
                    f"row {row + 1}: {name} is outside [{low}, {high}], the range this network was built for"
                )
        return torch.stack(columns, dim=-1).to(self.embed.weight.dtype)

    def states(self, rows: Rows) -> list[tuple[str, Tensor]]:
        """(stage name, state (rows, positions, channels)) after the embedding and after every stage."""
        with plain_arithmetic(rows.device.type):
            state = self.embed(self.columns(rows))
            found = [("embed", state)]
            for stage in self.stages:
                state = stage(state, True)[0] if isinstance(stage, UniformAttention) else stage(state)
                found.append((str(stage.name), state))
        return found

    def _run(self, columns: Tensor) -> tuple[Tensor, Tensor]:
        """Network output (rows, positions) and which rows had an exact mean (rows, 1)."""
        state = self.embed(columns)
        whole = torch.ones(len(state), dtype=torch.bool, device=state.device)
        for stage in self.stages:
            if isinstance(stage, UniformAttention):
                state, whole = stage(state, self.per_position)
            else:
                state = stage(state)
        return self.read(state).squeeze(-1), whole[:, None]


def to_module(network: Network, weights: str) -> LiteralNetwork:
    """The literal module of ``network`` in the number format ``weights``.

    An ``exact`` network becomes a module of the narrowest format that provably computes the same integers.

    Raises:
        PrecisionError: if no format of torch holds an exact network, or ``weights`` does not hold every number.
    """
    return LiteralNetwork(network, format_for(network) if weights == "exact" else weights)


def predict(
    module: LiteralNetwork,
    rows: NDArray[np.int64] | Sequence[Any],
    *,
    batch: int | None = None,
    progress: Progress | None = None,
) -> NDArray[np.int64]:
    """Labels of many rows: batched, no gradients, one thread while it runs.

    Args:
        module: a literal network on any device.
        rows: token ids (rows, length) or keys (rows,).
        batch: rows at a time; by default what keeps the widest layer near 32 MiB.

    Returns:
        As the module's ``forward``.
    """
    array = np.asarray(rows, dtype=np.int64)
    device = module.embed.weight.device
    if batch is None:
        widest = max(p.shape[0] for p in module.parameters())
        positions = module.length if module.reads_tokens else 1
        batch = int(np.clip(2**25 // (8 * widest * positions), 16, 4096))
    parts = [np.zeros((0, *array.shape[1:]) if module.per_position else 0, dtype=np.int64)]
    with plain_arithmetic(device.type, threads=1), torch.inference_mode():
        for start in range(0, len(array), batch):
            some = torch.from_numpy(np.ascontiguousarray(array[start : start + batch])).to(device)
            parts.append(module(some).cpu().numpy())
            if progress is not None:
                progress(min(start + batch, len(array)), len(array), f"evaluating in {module.number_format}")
    return np.concatenate(parts)
