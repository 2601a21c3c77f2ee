"""Plain arithmetic for exact networks: TF32, shorter float32 products and autocast off, one thread; then restored.

Exactness of a literal module rests on IEEE products and sums.  Not a device manager; called around every evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Arithmetic:
    """What was in force before `plain_arithmetic` switched it off; belongs into the record of every result.

    Attributes:
        device: device type of the evaluation.
        matmul_precision: `torch.get_float32_matmul_precision()` before.
        cuda_float32, cpu_float32: mode of float32 products of the CUDA and CPU back ends before (``tf32`` is inexact).
        autocast: whether autocast was on before.
        threads: torch threads before.
    """

    device: str
    matmul_precision: str
    cuda_float32: str
    cpu_float32: str
    autocast: bool
    threads: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def _modes() -> list[Any]:
    """The back ends that can replace float32 products by shorter ones, where this torch names them."""
    found = [torch.backends.cuda.matmul, getattr(torch.backends.mkldnn, "matmul", None)]
    return [m if hasattr(m, "fp32_precision") else None for m in found]


@contextmanager
def plain_arithmetic(device: str = "cpu", *, threads: int | None = None) -> Iterator[Arithmetic]:
    """Within the block float32 products are IEEE, autocast is off and, if given, torch uses ``threads`` threads.

    Tiny layers run 10 to 100 times slower on two threads of a busy machine than on one, hence ``threads=1`` for
    literal networks.  Everything is restored afterwards, also after an error.

    >>> with plain_arithmetic(threads=1) as before:
    ...     torch.get_num_threads(), torch.is_autocast_enabled("cpu")
    (1, False)
    """
    modes = _modes()
    before = Arithmetic(
        device=device,
        matmul_precision=torch.get_float32_matmul_precision(),
        cuda_float32=modes[0].fp32_precision if modes[0] is not None else "unknown",
        cpu_float32=modes[1].fp32_precision if modes[1] is not None else "unknown",
        autocast=torch.is_autocast_enabled(device),
        threads=torch.get_num_threads(),
    )
    saved = [m.fp32_precision if m is not None else None for m in modes]
    try:
        torch.set_float32_matmul_precision("highest")
        for mode in modes:
            if mode is not None:
                mode.fp32_precision = "ieee"
        if threads is not None:
            torch.set_num_threads(threads)
        with torch.autocast(device_type=device, enabled=False):
            yield before
    finally:
        torch.set_float32_matmul_precision(before.matmul_precision)
        for mode, value in zip(modes, saved, strict=True):
            if mode is not None:
                mode.fp32_precision = value
        torch.set_num_threads(before.threads)
