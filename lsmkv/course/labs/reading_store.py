"""The check of lab 8 that counts a Get's costs in a real store, and the measurement for its
plot."""

from __future__ import annotations

import contextlib
import os
import random
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import NamedTuple

import lsmkv
from lsmkv.course.failure import CheckFailure, require, shown
from lsmkv.course.labs.asked_tables import (
    AskedTable,
    Content,
    Levels,
    Step,
    StoredTable,
    path,
)
from lsmkv.course.labs.formats import LEVELS, version_of_store
from lsmkv.course.labs.temporary_stores import (
    files_of,
    require_content_by_leveldb,
    require_same,
    scratch,
)
from lsmkv.files import Table, make_name
from lsmkv.tools.text import count

BITS = 10


def some_key(dice: random.Random, low: int, high: int) -> bytes:
    """A key for a random number in a range."""
    return b"%05d" % dice.randrange(low, high)


def fill(directory: str, bits: int) -> Content:
    """A store with four tables on level 2, two on level 1, and three on level 0; returns its
    content.

    Each table has two versions of every third of its keys.
    """
    content: Content = {}
    dice = random.Random(1)
    ranges = [(at, at + 2500) for at in range(0, 10_000, 2500)] + [(0, 5000), (5000, 10_000)]
    with lsmkv.DB(
        directory,
        create_if_missing=True,
        block_size=512,
        compression=None,
        bloom_filter_bits=bits,
        seek_compaction=False,
    ) as db:
        for low, high in [*ranges, *[(0, 10_000)] * 3]:
            keys = [some_key(dice, low, high) for _ in range(120)]
            first, again = [
                {
                    key: None if n % 9 == 0 else b"value %d of %d%s" % (n, low, end)
                    for n, key in enumerate(some)
                }
                for some, end in ((keys, b"." * 20), (keys[::3], b", again" + b"." * 13))
            ]
            write(db, first)
            with db.snapshot():  # so that the flush keeps what is overwritten
                write(db, again)
                db.flush()
            content |= {**first, **again}
    return content


def write(db: lsmkv.DB, content: Content) -> None:
    """Put and delete keys."""
    for key, value in content.items():
        if value is None:
            db.delete(key)
        else:
            db.put(key, value)


@contextlib.contextmanager
def opened(directory: str, steps: list[Step], has_filters: bool = True) -> Iterator[Levels]:
    """The tables of a store by level, as its MANIFEST names them; they record every step."""
    levels: Levels = []
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(lsmkv.LocalEnv().open_directory(directory))
        for level, files in enumerate(version_of_store(folder).levels):
            tables: list[StoredTable] = []
            for file in files:
                table = stack.enter_context(Table(folder.open(make_name("table", file.number))))
                tables.append(StoredTable(steps, level, file, table, has_filters))
            by = table_number if level == 0 else smallest_key
            levels.append(sorted(tables, key=by))
        yield levels


def table_number(table: AskedTable) -> int:
    return table.number


def smallest_key(table: AskedTable) -> bytes:
    return table.smallest


class Cost(NamedTuple):
    """The cost of a Get on one level."""

    filters: int
    blocks: int


def costs_of(steps: Sequence[Step], has_filters: bool) -> list[Cost]:
    """The costs of a Get by level, from the steps that it took."""
    return [
        Cost(
            sum(has_filters and step.said is not None for step in steps if step.level == level),
            sum(step.said is None for step in steps if step.level == level),
        )
        for level in range(LEVELS)
    ]


def costs_in(levels: Sequence[lsmkv.LevelStats]) -> list[Cost]:
    """The costs of Gets by level, from the engine's counters."""
    return [Cost(level.filters_asked, level.blocks_read) for level in levels]


def in_the_engine(code: ModuleType) -> str:
    """Check that the student's Get and the engine's cost the same in one store's tables."""
    with scratch() as directory:
        store = os.path.join(directory, "store")
        content = fill(store, BITS)
        present, absent = some_gets(content)
        totals = [
            compare(code, store, content, [*present, *absent], has_filters)
            for has_filters in (True, False)
        ]
        tables = len(files_of(store, "table"))
        by_leveldb = require_content_by_leveldb(store, content, "The store", BITS)
    (filters, reads), (_, reads_without) = totals
    return (
        f"in the {tables} tables of a store, {len(present) + len(absent)} Gets of yours gave the"
        f" engine's answers{by_leveldb}; they asked {filters:,} filters and read {reads:,} blocks,"
        f" exactly as db.stats() reports them, and {reads_without:,} blocks without filters"
    )


