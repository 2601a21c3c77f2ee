"""Who holds a claim: names of drivers, and whether one that is named in a store is still alive."""

from __future__ import annotations

import os
import socket
import uuid

import psutil

_active: set[str] = set()  # this process's drivers that are running at this moment


def _started(pid: int) -> int:
    started: float = psutil.Process(pid).create_time()
    return round(started)


def enter() -> str:
    """A new owner's name: machine, process number, when the process started, and a unique part."""
    pid = os.getpid()
    owner = f"{socket.gethostname()}|{pid}|{_started(pid)}|{uuid.uuid4().hex[:12]}"
    _active.add(owner)
    return owner


def leave(owner: str) -> None:
    """The driver called ``owner`` has ended."""
    _active.discard(owner)


def known_dead(owner: str) -> bool:
    """Whether ``owner`` was a driver on this machine that runs no more; others are judged by their lease alone."""
    machine, _, rest = owner.partition("|")
    parts = rest.split("|")
    if machine != socket.gethostname() or len(parts) != 3:
        return False
    pid, started = int(parts[0]), int(parts[1])
    if pid == os.getpid() and abs(_started(pid) - started) <= 1:
        return owner not in _active
    try:
        return abs(_started(pid) - started) > 1 or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True
