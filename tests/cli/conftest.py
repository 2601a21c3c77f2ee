"""Running the command line in this process, and a small real data set."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memcap.cli.app import main

CITIES = """city,country
Lyon,France
Paris,France
Marseille,France
Lille,France
Berlin,Germany
Hamburg,Germany
München,Germany
Köln,Germany
Buenos Aires,Argentina
Córdoba,Argentina
Rosario,Argentina
Oslo,Norway
Bergen,Norway
Tromsø,Norway
"""


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def memcap_cli(capfd):
    """Call with arguments; returns exit code, standard output and standard error."""

    def call(*arguments: object) -> Result:
        capfd.readouterr()
        try:
            code = main([str(a) for a in arguments])
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        captured = capfd.readouterr()
        assert not captured.err.startswith("\n"), "a message does not begin with an empty line"
        return Result(code, captured.out, captured.err)

    return call


@pytest.fixture
def cities(tmp_path) -> Path:
    path = tmp_path / "cities.csv"
    path.write_text(CITIES, encoding="utf-8")
    return path
