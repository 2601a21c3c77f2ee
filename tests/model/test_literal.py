"""The literal torch module: equal to the integer evaluator state by state, counted, refused where it would round."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from tests.golden.networks import GOLDEN, fold_chain
from torch import nn

from memcap.errors import ConfigurationError, DomainError, PrecisionError
from memcap.exact.affine import Affine
from memcap.exact.counts import count
from memcap.exact.evaluate import evaluate, trace
from memcap.exact.network import Block, Network
from memcap.model.arithmetic import plain_arithmetic
from memcap.model.literal import LiteralNetwork, predict, to_module

FLOATS = {name: g for name, g in GOLDEN.items() if g.floats}
everyone = pytest.mark.parametrize("golden", FLOATS.values(), ids=FLOATS)
formats = pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])


@everyone
@formats
def test_golden_answers(golden, dtype):
    module = to_module(golden.network, dtype)
    assert isinstance(module, nn.Module)
    for batch in (None, 1, 7, 64):
        assert predict(module, golden.rows, batch=batch).tolist() == golden.labels.tolist()


@everyone
@formats
def test_states_equal_the_integer_evaluator_after_every_stage(golden, dtype):
    module = to_module(golden.network, dtype)
    exact = trace(golden.network, golden.rows, engine="int64")
    found = module.states(torch.from_numpy(golden.rows))
    assert [name for name, _ in exact[:-1]] == [name for name, _ in found]
    for (_, wanted), (_, got) in zip(exact[:-1], found, strict=True):
        rows = got.detach().to(torch.int64).numpy()  # (rows, positions, channels)
        assert np.moveaxis(rows, -1, 0).reshape(wanted.shape).tolist() == wanted.tolist()


@everyone
@formats
def test_counts_are_the_entries_of_the_module(golden, dtype):
    module, counts = to_module(golden.network, dtype), count(golden.network)
    assert sum(int((p != 0).sum()) for p in module.parameters()) == counts.nonzero == golden.nonzero
    assert sum(p.numel() for p in module.parameters()) == counts.dense


@everyone
def test_hidden_units_may_be_permuted(golden):
    order = np.random.Generator(np.random.Philox(3))

    def shuffled(block):
        if not isinstance(block, Block) or block.grouped:
            return block
        layers = list(block.layers)
        for i, (a, b) in enumerate(itertools.pairwise(layers)):
            p = order.permutation(a.outputs)
            layers[i] = Affine.from_arrays(a.outputs, a.inputs, np.argsort(p)[a.row], a.column, a.weight, a.bias[p])
            layers[i + 1] = Affine.from_arrays(b.outputs, b.inputs, b.row, np.argsort(p)[b.column], b.weight, b.bias)
        return dataclasses.replace(block, layers=tuple(layers))

    network = dataclasses.replace(golden.network, stages=tuple(shuffled(s) for s in golden.network.stages))
    assert predict(to_module(network, "float64"), golden.rows).tolist() == golden.labels.tolist()


def test_short_rows_are_padded_with_the_highest_token():
    golden = GOLDEN["seq2seq"]
    module = to_module(golden.network, "float64")
    short = np.array([[1, 5], [0, 3]])
    padded = np.array([[1, 5, 5, 5], [0, 3, 5, 5]])
    assert predict(module, short).tolist() == evaluate(golden.network, padded)[:, :2].tolist()


def test_tokens_of_a_multiset_may_be_permuted():
    golden = GOLDEN["next-token"]
    module = to_module(golden.network, "float32")
    assert predict(module, golden.rows[:, [2, 0, 3, 1]]).tolist() == golden.labels.tolist()


def test_the_attention_is_a_real_softmax_with_zero_queries_and_keys():
    attention = to_module(GOLDEN["next-token"].network, "float64").stages[1]
    assert attention.query.shape == attention.key.shape == (1, 3)
    assert not attention.query.any()
    assert not attention.key.any()
    with torch.no_grad():  # queries and keys are used: with other ones the mean is no longer uniform
        attention.query += 1
        attention.key += 1
    x = torch.tensor([[[1.0, 2, 0], [3, 5, 0], [0, 1, 0], [2, 2, 0]]], dtype=torch.float64)
    state, _ = attention(x, False)
    assert state[0, -1, 2] != 2 + 5 + 1 + 2


def test_an_output_off_the_unit_is_minus_one():
    golden = GOLDEN["next-token"]
    for dtype in ("float64", "int64"):
        module = to_module(dataclasses.replace(golden.network, unit=2), dtype)
        assert set(predict(module, golden.rows).tolist()) == {0, -1}


def test_tf32_autocast_and_threads_are_off_inside_and_restored():
    module = to_module(GOLDEN["interpolator"].network, "float32")
    keys = torch.arange(13)
    before = torch.get_num_threads()
    torch.set_float32_matmul_precision("medium")
    torch.set_num_threads(2)
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert module(keys).tolist() == GOLDEN["interpolator"].labels.tolist()
            with plain_arithmetic(threads=1) as found:
                assert (torch.get_num_threads(), torch.is_autocast_enabled("cpu")) == (1, False)
                assert torch.get_float32_matmul_precision() == "highest"
            assert found.to_json() == {
                "device": "cpu", "matmul_precision": "medium", "cuda_float32": "tf32", "cpu_float32": "bf16",
                "autocast": True, "threads": 2,
            }  # fmt: skip
            assert torch.is_autocast_enabled("cpu")
        predict(module, keys.numpy())
        assert torch.get_num_threads() == 2
        assert torch.get_float32_matmul_precision() == "medium"
        with pytest.raises(DomainError), plain_arithmetic(threads=1):
            module(torch.tensor([99]))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_float32_matmul_precision("highest")
        torch.set_num_threads(before)


def key_network(weight):
    one = Affine.from_entries(1, 1, [(0, 0, weight)])
    return Network(("key",), ((0, 1),), 1, ("x",), one, (), Affine.from_entries(1, 1, [(0, 0, 1)]), 1)


@pytest.mark.parametrize(
    ("weight", "dtype", "message"),
    [
        (
            2**24 + 1,
            "float32",
            "layer embed: a weight of 25 bits does not fit float32, .* 24 bits; float64 or int64",
        ),
        (
            2**53 + 1,
            "float64",
            "layer embed: a weight of 54 bits does not fit float64, .* 53 bits; int64 would",
        ),
        (2**70, "int64", "layer embed: a weight of 71 bits does not fit int64, .* 63 bits; only exact integers"),
        (1, "float16", "float16 holds every integer only up to 2048; .* use float32, float64, int64 or exact"),
        (1, "bfloat16", "bfloat16 holds every integer only up to 256"),
    ],
)
def test_weights_that_do_not_fit_are_refused(weight, dtype, message):
    with pytest.raises(PrecisionError, match=message):
        LiteralNetwork(key_network(weight), dtype)


def test_the_last_weight_that_fits_is_kept_to_the_unit():
    for weight, dtype in [(2**24, "float32"), (2**53, "float64"), (2**63 - 1, "int64")]:
        assert predict(LiteralNetwork(key_network(weight), dtype), [1]).tolist() in ([weight], [-1])
        assert int(LiteralNetwork(key_network(weight), dtype).embed.weight) == weight


def test_refusals():
    with pytest.raises(ConfigurationError, match=r"got 'float46' \(did you mean 'float64'\?\)"):
        LiteralNetwork(key_network(1), "float46")
    golden = GOLDEN["next-token"]
    module = to_module(golden.network, "float64")
    with pytest.raises(DomainError, match=r"row 2: token is outside \[0, 5\]"):
        module(torch.tensor([[0, 0, 0, 0], [0, 0, 6, 0]]))
    with pytest.raises(DomainError, match=r"expected token ids \(rows, 1 to 4\), got shape \(1, 5\)"):
        module(torch.zeros(1, 5, dtype=torch.int64))
    with pytest.raises(DomainError, match=r"expected one key a row, shape \(rows,\), got shape \(1, 2\)"):
        to_module(GOLDEN["interpolator"].network, "float64")(torch.zeros(1, 2, dtype=torch.int64))
    odd = dataclasses.replace(golden.network, length=3, input_range=((0, 5), (0, 2)))
    with pytest.raises(PrecisionError, match="softmax over 3 positions is not exact in float64: pad to a power"):
        to_module(odd, "float64")
    wide = GOLDEN["fold-chain-wide"].network
    with pytest.raises(PrecisionError, match=r"a weight of 77 bits in layer embed; float32, float64 and int64"):
        to_module(wide, "exact")
    with pytest.raises(PrecisionError, match="torch has no integers of any size"):
        LiteralNetwork(golden.network, "exact")
    with pytest.raises(ConfigurationError, match="a grouped layer reads inputs 2j and 2j"):
        block = GOLDEN["one-hot"].network.stages[0]
        crossed = dataclasses.replace(block, grouped=frozenset({2}))
        LiteralNetwork(dataclasses.replace(GOLDEN["one-hot"].network, stages=(crossed,)), "float64")


def test_an_exact_network_takes_the_narrowest_format_that_holds_it():
    for scale, dtype in [(1, "float32"), (2**30, "float64"), (2**55, "int64")]:
        golden = fold_chain(unit=scale)
        module = to_module(golden.network, "exact")
        assert module.number_format == dtype
        assert predict(module, golden.rows).tolist() == golden.labels.tolist()
    grows = Block("grow", (Affine.from_entries(1, 1, [(0, 0, 1)]), Affine.from_entries(1, 1, [(0, 0, 2**40)])))
    network = dataclasses.replace(key_network(2**40), stages=(grows,))
    with pytest.raises(PrecisionError, match=r"a partial sum that may need 81 bits in layer 0000.grow.1"):
        to_module(network, "exact")
