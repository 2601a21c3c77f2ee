"""Two measurements that take as long as they are told: one waits, one keeps its processor busy.

A module of its own, so that worker processes import no more than they need.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from memcap.study.measurements import Measurement


@dataclass(frozen=True)
class ShortSettings:
    """``seconds`` of waiting or of processor time; the answer is ``x`` squared."""

    x: int
    seconds: float


def run_wait(settings: dict) -> dict:
    """Sleep."""
    time.sleep(settings["seconds"])
    return {"square": settings["x"] ** 2}


def run_compute(settings: dict) -> dict:
    """Count until the processor time is used."""
    end = time.process_time() + settings["seconds"]
    while time.process_time() < end:
        sum(range(1000))
    return {"square": settings["x"] ** 2}


wait = Measurement("wait", ShortSettings, run_wait)
compute = Measurement("compute", ShortSettings, run_compute)
