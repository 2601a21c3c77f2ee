"""The third backend: a Dask cluster (SLURM, Kubernetes, SSH, clouds), behind the same ``concurrent.futures`` interface.

Dask blames every task that a dying worker held; the driver therefore tries such cells again, alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any, TypeVar

from memcap.errors import ConfigurationError, RunError, require_extra
from memcap.study.execution import versions
from memcap.study.process_slots import WorkerDied

T = TypeVar("T")
_PATIENCE = 60.0  # seconds to wait for the scheduler and the first worker


class ClusterSlots(Executor):
    """Submits to a ``distributed.Client``; a task whose workers died fails with ``WorkerDied``."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._open: dict[Future[Any], Any] = {}

    def slots(self) -> int:
        """Threads of all workers at this moment; at least one, so that an adaptive cluster has a reason to grow."""
        return max(1, sum(int(threads) for threads in self._client.nthreads().values()))

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run ``fn(*args, **kwargs)`` on the cluster."""
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        task = self._client.submit(fn, *args, **kwargs, pure=False)
        self._open[future] = task
        task.add_done_callback(lambda finished: self._pass_on(finished, future))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let go of all tasks; the cluster itself is its owner's."""
        tasks = list(self._open.values())
        self._open.clear()
        if tasks and cancel_futures and self._client.status == "running":
            self._client.cancel(tasks)

    def _pass_on(self, task: Any, future: Future[Any]) -> None:
        if self._open.pop(future, None) is None:
            return
        try:
            future.set_result(task.result(timeout=_PATIENCE))
        except Exception as error:
            future.set_exception(self._translate(error))

    def _translate(self, error: Exception) -> Exception:
        from distributed.client import FutureCancelledError
        from distributed.scheduler import KilledWorker

        if isinstance(error, KilledWorker):
            return WorkerDied(f"the cluster's workers died with this cell: {str(error).splitlines()[0]}", 1)
        if isinstance(error, FutureCancelledError) or self._client.status != "running":
            return RunError(
                f"the cluster is gone ({type(error).__name__}); what was computed is stored, 'resume' goes on"
            )
        return error


@contextmanager
def open_cluster(scheduler: Any) -> Iterator[ClusterSlots]:
    """Connect to a scheduler's address, or use a client as it is.

    Raises:
        MissingExtraError: if Dask is not installed.
        ConfigurationError: if ``scheduler`` is neither, or the workers cannot run this memcap.
        RunError: if nobody answers, or no worker appears.
    """
    try:
        from distributed import Client
    except ImportError:
        raise require_extra("distributed", "cluster") from None
    if not isinstance(scheduler, str | Client):
        raise ConfigurationError(
            f"scheduler is an address such as 'tcp://host:8786' or a distributed.Client, got {type(scheduler).__name__}"
        )
    mine = isinstance(scheduler, str)
    if isinstance(scheduler, str) and not re.fullmatch(r"([a-z]+://)?\S*[^\s:/]:\d+/?", scheduler):
        raise ConfigurationError(f"scheduler is an address with a port, such as tcp://host:8786, got {scheduler!r}")
    connect: Any = Client
    try:
        client: Any = connect(scheduler, timeout=_PATIENCE, set_as_default=False) if mine else scheduler
    except (OSError, ValueError) as error:
        raise RunError(f"no Dask scheduler answers at {scheduler!r}: {error}") from None
    cluster = ClusterSlots(client)
    try:
        _check_workers(client)
        yield cluster
    finally:
        cluster.shutdown(cancel_futures=True)
        if mine:
            client.close()


def _check_workers(client: Any) -> None:
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
        raise RunError(f"the Dask cluster has had no worker for {_PATIENCE:.0f} s") from None
    try:
        theirs = client.run(versions)
    except ImportError as error:
        raise ConfigurationError(f"the cluster's workers cannot import memcap: {error}; install it there") from None
    wanted = versions()["memcap"]
    for worker, found in theirs.items():
        if found["memcap"] != wanted:
            raise ConfigurationError(f"memcap is {wanted} here but {found['memcap']} on the worker {worker}")
