"""Every block of the tutorials on studies and reports and of the cluster page runs, in the order of the page."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from memcap.cli.app import main

PAGES = Path(__file__).parents[2] / "docs" / "tutorials"


def run_python(page, source):
    test = doctest.DocTestParser().get_doctest(source, {}, page.name, str(page), 0)
    results = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(test)
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("name", ["study.md", "report.md"])
def test_the_tutorial_runs(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = PAGES / name
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert [kind for kind, _ in blocks].count("python") >= 3
    python = []
    for kind, text in blocks:
        if kind == "yaml":
            (tmp_path / "grid.yaml").write_text(text, encoding="utf-8")
        elif kind == "console":
            for line in text.splitlines():
                words = shlex.split(line.removeprefix("$ "))
                assert words[0] == "memcap"
                assert main(words[1:]) == 0, capsys.readouterr()
        else:
            python.append(text)
    run_python(page, "\n".join(python))


@pytest.mark.filterwarnings("ignore")  # Dask's own, about ports and event loops
def test_the_cluster_page_runs(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    page = PAGES / "cluster.md"
    text = page.read_text(encoding="utf-8")
    run_python(page, "\n".join(re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)))
