"""The README's picture from a record of ``memcap reproduce sqrt-law --out``.

memcap reproduce sqrt-law --scale full --out docs/gallery/sqrt-law.json
python -m benchmarks gallery
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pandas as pd

from memcap.report.law import law_chart

GALLERY = Path(__file__).parent.parent / "docs" / "gallery"
NAMES = {
    "exact": "exact integers",
    "float64": "float64",
    "float32": "float32",
    "keyed": "keyed (rejects strangers)",
    "interpolator": "one hidden layer, 3N",
}


def table(record: dict[str, object], classes: int = 2) -> pd.DataFrame:
    """Measured sizes for one number of classes, the N-parameter lookup, and the bound N log2 C / 64."""
    rows = []
    sizes = [row for row in record["sizes"] if row["classes"] == classes]
    for row in sizes:
        rows.append(
            {"N": row["N"], "parameters": row["parameters"], "series": NAMES[row["series"]], "kind": "measured"}
        )
        rows.append({**rows[-1], "kind": "fitted"})
    items = sorted({row["N"] for row in sizes})
    for n in items:
        rows.append({"N": n, "parameters": n, "series": "a lookup table, N", "kind": "bound"})
        least = max(1, math.ceil(n * math.log2(classes) / 64))
        rows.append({"N": n, "parameters": least, "series": "bound: N bits in 64-bit weights", "kind": "bound"})
    return pd.DataFrame(rows)


def main() -> None:
    source = GALLERY / "sqrt-law.json"
    if not source.exists():
        raise SystemExit(f"{source} is missing; make it with: memcap reproduce sqrt-law --scale full --out {source}")
    record = json.loads(source.read_text(encoding="utf-8"))
    figure = law_chart(
        table(record),
        title="A memory of N random items with one label bit each",
        caption="Points: memories that were built and recall every item. Dashed: a table of N numbers, and the bound.",
    )
    for theme in ("light", "dark"):
        figure.save(GALLERY / f"sqrt-law-{theme}.svg", theme=theme, width=760)
        print(GALLERY / f"sqrt-law-{theme}.svg")


if __name__ == "__main__":
    main()
