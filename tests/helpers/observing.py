"""What tests of observed stores share: a look at what an owner publishes, and waiting for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from lsmkv import Env, LocalEnv, TraceRecord, read_trace
from lsmkv.engine.db.observe.published import Owner, Published, read_owner


def owner_of(path: str | Path, env: Env | None = None) -> Owner:
    """Who has a store open, and what it publishes."""
    with (LocalEnv() if env is None else env).open_directory(str(path)) as directory:
        return read_owner(directory)


def published(
    path: str | Path,
    when: Callable[[Published], object] = lambda _: True,
    env: Env | None = None,
) -> Published:
    """The first publication of the live owner for which ``when`` holds."""
    while True:
        owner = owner_of(path, env)
        if owner.publishes and owner.published is not None and when(owner.published):
            return owner.published
        time.sleep(0.02)


def traced(path: str | Path) -> list[TraceRecord]:
    """The operations of a trace."""
    return list(read_trace(path))


def kinds(path: str | Path) -> list[tuple[str, bytes, int | None]]:
    """Operation, key and size of each operation of a trace."""
    return [(one.operation, one.key, one.size) for one in traced(path)]
