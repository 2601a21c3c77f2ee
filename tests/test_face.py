"""``import memcap`` is fast, imports no torch, and every public name resolves."""

import subprocess
import sys
from pathlib import Path

import pytest

import memcap


def test_import_is_light():
    code = (
        "import time; t = time.perf_counter(); import memcap; s = time.perf_counter() - t; import sys;"
        "assert 'torch' not in sys.modules and 'pandas' not in sys.modules; assert s < 1, s"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.parametrize("name", memcap.__all__)
def test_every_public_name_resolves(name):
    assert getattr(memcap, name) is not None


def test_the_reference_shows_every_public_name():
    page = (Path(__file__).parents[1] / "docs" / "reference.md").read_text(encoding="utf-8")
    shown = {line.removeprefix("::: ") for line in page.splitlines() if line.startswith("::: ")}
    for homes in (memcap._HOMES, memcap.report._HOMES):
        for name, home in homes.items():
            assert {home, f"{home}.{name}"} & shown or home == f"memcap.{name}", f"docs/reference.md lacks {name}"


def test_a_misspelt_name_gets_a_hint():
    with pytest.raises(AttributeError, match="did you mean 'MemcapError'"):
        memcap.MemcapErorr
