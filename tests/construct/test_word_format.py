"""Words: what the folds read back is what was stored, and the noise stays inside its guard."""

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcap.construct import word_format
from memcap.construct.word_format import FREE, Slot, WordFormat, most_bits
from memcap.errors import ConfigurationError


def test_examples_in_docstrings():
    assert doctest.testmod(word_format, globs={**vars(word_format)}).failed == 0


def folded(words, stored, beta):
    """The network's arithmetic on one word, one Python integer at a time; also the states before each fold."""
    value = stored - words.shift
    for fold in range(1, words.bits + 1):
        value += beta >> (fold - 1) & 1
        assert value != 0
        value = abs(value) - (words.half_gap << (words.bits - fold))
    return value + words.half_gap


@given(st.integers(1, 57), st.data())
def test_folds_return_the_signed_sum(bits, data):
    words = WordFormat(bits)
    z = data.draw(st.integers(0, 2**bits - 1))
    beta = data.draw(st.integers(0, 2**bits - 1))
    array = np.array([z], dtype=np.uint64)
    stored = int(words.stored(array)[0])
    assert 0 <= stored <= words.gate
    signed = sum((-1 if z >> f & 1 else 1) * (beta >> f & 1) for f in range(bits))
    assert folded(words, stored, beta) == int(words.excess(array)[0]) + signed + words.half_gap
    assert abs(folded(words, stored, beta) - words.half_gap) < words.half_gap


@pytest.mark.parametrize("bits", range(2, 58))
def test_the_free_word_is_stored_as_zero_and_no_other_is(bits):
    words = WordFormat(bits)
    others = np.array([0, 2, 3, 2**bits - 1], dtype=np.uint64)
    assert words.stored(np.array([FREE], dtype=np.uint64))[0] == 0
    assert words.stored(others).min() > 0


@pytest.mark.parametrize("bits", range(1, 9))
def test_the_gate_of_short_words_is_the_largest_of_them(bits):
    words = WordFormat(bits)
    assert words.stored(np.arange(1 << bits, dtype=np.uint64)).max() == words.gate


@given(st.integers(1, 12), st.integers(1, 5), st.data())
def test_a_place_of_several_words_adds_up(bits, parts, data):
    slot = Slot(WordFormat(bits), parts)
    z = data.draw(st.integers(0, 2**slot.bits - 1))
    beta = data.draw(st.integers(0, 2**slot.bits - 1))
    array = np.array([z], dtype=np.uint64)
    signed = sum((-1 if z >> f & 1 else 1) * (beta >> f & 1) for f in range(slot.bits))
    total = 0
    for part in range(parts):
        stored = int(slot.word.stored(slot.part(array, part))[0])
        total += folded(slot.word, stored, beta >> (part * bits) & (2**bits - 1))
    assert total == int(slot.excess(array)[0]) + signed + slot.half_gap
    free = np.array([slot.free], dtype=np.uint64)
    assert all(slot.word.stored(slot.part(free, part))[0] == 0 for part in range(parts))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_the_longest_word_is_the_longest(dtype):
    bits = most_bits(dtype)
    assert WordFormat(bits).fits(dtype)
    assert not WordFormat(bits + 1).fits(dtype)


def test_a_word_has_a_bit():
    with pytest.raises(ConfigurationError, match="at least one bit"):
        WordFormat(0)
