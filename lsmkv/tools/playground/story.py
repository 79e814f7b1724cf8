"""The story of the first page: a store of Unicode names, its Gets, and what filters save.

The store is in memory, and flushes and compacts within the calls that write to it, so that the
same calls always make the same files.  Every figure is the engine's: it comes from
``explain``, ``stats``, the info log, or a replay under other filters.
"""

from __future__ import annotations

import functools
import random
import re
from typing import Any, Final

import lsmkv
from lsmkv.engine.db.handles.steps import TableStep
from lsmkv.files import Damage, Table
from lsmkv.tools.filter_lab import parse_settings, replay
from lsmkv.tools.playground.filters import key_of
from lsmkv.tools.sample_keys import Misspeller, unicode_names
from lsmkv.tools.text import clipped

Plain = dict[str, Any]
"""A JSON object."""

NAMES: Final = 14_500
"""Names in the store: enough for three tables on level 0 once all are written."""
MOST_AT_ONCE: Final = 2_000
WRITE_BUFFER: Final = 64 << 10
GETS: Final = 200
"""Lookups of a replay."""
MOST_PER_KEY: Final = 30
PATH: Final = "names"
_WIDTH = 60  # characters of a key in an answer
_SUGGESTED = 4
_NUMBERED = (b"CJK", b"HANGUL", b"TANGUT", b"NUSHU", b"KHITAN", b"EGYPTIAN")
"""The scripts whose characters have numbers for names."""
_LOG_TIME = re.compile(r"(?m)^\S+ \S+ ")


