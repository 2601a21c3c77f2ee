"""Run benchmarks by name: ``python -m benchmarks [memories retrieval study report ...]``."""

from __future__ import annotations

import importlib
import os
import pkgutil
import platform
import sys

import numpy
import torch

import benchmarks


def main() -> int:
    known = sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name != "__main__")
    wanted = sys.argv[1:] or known
    unknown = [name for name in wanted if name not in known]
    if unknown:
        print(f"no benchmark called {', '.join(unknown)}; there are: {', '.join(known)}")
        return 2
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, torch {torch.__version__}, numpy {numpy.__version__}"
    )
    for name in wanted:
        print(f"\n== {name}")
        importlib.import_module(f"benchmarks.{name}").main()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
