"""The examples in the docstrings of the retrieval room print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import memcap.retrieval

MODULES = sorted(module.name for module in pkgutil.iter_modules(memcap.retrieval.__path__))


def examples(name):
    module = importlib.import_module(f"memcap.retrieval.{name}")
    return [test for test in doctest.DocTestFinder().find(module) if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    runner = doctest.DocTestRunner(verbose=False)
    for test in examples(name):
        runner.run(test)
    assert runner.failures == 0


def test_there_are_examples_to_run():
    assert sum(len(examples(name)) for name in MODULES) >= 8
