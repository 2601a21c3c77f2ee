"""Prefix codes against plain Huffman, the decoder on every bit string, and memories of skewed labels."""

import doctest
import heapq

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcap.construct import prefix_code
from memcap.construct.budgeted import memorise_budgeted
from memcap.construct.budgeted_plan import decoder_depth, decoder_parameters
from memcap.construct.fused import Fused
from memcap.construct.named_block import NamedBlock
from memcap.construct.prefix_code import limited_code
from memcap.construct.prefix_decoder import FINISHED, NUMBER, decode_blocks
from memcap.errors import ConfigurationError
from memcap.exact.affine import Affine
from memcap.exact.counts import count
from memcap.exact.evaluate import evaluate
from memcap.exact.network import Network

frequencies = st.lists(st.integers(0, 1000), min_size=2, max_size=60).map(lambda c: np.array(sorted(c)[::-1]))


def test_examples_in_docstrings():
    assert doctest.testmod(prefix_code).failed == 0


@given(frequencies)
def test_without_a_limit_the_code_is_as_short_as_huffman(counts):
    heap, total = [int(c) for c in counts], 0
    heapq.heapify(heap)
    while len(heap) > 1:
        two = heapq.heappop(heap) + heapq.heappop(heap)
        total += two
        heapq.heappush(heap, two)
    assert int((limited_code(counts, 60).lengths * counts).sum()) == total


@given(frequencies, st.integers(0, 4))
def test_codes_are_complete_canonical_and_within_the_limit(counts, spare):
    limit = (len(counts) - 1).bit_length() + spare
    code = limited_code(counts, limit)
    assert code.longest <= limit
    assert sum(1 << (code.longest - int(n)) for n in code.lengths) == 1 << code.longest
    assert bool(np.all(np.diff(code.lengths) >= 0))
    for label, (length, start) in enumerate(zip(code.lengths.tolist(), code.aligned().tolist(), strict=True)):
        value = start >> (code.longest - length)
        assert code.first(length) <= value < code.end(length)
        assert value + code.offset(length) == label


def test_impossible_codes():
    with pytest.raises(ConfigurationError, match="at most 1 bits"):
        limited_code(np.array([3, 2, 1]), 1)
    with pytest.raises(ConfigurationError, match="falling frequency"):
        limited_code(np.array([1, 2]), 4)


@given(frequencies, st.integers(0, 4))
def test_the_decoder_decodes_every_bit_string(counts, spare):
    code = limited_code(counts, min(12, (len(counts) - 1).bit_length() + spare))
    blocks: list[NamedBlock] = decode_blocks(code, "acc")
    channels = ("acc", NUMBER, FINISHED)
    network = Network(
        inputs=("key",),
        input_range=((0, (1 << code.longest) - 1),),
        length=1,
        channels=channels,
        embed=Affine.from_entries(3, 1, [(0, 0, 2)]),
        stages=tuple(b.written(channels) for b in blocks),
        read=Affine.from_entries(1, 3, [(0, 1, 1)], [code.offset(code.longest)]),
    )
    strings = np.arange(1 << code.longest)
    starts = code.aligned()
    assert np.array_equal(evaluate(network, strings), np.searchsorted(starts, strings, side="right") - 1)
    assert network.depth == decoder_depth(code)
    assert count(network).nonzero - 2 == decoder_parameters(code)  # embed and read-out weight


def test_skewed_labels_cost_less_and_decode_for_all_items():
    draw = np.random.default_rng(0)
    items, classes = 20_000, 256
    share = 1.0 / np.arange(1, classes + 1) ** 1.3
    labels = draw.choice(classes, size=items, p=share / share.sum())
    counts = np.bincount(labels, minlength=classes)
    rank = np.empty(classes, dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(classes)
    keys = draw.permutation(np.unique(draw.integers(0, 2**34, size=items + 200)))[:items]
    skewed = memorise_budgeted(keys, rank[labels], classes=classes)
    fixed = memorise_budgeted(keys, classes - 1 - rank[labels], classes=classes)  # not in falling order
    assert (skewed.structure["label_code"], fixed.structure["label_code"]) == ("prefix", "fixed")
    small, large = count(skewed.network).nonzero, count(fixed.network).nonzero
    assert small <= 0.93 * large
    assert small == skewed.structure["parameters_by_formula"]
    asked = np.concatenate([keys[:3000], draw.integers(0, int(keys.max()), size=2000)])
    answers = evaluate(skewed.network, asked)
    assert np.array_equal(answers[:3000], rank[labels[:3000]])
    assert 0 <= answers.min() <= answers.max() < classes
    assert np.array_equal(Fused(skewed.network).labels(asked), answers)
