"""Every block of the phase-diagram tutorial runs: Python blocks as doctests, console blocks as commands."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from memcap.cli.app import main

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "phase-diagram.md"


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def test_python_blocks_print_what_the_page_says():
    found = blocks("python")
    assert len(found) > 8
    test = doctest.DocTestParser().get_doctest("\n".join(found), {}, PAGE.name, str(PAGE), 0)
    results = doctest.DocTestRunner(verbose=False).run(test)
    assert results.attempted > 25
    assert results.failed == 0


@pytest.mark.parametrize("command", [line[2:] for line in "".join(blocks("console")).splitlines()])
def test_console_blocks_run(command, capsys):
    words = shlex.split(command)
    assert words[0] == "memcap"
    assert main(words[1:]) == 0
    assert "● simulated" in capsys.readouterr().out
