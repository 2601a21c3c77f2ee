"""Makes the synthetic study and the Chromium driver importable."""

import sys
from pathlib import Path

import pytest

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)


@pytest.fixture(scope="session")
def frame():
    from synthetic_study import study_frame

    return study_frame()
