"""The examples in the report room's docstrings."""

import doctest
import importlib
import pkgutil

import pytest

import memcap.report

MODULES = [m.name for m in pkgutil.walk_packages(memcap.report.__path__, "memcap.report.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module, extraglobs={"pd": __import__("pandas"), "np": __import__("numpy")}).failed == 0


def test_there_are_examples():
    assert sum(len(doctest.DocTestFinder().find(importlib.import_module(n))) > 0 for n in MODULES) > 10
