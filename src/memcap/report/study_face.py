"""``memcap.Study``: the study of the study room, plus ``report()`` (docs/decisions/0010-study-face-with-report.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memcap.study.study import Study as PlainStudy


class Study(PlainStudy):
    """A sweep of measurements in one crash-safe file, with fits and a report; see ``Study.open``."""

    def report(self, path: str | Path, **options: Any) -> Path:
        """Write one HTML file that a reader can explore without a network; returns its path.

        Args:
            path: the file to write, e.g. ``"phase.html"``.
            options: as ``memcap.report.write`` takes them.
        """
        from memcap.report import write

        return Path(write(self, path, **options))
