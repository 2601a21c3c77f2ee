"""A network written as an ONNX graph, node by node: dynamic batch, sequences of any length up to the network's.

Written with `onnx.helper`, not traced, so nothing is frozen to an example.  `memcap.model.onnx_export` saves and
certifies it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from memcap.errors import PrecisionError
from memcap.exact.affine import Affine
from memcap.exact.evaluate import NOT_A_LABEL
from memcap.exact.inputs import is_sequence
from memcap.exact.network import Attention, Block, Network
from memcap.exact.ranges import limit_of
from memcap.model.network_json import DENSE, PAIRS, dense_arrays

OPSET, IR_VERSION = 17, 8


class _Graph:
    """Nodes and initialisers under way."""

    def __init__(self, dtype: str) -> None:
        self.dtype, self.kind = dtype, np.dtype(dtype)
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        output = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [output], **attributes))
        return output

    def constant(self, value: NDArray[Any], name: str | None = None) -> str:
        key = name or f"constant_{value.dtype}_{'x'.join(map(str, value.shape))}_{value.tobytes().hex()}"
        if key not in self.constants:
            self.constants[key] = numpy_helper.from_array(np.ascontiguousarray(value), key)
        return key

    def number(self, value: int) -> str:
        return self.constant(np.array(value, dtype=self.kind))

    def whole(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def stored(self, value: NDArray[Any], name: str) -> str:
        """An initialiser holding integers in the graph's number format."""
        limit = limit_of(self.dtype) or 0
        largest = max((abs(int(v)) for v in value.reshape(-1)), default=0)
        if largest > limit:
            raise PrecisionError(f"layer {name}: a weight of {largest.bit_length()} bits does not fit {self.dtype}")
        return self.constant(value.astype(self.kind), name)

    def affine(self, x: str, layer: Affine, name: str, *, pairs: bool = False) -> str:
        weight, bias = dense_arrays(layer, PAIRS if pairs else DENSE)
        if pairs:
            shaped = self.node("Reshape", x, self.whole(0, 0, layer.outputs, 2))
            products = self.node("Mul", shaped, self.stored(weight, f"{name}.weight"))
            y = self.node("ReduceSum", products, self.whole(-1), keepdims=0)
        else:
            y = self.node("MatMul", x, self.stored(weight.T, f"{name}.weight"))
        return self.node("Add", y, self.stored(bias, f"{name}.bias"))

    def relu(self, x: str) -> str:
        if self.kind == np.int64:  # Relu is not defined for int64 in every runtime
            return self.node("Max", x, self.number(0))
        return self.node("Relu", x)


def onnx_model(network: Network, dtype: str, metadata: dict[str, str]) -> Any:
    """The ONNX model of ``network``.

    Its input is ``tokens``, int64 (rows, 1 to length), padded inside with the highest token id, or ``keys``, int64
    (rows,).  Its output ``labels`` is int64 (rows,) or (rows, given length): label numbers, -1 where the output is not
    exactly ``unit * label`` or an input is outside the range the network was built for.

    Raises:
        PrecisionError: if a number does not fit ``dtype`` or the softmax would round.
    """
    g = _Graph(dtype)
    sequence = is_sequence(network)
    name = "tokens" if sequence else "keys"
    columns = _token_columns(g, network) if sequence else _key_columns(g, network)
    inside = _inside(g, network, columns)
    axis = g.whole(-1)
    joined = g.node("Concat", *(g.node("Unsqueeze", c, axis) for c in columns), axis=-1)
    state = g.affine(g.node("Cast", joined, to=helper.np_dtype_to_tensor_dtype(g.kind)), network.embed, "embed")
    whole: str | None = None
    for number, stage in enumerate(network.stages):
        where = f"{number:04d}.{stage.name}"
        if isinstance(stage, Block):
            x = state
            for depth, layer in enumerate(stage.layers):
                x = g.relu(x) if depth else x
                x = g.affine(x, layer, f"{where}.{depth}", pairs=depth in stage.grouped)
            state = g.node("Add", state, x)
        else:
            state, whole = _attention(g, network, stage, where, state)
    out = g.node("Squeeze", g.affine(state, network.read, "read"), axis)
    labels = _labels(g, network, out, [inside] + ([whole] if whole else []))
    if network.per_position:
        given = g.node("Slice", g.node("Shape", "tokens"), g.whole(1), g.whole(2))
        g.nodes.append(helper.make_node("Slice", [labels, g.whole(0), given, g.whole(1)], ["labels"]))
    else:
        last = g.node("Slice", labels, g.whole(-1), g.whole(2**62), g.whole(1))
        g.nodes.append(helper.make_node("Squeeze", [last, g.whole(1)], ["labels"]))
    shape = ["rows", "length"] if sequence else ["rows"]
    graph = helper.make_graph(
        g.nodes,
        "memcap",
        [helper.make_tensor_value_info(name, TensorProto.INT64, shape)],
        [helper.make_tensor_value_info("labels", TensorProto.INT64, shape if network.per_position else ["rows"])],
        list(g.constants.values()),
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="memcap"
    )
    helper.set_model_props(model, metadata)
    onnx.checker.check_model(model)
    return model


