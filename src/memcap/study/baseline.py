"""What a worker needs before it computes anything: a memory limit below that would end every one of them."""

from __future__ import annotations

from memcap.errors import ConfigurationError
from memcap.study import measurements
from memcap.study.execution import peak_memory
from memcap.study.process_slots import ProcessSlots


def refuse_small_limit(task: str, limit: int, threads: int = 1) -> None:
    """Start one worker without a limit, import the measurement there, and compare.

    Args:
        task: name or place of the measurement.
        limit: bytes that a worker may use.
        threads: numeric threads of a worker.

    Raises:
        ConfigurationError: if the worker alone is larger than the limit.
    """
    pool = ProcessSlots(1, threads=threads)
    try:
        used = int(pool.submit(loaded_memory, measurements.place_of(task)).result())
    finally:
        pool.shutdown(cancel_futures=True)
    if used > limit:
        raise ConfigurationError(
            f"a memory limit of {limit / 2**20:.0f} MiB is less than the {used / 2**20:.0f} MiB that a worker for task "
            f"{task!r} uses before its first cell; every cell would be ended. Give more, and see "
            f"'memcap study check' for what the cells need on top"
        )


def loaded_memory(place: str) -> int:
    """Largest resident size of this process so far, bytes, once it has imported a measurement."""
    measurements.load(place)
    return peak_memory()
