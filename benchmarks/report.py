"""A report of 12 figures over 400 cells, and its figures as files; refuses to report if the page is not complete.

The study is synthetic (critical samples ∝ dimension^-1.5, three settings fail) but has the columns of a simulated one,
so that the noise budget and every fit are drawn.  Times include the fits; the first one also loads the libraries.  On a
busy machine the processor time says more than the wall time.
"""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import memcap

LARGEST = 2_000_000
"""Bytes."""
SLOWEST = 20.0
"""Seconds."""


def study(seeds: int = 4) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    rows = []
    for dimension in np.unique(np.geomspace(16, 128, 10).astype(int)).tolist():
        for samples in (2 ** np.arange(8, 18)).tolist():
            share = 1 / (1 + (2e6 * dimension**-1.5 / samples) ** 2.2)
            for seed in range(seeds):
                failed = samples == 256 and dimension < 24
                noise = 0.1 * generator.standard_normal() * share * (1 - share)
                rows.append(
                    {
                        "vocabulary": 256,
                        "length": 32,
                        "dimension": dimension,
                        "samples": samples,
                        "seed": seed,
                        "state": "failed" if failed else "done",
                        "recall": np.nan if failed else float(np.clip(share + noise, 0, 1)),
                        "predicted_recall": share,
                        "seconds": np.nan if failed else 1e-6 * samples,
                        "error": "MemoryError: synthetic" if failed else None,
                    }
                )
    return pd.DataFrame(rows)


def main() -> None:
    frame = study()
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        for attempt in ("first", "again"):
            began, worked = time.perf_counter(), time.process_time()
            memcap.report.write(frame, page)
            seconds, worked = time.perf_counter() - began, time.process_time() - worked
            text = page.read_text(encoding="utf-8")
            figures, size = len(re.findall("<figure ", text)), page.stat().st_size
            if figures != 12:
                raise SystemExit(f"refusing to report: {figures} figures instead of 12 were drawn")
            met = "met" if seconds < SLOWEST and size <= LARGEST else "MISSED"
            print(
                f"{len(frame)} cells, {figures} figures, {attempt}: {seconds:.1f} s (< {SLOWEST:g} s; "
                f"{worked:.1f} s of processor), "
                f"{size / 1e6:.2f} MB (<= {LARGEST / 1e6:g} MB): {met}"
            )
        figure = memcap.report.figure(frame, "phase")
        for kind in ("svg", "pdf", "png", "json"):
            began = time.perf_counter()
            path = figure.save(Path(folder) / f"phase.{kind}")
            print(f"phase diagram as {kind}: {time.perf_counter() - began:.2f} s, {path.stat().st_size / 1e3:.0f} kB")
