"""Every command and every Python block of the README runs, and prints what the README says it prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from memcap.cli.app import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """An empty folder that sees the repository's examples."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_there_is_something_to_test():
    assert {"python", "console"} <= {language for language, _ in BLOCKS}


def test_commands(workplace, capfd):
    """Blocks marked ``console``: lines after ``$`` are run in order, the lines below them are what they print."""
    for language, block in BLOCKS:
        if language != "console":
            continue
        for call in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, wanted = call.partition("\n")
            arguments = shlex.split(command, comments=True)
            if arguments[0] != "memcap":
                assert arguments[0] in ("make", "pip"), f"README runs {arguments[0]!r}: how should this be tested?"
                target = arguments[1]
                assert arguments[0] == "pip" or f"\n{target}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
                continue
            capfd.readouterr()
            try:
                code = main(arguments[1:])
            except SystemExit as stop:
                code = stop.code
            printed = capfd.readouterr()
            assert code in (0, None), f"{command}: {printed.err}"
            for line in wanted.splitlines():
                if line.strip() and line.strip() != "...":
                    assert line.strip() in printed.out, f"{command} does not print {line!r} but\n{printed.out}"


def test_python(workplace):
    """Blocks marked ``python`` run in order in one namespace."""
    names: dict[str, object] = {}
    for language, block in BLOCKS:
        if language == "python":
            exec(compile(block, "README.md", "exec"), names)


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((?!https?:)([^)#]+)", README))))
def test_links_lead_somewhere(link):
    assert (ROOT / link).exists()
