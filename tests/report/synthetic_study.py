"""A synthetic study with a known boundary, for the report's tests: N_critical = 2e6 · d^-1.5, recall a logit line."""

from __future__ import annotations

import numpy as np
import pandas as pd

EXPONENT = -1.5
DIMENSIONS = (12, 16, 24, 32, 48, 64, 96, 128)
SAMPLES = (250, 500, 1000, 2000, 4000, 8000, 16000, 32000, 64000)


def recall_at(dimension: float, samples: float) -> float:
    critical = 2e6 * dimension**EXPONENT
    return 1 / (1 + (critical / samples) ** 2.2)


def study_frame(seeds: int = 3, dimensions=DIMENSIONS, samples=SAMPLES) -> pd.DataFrame:
    """In the layout of ``Study.frame()``; one failed setting, one failed seed, one setting that is not there."""
    generator = np.random.default_rng(7)
    rows = []
    for d in dimensions:
        for n in samples:
            for seed in range(seeds):
                if (d, n) == (96, 64000):
                    continue
                failed = (d, n) == (12, 64000) or (d, n, seed) == (32, 500, 1)
                noise = 0.05 * generator.standard_normal() * recall_at(d, n) * (1 - recall_at(d, n))
                rows.append(
                    {
                        "identity": f"{d:04x}{n:08x}{seed:04x}",
                        "task": "toy",
                        "vocabulary": 256,
                        "dimension": d,
                        "samples": n,
                        "embeddings": "gaussian",
                        "seed": seed,
                        "state": "failed" if failed else "done",
                        "recall": np.nan if failed else float(np.clip(recall_at(d, n) + noise, 0, 1)),
                        "predicted_recall": recall_at(d, n * 1.1),
                        "seconds": np.nan if failed else n * 1e-5,
                        "host": "laptop",
                        "error": "MemoryError: needs 5 GiB, limit 4 GiB\nmore" if failed else None,
                    }
                )
    return pd.DataFrame(rows)
