"""The process that has a store open, and its published state: ``lsmkv top`` for programs.

A process that opens a store with ``publish_stats=True`` publishes its counters and latencies once a
second.  :func:`read_owner` reads them in any other process, without a lock and without opening the
store.  ``lsmkv.DB.stats`` has the same counters within the process.
"""

from __future__ import annotations

import os

from lsmkv.engine.db.observe import published
from lsmkv.engine.db.observe.histogram import Histogram
from lsmkv.engine.db.observe.processes import ProcessFigures
from lsmkv.engine.db.observe.published import CompactionUnderWay, Owner, Published
from lsmkv.engine.db.observe.trace import OPERATIONS
from lsmkv.engine.db.opening.directory import open_database_directory
from lsmkv.engine.env.base import Directory, Env
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.errors import raise_typed
from lsmkv.engine.former_paths import keep_paths

__all__ = [
    "OPERATIONS",
    "CompactionUnderWay",
    "Histogram",
    "Owner",
    "ProcessFigures",
    "Published",
    "read_owner",
]


def read_owner(store: str | os.PathLike[str] | Directory, *, env: Env | None = None) -> Owner:
    """Return the process that has a store open, and the state that was published last.

    ``store`` is its path, or its :class:`lsmkv.Directory` for a program that reads again and again,
    which stays open; ``env`` is where the path is, if not in the local file system.  Nothing is
    written, and no lock is taken.  Raises :class:`~lsmkv.NotFoundError` if there is no store at the
    path, :class:`~lsmkv.CorruptionError` if ``STATS.json`` holds anything else than what is
    published, and :class:`~lsmkv.IOError`.  Cost: one file of about 10 kB is read.

    >>> import lsmkv, time
    >>> env = lsmkv.MemoryEnv()  # on disk, leave it out
    >>> with lsmkv.DB("store", create_if_missing=True, env=env, publish_stats=True) as db:
    ...     while not read_owner("store", env=env).publishes:  # once a second
    ...         time.sleep(0.01)
    ...     now = read_owner("store", env=env).published
    >>> now.stats.gets, now.latencies["get"].count, now.compaction
    (0, 0, None)
    >>> read_owner("store", env=env).pid is None
    True
    """
    if isinstance(store, Directory):
        return published.read_owner(store)
    where = os.fsdecode(store)
    try:
        with open_database_directory(LocalEnv() if env is None else env, where, False) as opened:
            return published.read_owner(opened)
    except OSError as error:
        raise_typed(error)


keep_paths(*(globals()[name] for name in __all__))
