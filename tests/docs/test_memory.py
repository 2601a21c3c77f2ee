"""Every block of the memory tutorial runs: Python blocks as doctests, console blocks as commands."""

import doctest
import re
import shlex
from pathlib import Path

from memcap.cli.app import main

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorials" / "memory.md"


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def test_python_blocks_print_what_the_page_says(monkeypatch):
    monkeypatch.chdir(ROOT)
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    test = doctest.DocTestParser().get_doctest("\n".join(blocks("python")), {}, PAGE.name, str(PAGE), 0)
    results = doctest.DocTestRunner(verbose=False, optionflags=flags).run(test)
    assert results.attempted > 30
    assert results.failed == 0


def test_console_blocks_run(tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for line in "".join(blocks("console")).splitlines():
        words = shlex.split(line.removeprefix("$ "))
        assert words[0] == "memcap"
        try:
            code = main(words[1:])
        except SystemExit as stop:
            code = stop.code
        assert code in (0, None)
