"""Small measurements for the tests of the study room; workers import them by name."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from memcap.random import stream
from memcap.study.measurements import Measurement


@dataclass(frozen=True)
class ToySettings:
    """``x`` and ``y`` are axes; ``mode`` says how to misbehave; ``log`` is a folder in which runs leave traces."""

    x: float = 1.0
    y: int = 1
    mode: str = "ok"
    sleep: float = 0.0
    log: str = ""
    seed: int = 0


def run_toy(settings):
    if settings["log"]:
        name = f"{settings['x']}-{settings['y']}-{settings['seed']}-{os.getpid()}-{time.time_ns()}"
        (Path(settings["log"]) / name).touch()
    if settings["sleep"]:
        time.sleep(settings["sleep"])
    mode = settings["mode"]
    if mode == "raise":
        raise ValueError("the toy was told to fail")
    if mode == "memory":
        raise MemoryError("no room for the table")
    if mode == "exit":
        os._exit(3)
    if mode == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == "hog":
        block = np.ones(200 * 2**20 // 8)
        time.sleep(1.0)
        return {"recall": float(block[0])}
    noise = stream(settings["seed"], "toy").normal()
    return {
        "recall": 1.0 / (1.0 + np.exp(-3 * np.log(settings["x"] / settings["y"]))),
        "noise": noise,
        "snr": {"signal": settings["x"], "bad": float("nan"), "top": float("inf")},
        "curve": [0.0, float("-inf"), 1.0],
        "count": 2**60 + settings["y"],
        "data_hash": f"hash-{settings['seed']}",
    }


def by_x(settings):
    """The toy, but x = 3 and x = 5 misbehave as ``mode`` says."""
    bad = settings["x"] in (3.0, 5.0)
    return run_toy({**settings, "mode": settings["mode"] if bad else "ok"})


toy = Measurement("toy", ToySettings, run_toy, response="recall")
some_bad = Measurement("some-bad", ToySettings, by_x, response="recall")


def five_raise_one_killed(settings):
    """30 cells: x = 0..4 raise; x = 5 kills its worker, the first time only if ``log`` is a folder."""
    x = settings["x"]
    if x < 5:
        raise ValueError(f"x is {x}")
    if x == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"recall": x}


thirty = Measurement("thirty", ToySettings, five_raise_one_killed)


@dataclass(frozen=True)
class SharedSettings:
    size: int = 10
    samples: int = 1
    log: str = ""
    seed: int = 0


def prepare_shared(shared):
    if shared["log"]:
        (Path(shared["log"]) / f"prepare-{shared['size']}-{shared['seed']}-{time.time_ns()}").touch()
    return stream(shared["seed"], "shared").normal(size=shared["size"])


def run_shared(settings, table):
    return {"total": float(table[: settings["samples"]].sum())}


shared = Measurement(
    "shared", SharedSettings, run_shared, shared=("size", "seed", "log"), prepare=prepare_shared, response="total"
)


@dataclass(frozen=True)
class FixedSettings:
    x: int


plain = Measurement("plain", FixedSettings, lambda settings: {"square": settings["x"] ** 2})


@dataclass(frozen=True)
class LawSettings:
    """``samples`` reach one half at ``8 * dimension^-1.5 * length^2``."""

    samples: float
    dimension: float = 1.0
    length: float = 1.0
    width: float = 1.0
    seed: int = 0


def run_law(settings):
    critical = 8 * settings["dimension"] ** -1.5 * settings["length"] ** 2
    noise = np.exp(0.1 * stream(settings["seed"], f"law {settings['dimension']} {settings['length']}").normal())
    return {
        "recall": 1 / (1 + (critical / settings["samples"]) ** 3),
        "rough": 1 / (1 + (noise * critical / settings["samples"]) ** 3),
        "cost": 3 * settings["dimension"] ** 0.5 * settings["length"] ** -1 * settings["width"] ** 2,
    }


law = Measurement("law", LawSettings, run_law, response="recall")
