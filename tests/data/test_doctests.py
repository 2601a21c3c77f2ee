"""The examples in the docstrings of this room are true."""

import doctest
import importlib
import pkgutil

import pytest

import memcap.data

MODULES = [module.name for module in pkgutil.iter_modules(memcap.data.__path__, "memcap.data.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_there_are_examples():
    assert sum(doctest.testmod(importlib.import_module(name)).attempted for name in MODULES) > 8
