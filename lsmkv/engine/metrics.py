"""The figures of several stores as one text for monitoring systems: ``lsmkv.metrics_text``.

A scrape has each metric once, with the samples of all stores, so that the texts of two stores
cannot be put together.  :mod:`lsmkv.engine.db.observe.openmetrics` writes it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from lsmkv.engine.db.db import DB
from lsmkv.engine.db.observe.openmetrics import Measured, exposition
from lsmkv.engine.db.observe.published import Published, read_owner
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.errors import raise_typed
from lsmkv.engine.former_paths import keep_paths

Measurable: TypeAlias = DB | str | os.PathLike[str]
"""An open store, or the directory of one that another process may have open."""


def metrics_text(stores: Iterable[Measurable] | Mapping[str, Measurable]) -> str:
    """The figures of several stores in the OpenMetrics text format: see ``docs/monitoring.md``.

    A store is a handle that this process has open, or the path of a directory.  Of a path these are
    the figures that its owner publishes (``publish_stats=True``), at most about a second old; if
    none does, the sizes of levels alone, for which the store is opened to read.  A mapping names
    the stores: its keys become the label ``store``, which is the path otherwise.

    Raises ``ValueError`` if two stores have one label, ``TypeError`` for what is no store,
    :class:`ClosedError`, and of a path the errors of opening to read, or :class:`CorruptionError`
    if what is published is damaged.  Costs what ``DB.metrics_text`` does for each store, and for a
    path the reading of one file or an opening.

    >>> import lsmkv
    >>> with lsmkv.DB(":memory:") as users, lsmkv.DB(":memory:") as orders:
    ...     users.put(b"ada", b"1")
    ...     text = lsmkv.metrics_text({"users": users, "orders": orders})
    >>> [line for line in text.splitlines() if line.startswith("lsmkv_writes_total")]
    ['lsmkv_writes_total{store="users"} 1', 'lsmkv_writes_total{store="orders"} 0']
    """
    if isinstance(stores, (DB, str, bytes, os.PathLike)):  # of which all but one can be iterated
        raise TypeError("give a list of stores, or a mapping of their names to stores")
    if isinstance(stores, Mapping):
        return exposition([_measure(store, name) for name, store in stores.items()])
    return exposition([_measure(store, None) for store in stores])


def _measure(store: Measurable, name: str | None) -> Measured:
    if isinstance(store, DB):
        return store._measure(name)
    if not isinstance(store, (str, os.PathLike)):
        raise TypeError(f"a store must be a DB or a path, not {type(store).__name__}")
    path = os.fsdecode(store)
    label = path if name is None else name
    published = _published(path)
    if published is None:
        with DB(path, read_only=True) as db:
            return db._measure(label)._replace(publishing=False)
    return Measured(
        *(label, published.stats, published.latencies, True, published.time),
        *(published.epoch, published.processes),
    )


def _published(path: str) -> Published | None:
    """Return the published state of a live owner; None if there is none."""
    try:
        with LocalEnv().open_directory(path) as directory:
            owner = read_owner(directory)
    except FileNotFoundError:
        return None  # the opening says it better
    except OSError as error:
        raise_typed(error)
    return owner.published if owner.publishes else None


keep_paths(metrics_text)