class Story:
    """The store, from the first put on."""

    def __init__(self, env: lsmkv.Env | None = None) -> None:
        """``env`` holds its files, in the directory :data:`PATH`; the default is memory."""
        self._env = lsmkv.MemoryEnv() if env is None else env
        self._db = lsmkv.DB(
            PATH,
            create_if_missing=True,
            env=self._env,
            write_buffer_size=WRITE_BUFFER,
            max_file_size=48 << 10,
            lru_cache_size=0,  # every block that is read comes from the file
            seek_compaction=False,
            background="inline",
        )
        self._directory = self._env.open_directory(PATH)
        self._log_read = 0
        self._put = 0
        self._blocks: dict[str, list[tuple[int, int]]] = {}

    def close(self) -> None:
        """Close the store."""
        self._db.close()

    def load(self, query: Plain) -> Plain:
        """Put up to ``keys`` more names; the state of the store afterwards.

        ``events`` are the new lines of the engine's info log, without those of removed files.
        """
        keys = query.get("keys")
        if not isinstance(keys, int) or not 0 <= keys <= MOST_AT_ONCE:
            raise ValueError(f"keys must be a number from 0 to {MOST_AT_ONCE:,}")
        more = records()[self._put : self._put + keys]
        for key, value in more:
            self._db.put(key, value)
        self._put += len(more)
        stats = self._db.stats()
        return {
            "put": self._put,
            "names": NAMES,
            "last": clipped(more[-1][0], _WIDTH) if more else "",
            "memtable": stats.memtable_bytes,
            "write_buffer": WRITE_BUFFER,
            "flushes": stats.flushes,
            "compactions": stats.compactions,
            "levels": self._levels(),
            "events": self._events(),
        }

    def get(self, query: Plain) -> Plain:
        """A Get of ``key``, table by table: the answer of each filter, and the block that is read.

        ``block`` is the offset of a block that is read, ``spared`` that of one that a filter ruled
        out; the totals are those with and without filters.
        """
        explained = self._db.explain(_key(query))
        return {
            "key": clipped(explained.key, _WIDTH),
            "found": explained.found,
            "memtable": bool(explained.chosen and explained.chosen.where == "memtable"),
            "tables": [_table(table) for table in explained.tables],
            "searched": explained.blocks_searched,
            "bytes": explained.bytes_read,
            "without": explained.blocks_without_filters,
            "bytes_without": explained.bytes_without_filters,
        }

    def filter(self, query: Plain) -> Plain:
        """The filter that a Get of ``key`` asks before it reads the block of ``table`` at
        ``block``: its bits, those that the Get probes, and which keys set each of these.

        Cost: the table's blocks that the filter covers.
        """
        key, name, offset = _key(query), query.get("table"), query.get("block")
        tables = {table.name for table in self._db.tables()}
        if name not in tables or offset not in dict(self._blocks_of(name)):
            raise ValueError("table and block must be those of a block that a Get reads")
        with Table(self._directory.open(name)) as table:
            (asked,) = table.filters_for(offset)
            members = dict.fromkeys(
                entry.user_key for entry in table.entries() if asked.covers(entry.block)
            )
        probe = asked.probe(key)
        assert probe is not None
        setters: dict[int, list[str]] = {at: [] for at in probe.positions}
        for member in members:
            set_by = asked.probe(member)
            for at in () if set_by is None else set(set_by.positions) & set(setters):
                setters[at].append(clipped(member, _WIDTH))
        return {
            "key": clipped(key, _WIDTH),
            "keys": len(members),
            "bits": asked.bits,
            "probes": asked.probes,
            "hex": asked.data[:-1].hex(),
            "positions": probe.positions,
            "setters": [setters[at] for at in probe.positions],
            "may_match": probe.may_match,
            "present": key in members,
        }

    def suggest(self, _: Plain) -> Plain:
        """Keys to ask for: absent ones whose Get would read many blocks, one that a filter lets
        pass by mistake if there is one among them, and names that are there."""
        rng = random.Random(4)
        names = [key for key, _ in records()[: self._put]]
        absent = [self._db.explain(key) for key in self._misspeller(rng).absent_keys(200)]
        absent.sort(key=lambda one: -one.blocks_without_filters)
        right = [one for one in absent if one.blocks_searched == 0][: _SUGGESTED - 1]
        wrong = [one for one in absent if one.blocks_searched > 0][:1]
        return {
            "absent": [one.key.decode() for one in right],
            "wrong": [one.key.decode() for one in wrong],
            "present": [key.decode() for key in rng.sample(names, _SUGGESTED - 1)],
        }

    def lookups(self, query: Plain) -> Plain:
        """Count the reads of :data:`GETS` lookups without filters, and with ``per_key`` bits.

        ``present`` of the lookups are of names in the store, the rest are misspelt names.  Counted
        by a replay: the filters are made and asked as those of the store are.
        """
        per_key, present = query.get("per_key"), query.get("present")
        if not isinstance(per_key, int) or not 0 <= per_key <= MOST_PER_KEY:
            raise ValueError(f"per_key must be from 0 to {MOST_PER_KEY}")
        if not isinstance(present, int) or not 0 <= present <= GETS:
            raise ValueError(f"present must be from 0 to {GETS}")
        gets = self.looked_up(present)
        settings = f"none block:{per_key}" if per_key else "none"
        found = replay(self._db, gets, parse_settings(settings))
        without, chosen = found.results[1], found.results[-1]
        return {
            "gets": found.gets,
            "found": found.found,
            "from_memory": found.from_memory,
            "per_key": per_key,
            "without": {"blocks": without.blocks_read, "bytes": without.total("bytes_read")},
            "with": {
                "blocks": chosen.blocks_read,
                "bytes": chosen.total("bytes_read"),
                "wasted": chosen.wasted_reads,
                "filter_bytes": chosen.filter_bytes,
            },
        }

    def looked_up(self, present: int) -> list[bytes]:
        """The keys of :data:`GETS` lookups, of which ``present`` are in the store."""
        rng = random.Random(5)
        names = [key for key, _ in records()[: self._put]]
        gets = rng.choices(names, k=present) + self._misspeller(rng).absent_keys(GETS - present)
        rng.shuffle(gets)
        return gets

    def _misspeller(self, rng: random.Random) -> Misspeller:
        names = [key for key, _ in records()[: self._put]]
        if not names:
            raise ValueError("the store is empty")
        return Misspeller(names, set(names).__contains__, rng)

    def _levels(self) -> list[Plain]:
        """The tables of each level that has any, each with the places of its data blocks."""
        levels: dict[int, list[Plain]] = {}
        for table in self._db.tables():
            shown = {"name": table.name, "size": table.size, "blocks": self._blocks_of(table.name)}
            levels.setdefault(table.level, []).append(shown)
        return [{"level": level, "tables": tables} for level, tables in sorted(levels.items())]

    def _blocks_of(self, name: str) -> list[tuple[int, int]]:
        """The offset and the size of each data block of a table."""
        if name not in self._blocks:
            with Table(self._directory.open(name)) as table:
                self._blocks[name] = [
                    (entry.handle.offset, entry.handle.size)
                    for entry in table.index.walk()
                    if not isinstance(entry, Damage) and entry.handle is not None
                ]
        return self._blocks[name]

    def _events(self) -> list[str]:
        with self._directory.open("LOG") as file:
            size = file.size
            text = file.read(self._log_read, size - self._log_read).decode()
        self._log_read = size
        lines = _LOG_TIME.sub("", text).splitlines()
        return [line for line in lines if line.startswith(("Level-", "Compacted", "Moved"))]


def _table(table: TableStep) -> Plain:
    block = table.block or table.spared
    return {
        "name": table.name,
        "level": table.level,
        "asked": table.asked,
        "verdict": table.verdict,
        "block": None if table.block is None else table.block.offset,
        "spared": None if table.spared is None else table.spared.offset,
        "bytes": 0 if block is None else block.size,
        "wasted": table.wasted,
    }


def _key(query: Plain) -> bytes:
    return key_of(query.get("key"), "key")


@functools.cache
def records() -> list[tuple[bytes, bytes]]:
    """Names of characters in random order, the same each time, each with its character."""
    named = [one for one in unicode_names().records if not one[0].startswith(_NUMBERED)]
    return random.Random(2).sample(named, NAMES)