def compare(
    code: ModuleType,
    store: str,
    content: Content,
    keys: Sequence[bytes],
    has_filters: bool,
) -> Cost:
    """Get keys both ways, and compare answers and costs; return the costs of all."""
    steps: list[Step] = []
    filters = blocks_read = 0
    setting = "with filters" if has_filters else "without filters"
    with (
        opened(store, steps, has_filters) as levels,
        lsmkv.DB(
            store,
            read_only=True,
            bloom_filter_bits=BITS if has_filters else 0,
            lru_cache_size=0,
            seek_compaction=False,
        ) as db,
    ):
        for key in keys:
            steps.clear()
            got = code.get(levels, key)
            before = db.stats()
            expected = db.get(key)
            spent = costs_in((db.stats() - before).levels)
            require_same({key: expected}, {key: content.get(key)}, "DB.get answers")
            if got != expected:
                raise CheckFailure(
                    f"In a store {setting}, your get of {key!r} returned {shown(got)}, and"
                    f" DB.get {shown(expected)}. Your steps: {path(steps)}."
                    + hint_of_versions(levels, key, got)
                )
            for level, (mine, engine) in enumerate(
                zip(costs_of(steps, has_filters), spent, strict=True)
            ):
                require(
                    mine == engine,
                    f"In a store {setting}, for {key!r} on level {level}, db.stats() counts"
                    f" {count(engine.filters, 'filter')} asked and"
                    f" {count(engine.blocks, 'block')} read, but your get asked {mine.filters} and"
                    f" read {mine.blocks}. Your steps: {path(steps)}.",
                )
                filters += mine.filters
                blocks_read += mine.blocks
    return Cost(filters, blocks_read)


def hint_of_versions(levels: Levels, key: bytes, got: object) -> str:
    """A hint if the answer is an older version in some block; otherwise empty."""
    for table in (table for level in levels for table in level):
        block = bisect_left(table.index_keys, key)
        entries = table.read_block(block) if block < len(table.index_keys) else ()
        versions = [value for found, value in entries if found == key]
        if got in versions[1:] and got != versions[0]:
            return (
                f"\nTable {table.number} has two versions of the key in a block: the first one"
                " is the newest."
            )
    return ""


def measured_reads(code: ModuleType) -> dict[str, tuple[float, float]]:
    """Data blocks read per Get by filter setting, useful and wasted, for the student's Get and the
    engine's, on stores of nine tables, with as many present keys as absent ones."""
    reads: dict[str, tuple[float, float]] = {}
    for bits in (0, 2, 5, 10, 16):
        steps: list[Step] = []
        with scratch() as directory:
            store = os.path.join(directory, "store")
            content = fill(store, bits)
            present, absent = some_gets(content)
            with (
                opened(store, steps, bits > 0) as levels,
                lsmkv.DB(
                    store,
                    read_only=True,
                    bloom_filter_bits=bits,
                    lru_cache_size=0,
                    seek_compaction=False,
                ) as db,
            ):
                for key in (*present, *absent):
                    got, expected = code.get(levels, key), db.get(key)
                    require(
                        got == expected,
                        f"your get of {key!r} returned {shown(got)}, and DB.get {shown(expected)}.",
                    )
                yours = sum(step.said is None for step in steps)
                engine = db.stats().blocks_read
        gets = len(present) + len(absent)
        used = len(present) / gets
        filters = f"{count(bits, 'bit')} a key" if bits else "no filters"
        reads[f"{filters}: yours"] = used, yours / gets - used
        reads[f"{filters}: lsmkv"] = used, engine / gets - used
    return reads


def some_gets(content: Content) -> tuple[list[bytes], list[bytes]]:
    """Keys of which a store has a version, and as many that it never had."""
    dice = random.Random(3)
    present = dice.sample(sorted(content), 100)
    absent: list[bytes] = []
    while len(absent) < len(present):
        key = some_key(dice, 0, 10_000)
        absent += [key] if key not in content else []
    return present, absent
