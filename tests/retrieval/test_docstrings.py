"""The examples in the docstrings of task, streams, engines and runs print what they say."""

import doctest
import importlib

import pytest

MODULES = ["activation", "philox", "run", "simulate", "step_sizes", "task", "training"]


def examples(name):
    module = importlib.import_module(f"memcap.retrieval.{name}")
    return [test for test in doctest.DocTestFinder().find(module) if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    runner = doctest.DocTestRunner(verbose=False)
    for test in examples(name):
        runner.run(test)
    assert runner.tries > 0
    assert runner.failures == 0
