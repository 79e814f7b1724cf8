"""Stores that a process of its own owns, and its end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lsmkv import SharedDB


def new(path: Path, **options: object) -> SharedDB:
    """The store, made if there is none."""
    return SharedDB(path, owner="process", create_if_missing=True, **options)  # type: ignore[arg-type]


def is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def ends(pid: int) -> bool:
    """Whether a process ends, soon."""
    until = time.monotonic() + 30
    while is_alive(pid):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


@contextmanager
def ended(path: Path) -> Iterator[None]:
    """The owner of the store, which would end by itself, but not at once, ends after this."""
    yield
    try:
        pid = int((path / "LOCK").read_bytes() or b"0")
    except FileNotFoundError:
        return
    if pid > 0 and is_alive(pid):
        os.kill(pid, signal.SIGTERM)
        assert ends(pid)