def _token_columns(g: _Graph, network: Network) -> list[str]:
    """Padded tokens and positions, int64 (rows, network length)."""
    high = network.input_range[0][1]
    given = g.node("Slice", g.node("Shape", "tokens"), g.whole(1), g.whole(2))
    missing = g.node("Max", g.node("Sub", g.whole(network.length), given), g.whole(0))
    pads = g.node("Concat", g.whole(0, 0, 0), missing, axis=0)
    padded = g.node("Pad", "tokens", pads, g.constant(np.array(high, dtype=np.int64)))
    positions = g.constant(np.arange(network.length, dtype=np.int64)[None, :], "positions")
    # Adding (1, length) refuses longer rows: no shape fits both.
    return [padded, g.node("Add", g.node("Mul", padded, g.whole(0)), positions)]


def _key_columns(g: _Graph, network: Network) -> list[str]:
    """The key, or its two limbs, int64 (rows, 1)."""
    key = g.node("Unsqueeze", "keys", g.whole(1))
    if network.key_limbs is None:
        return [key] * len(network.inputs)
    shift, bits = network.key_limbs
    return [g.node("Div", key, g.whole(1 << shift)), g.node("Mod", key, g.whole(1 << bits))]


def _inside(g: _Graph, network: Network, columns: list[str]) -> str:
    """Which rows lie in the promised range, bool (rows, 1)."""
    outside = []
    for column, (low, high) in zip(columns, network.input_range, strict=True):
        bad = g.node("Or", g.node("Less", column, g.whole(low)), g.node("Greater", column, g.whole(high)))
        outside.append(g.node("ReduceMax", g.node("Cast", bad, to=TensorProto.INT32), axes=[1], keepdims=1))
    worst = outside[0] if len(outside) == 1 else g.node("Max", *outside)
    return g.node("Equal", worst, g.constant(np.array(0, dtype=np.int32)))


def _attention(g: _Graph, network: Network, stage: Attention, where: str, state: str) -> tuple[str, str | None]:
    length = network.length
    value = g.affine(state, stage.value, f"{where}.value")
    asked = state
    if not network.per_position:
        asked = g.node("Slice", state, g.whole(length - 1), g.whole(length), g.whole(1))
    whole = None
    if g.kind == np.int64:
        total = g.node("ReduceSum", value, g.whole(1), keepdims=1)
        mean = g.node("Div", total, g.whole(length))
        again = g.node("Equal", g.node("Mul", mean, g.whole(length)), total)
        least = g.node("ReduceMin", g.node("Cast", again, to=TensorProto.INT32), axes=[1, 2], keepdims=0)
        whole = g.node("Unsqueeze", g.node("Cast", least, to=TensorProto.BOOL), g.whole(1))
    else:
        if length & (length - 1):
            raise PrecisionError(f"a softmax over {length} positions is not exact in {g.dtype}: pad to a power of two")
        shape = (stage.value.inputs, stage.value.outputs)
        query = g.node("MatMul", asked, g.constant(np.zeros(shape, dtype=g.kind), f"{where}.query"))
        key = g.node("MatMul", state, g.constant(np.zeros(shape, dtype=g.kind), f"{where}.key"))
        scores = g.node("MatMul", query, g.node("Transpose", key, perm=[0, 2, 1]))
        mean = g.node("MatMul", g.node("Softmax", scores, axis=-1), value)
    return g.node("Add", asked, g.affine(mean, stage.output, f"{where}.output")), whole


def _labels(g: _Graph, network: Network, out: str, conditions: list[str]) -> str:
    """int64 labels of outputs (rows, positions), `NOT_A_LABEL` where a condition fails or the unit does not divide."""
    unit = g.stored(np.array([network.unit], dtype=object), "unit")
    quotient = g.node("Div", out, unit)
    label = quotient if g.kind == np.int64 else g.node("Round", quotient)
    good = g.node("Equal", g.node("Mul", label, unit), out)
    good = g.node("And", good, g.node("GreaterOrEqual", label, g.number(0)))
    for condition in conditions:
        good = g.node("And", good, condition)
    answer = g.node("Where", good, label, g.number(NOT_A_LABEL))
    return g.node("Cast", answer, to=TensorProto.INT64)
