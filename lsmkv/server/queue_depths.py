"""Lengths of the job queues of Celery, RQ, Dramatiq and Huey, and the age of each one's oldest job.

These libraries keep a queue as a list.  Most do not say in a job when it was sent.  So the ends of
each list are noted once a second: an element has waited since the first note that has it.  For a
job that waited before the server started, or noticed the queue, the wait counts from that time.
"""

from __future__ import annotations

import time
from collections import deque
from typing import NamedTuple

from lsmkv.server.database import Database
from lsmkv.server.encoding import LIST, SET, STRING, Entry, element_prefix, successor
from lsmkv.server.keyspace import Keyspace

_PREFIXES = (b"dramatiq:", b"huey.redis.", b"rq:queue:")
"""Prefixes of these libraries' queue names."""
_BINDINGS = b"_kombu.binding."
"""The prefix of the names of Celery's sets of queues."""
_SEPARATOR = b"\x06\x16"
"""Kombu's separator, before a queue's name in such a set, and before a priority."""
_NOT_JOBS = (b".pidbox", b"celeryev")
"""Parts of the names of Celery's lists that hold no jobs."""
_MOST_KEYS = 1000
"""Keys of one prefix that are looked at."""
_MOST_NOTES = 256


class QueueFigures(NamedTuple):
    """A queue."""

    database: int
    name: str
    jobs: int
    """The number of waiting jobs."""
    age: float
    """Seconds that the oldest of them has waited; 0 without jobs, or for another kind of key."""


class _Note(NamedTuple):
    """The range of elements in a list at one moment."""

    time: float
    first: int
    """The index of the first one."""
    end: int
    """The index after the last one."""


class _Queue:
    """A queue that was seen, with notes about its list."""

    def __init__(self) -> None:
        self.jobs = 0
        self._version = 0
        self._notes: deque[_Note] = deque()

    def note(self, entry: Entry | None, now: float) -> None:
        """Note what the queue is now."""
        self.jobs = 0 if entry is None or entry.kind == STRING else entry.size
        if entry is None or entry.kind != LIST:
            self._notes.clear()
            return
        if entry.version != self._version:
            self._version = entry.version
            self._notes.clear()
        note = _Note(now, entry.head, entry.head + entry.size)
        self._notes.append(note)
        while not _shared(self._notes[0], note):
            self._notes.popleft()
        if len(self._notes) > _MOST_NOTES:
            kept = [*self._notes][:1] + [*self._notes][1::2]
            self._notes = deque(kept)

    def age(self, now: float) -> float:
        """Seconds since the first note that has an element which is at an end now."""
        return now - self._notes[0].time if self._notes else 0.0


def _shared(earlier: _Note, now: _Note) -> bool:
    """True if an element at one of the ends was there earlier: the oldest is at one of them."""
    return any(earlier.first <= index < earlier.end for index in (now.first, now.end - 1))


class QueueDepths:
    """The queues of a keyspace.

    ``names`` are those of keys; without any, keys with the libraries' usual names are found.  Call
    :meth:`look` about once a second.  It costs a Get for each queue in each database that has keys,
    and without names a seek for each of four prefixes.
    """

    def __init__(self, space: Keyspace, names: list[bytes]) -> None:
        self._space = space
        self._names = names
        self._queues: dict[tuple[int, bytes], _Queue] = {}
        """Those that were seen, even if they are empty now."""

    def look(self) -> None:
        """Note what is there now."""
        now = time.monotonic()
        for database in self._space.databases:
            if database.size:
                for name in self._names or self._found(database):
                    self._queues.setdefault((database.index, name), _Queue())
        if not self._queues:
            for name in self._names:
                self._queues[0, name] = _Queue()
        for (index, name), queue in self._queues.items():
            record = self._space.records.get(self._space.databases[index].prefix + name)
            queue.note(None if record is None else Entry.decode(record), now)

    def _found(self, database: Database) -> list[bytes]:
        """The usual names of queues that are there."""
        names = [name for prefix in _PREFIXES for name in self._under(database, prefix, LIST)]
        for key in self._under(database, _BINDINGS, SET):
            entry = Entry.decode(self._space.records.get(database.prefix + key) or b"")
            for member, _ in self._space.records.under(element_prefix(entry)):
                name = member.rpartition(_SEPARATOR)[2]
                if not any(part in name for part in _NOT_JOBS):
                    names += [name, *self._under(database, name + _SEPARATOR, LIST)]
        return names

    def _under(self, database: Database, prefix: bytes, kind: int) -> list[bytes]:
        """The keys of one kind that begin with a prefix."""
        found = []
        keys = self._space.keys(database, prefix, successor(prefix))
        for count, (key, entry) in enumerate(keys):
            if count == _MOST_KEYS:
                break
            if entry.kind == kind:
                found.append(key)
        return found

    def figures(self) -> list[QueueFigures]:
        """The latest figures, sorted by database and name."""
        now = time.monotonic()
        return [
            QueueFigures(index, _text(name), queue.jobs, queue.age(now))
            for (index, name), queue in sorted(self._queues.items(), key=lambda item: item[0])
        ]


def _text(name: bytes) -> str:
    """The name of a queue; one of Celery's with a priority as ``celery:3``."""
    return name.replace(_SEPARATOR, b":").decode("utf-8", "backslashreplace")
