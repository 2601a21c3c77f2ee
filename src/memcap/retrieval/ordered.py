"""Sums over blocks of samples that do not depend on the number of threads: fixed blocks, added in their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch

Block = TypeVar("Block")


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Torch's own parallelism off inside, restored after: rounding must not depend on it, and small products are
    slower with it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def ordered_sum(blocks: Sequence[Block], work: Callable[[Block], tuple[Any, ...]], threads: int = 1) -> tuple[Any, ...]:
    """Σ work(block), componentwise, added strictly in the order of ``blocks``.

    At most ``threads`` + 1 results are alive at a time.  ``work`` must release the interpreter lock to gain from
    threads (compiled kernels and torch do).
    """
    total: list[Any] | None = None

    def add(parts: tuple[Any, ...]) -> None:
        nonlocal total
        if total is None:
            total = list(parts)
            return
        for i, part in enumerate(parts):
            total[i] = total[i] + part

    with one_torch_thread():
        if threads == 1 or len(blocks) == 1:
            for block in blocks:
                add(work(block))
        else:
            with ThreadPoolExecutor(threads) as pool:
                waiting: deque[Future[tuple[Any, ...]]] = deque()
                for block in blocks:
                    waiting.append(pool.submit(work, block))
                    if len(waiting) > threads:
                        add(waiting.popleft().result())
                while waiting:
                    add(waiting.popleft().result())
    assert total is not None, "a run has at least one sample"
    return tuple(total)


def product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Matrix product of float64 arrays whose rounding does not depend on the number of threads."""
    with one_torch_thread():
        result = torch.as_tensor(np.ascontiguousarray(left)) @ torch.as_tensor(np.ascontiguousarray(right))
    return np.asarray(result.numpy())


def qr(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Reduced QR decomposition whose rounding does not depend on the number of threads."""
    with one_torch_thread():
        q, r = torch.linalg.qr(torch.as_tensor(matrix))
    return np.asarray(q.numpy()), np.asarray(r.numpy())
