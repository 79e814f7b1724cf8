"""Figures that the owner of the store publishes: those of ``lsmkv top``, and their history.

Each question reads the store, so nothing is read while no page asks.
"""

from __future__ import annotations

import threading

from lsmkv import Directory
from lsmkv.tools.inspect.plain import Plain
from lsmkv.tools.text import printable
from lsmkv.tools.top import figures
from lsmkv.tools.top.plain import owner_as_dict
from lsmkv.tools.top.watch import Watch


class Live:
    """A store that is watched, from any number of threads."""

    def __init__(self, directory: Directory) -> None:
        self._watch = Watch(directory)
        self._lock = threading.Lock()

    def look(self) -> Plain:
        """Return the published figures as text, and curves since the first call.

        ``explanation`` says why there is nothing, and is None otherwise.
        """
        with self._lock:
            watch = self._watch
            watch.look()
            return (
                {"path": printable(watch.path)}
                | owner_as_dict(watch.owner)
                | {
                    "explanation": _explanation(watch),
                    "silent_seconds": watch.silent_seconds,
                    "figures": _figures(watch),
                    "curves": _curves(watch),
                }
            )


def _explanation(watch: Watch) -> Plain | None:
    return None if watch.published is not None else figures.explanation(watch)._asdict()


def _figures(watch: Watch) -> Plain:
    published = watch.published
    under_way = None if published is None else figures.compaction(published)
    return {
        "operations": [one._asdict() for one in figures.operations(watch)],
        "hits": [one._asdict() for one in figures.caches(watch)],
        "filters": [one._asdict() for one in figures.filters(watch)],
        "written": [one._asdict() for one in figures.writes(watch)],
        "background": [one._asdict() for one in figures.background(watch)],
        "compaction": None if under_way is None else under_way._asdict(),
        "no_compaction": "" if published is None else figures.no_compaction(published),
        "levels": [one._asdict() for one in figures.levels(watch)],
    }


def _curves(watch: Watch) -> Plain:
    return {
        "time": list(watch.times),
        "rates": {operation: list(rates) for operation, rates in watch.rates.items()},
        "p99": list(watch.p99),
    }
