"""What tests of ``lsmkv top`` share: a store in memory whose owner publishes what a test sets."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from lsmkv import DB, MemoryEnv, Stats
from lsmkv.engine.db.observe.histogram import Histogram
from lsmkv.engine.db.observe.processes import COUNTED, ProcessFigures
from lsmkv.engine.db.observe.published import CompactionUnderWay, Published, encode
from lsmkv.engine.db.observe.trace import OPERATIONS
from lsmkv.engine.env.base import Directory
from lsmkv.engine.format.filenames import LOCK, STATS
from lsmkv.tools.top.watch import Watch


def no_stats() -> Stats:
    """Counters of a store in which nothing happened."""
    with DB(":memory:") as db:
        return db.stats()


class Owner:
    """Plays the owner of a store: holds its lock, and publishes."""

    def __init__(self, path: str = "store") -> None:
        self.directory: Directory = MemoryEnv().open_directory(path, create=True)
        self.lock = self.directory.lock(LOCK)
        self.watch = Watch(self.directory)
        pid = self.directory.lock_holder(LOCK)
        assert pid is not None
        now = time.time()
        self.now = Published(
            pid=pid,
            time=now,
            opened=now - 100,
            stats=no_stats(),
            latencies={operation: Histogram() for operation in OPERATIONS},
            compaction=None,
            flushing=False,
            stalled_seconds=0.0,
            row_cache_bytes=0,
            block_cache_capacity=8 << 20,
            write_buffer_size=4 << 20,
            trace=None,
        )

    def publish(self, seconds: float = 1.0, **changes: Any) -> None:
        """Publish after so many seconds; ``stats`` are changes of the counters."""
        stats = changes.pop("stats", {})
        self.now = self.now._replace(
            time=self.now.time + seconds, stats=replace(self.now.stats, **stats), **changes
        )
        self.write(encode(self.now))

    def operate(self, operation: str, number: int, nanoseconds: int) -> None:
        """So many operations, each of which took so long."""
        latencies = dict(self.now.latencies)
        more = Histogram()
        for _ in range(number):
            more.add(nanoseconds)
        latencies[operation] = latencies[operation] + more
        self.now = self.now._replace(latencies=latencies)

    def write(self, content: bytes) -> None:
        """Replace the file."""
        if self.directory.exists(STATS):
            self.directory.remove(STATS)
        with self.directory.create(STATS) as file:
            file.append(content)

    def look(self) -> Watch:
        """The watch, after another look."""
        self.watch.look()
        return self.watch


def busy_owner(path: str = "store", publications: int = 30) -> Owner:
    """An owner in whose store much goes on: published for a while."""
    owner = Owner(path)
    levels = owner.now.stats.levels
    owner.now = owner.now._replace(
        stats=replace(
            owner.now.stats,
            levels=(
                replace(levels[0], files=3, bytes=6_000_000),
                replace(levels[1], files=5, bytes=9_800_000),
                replace(levels[2], files=41, bytes=81_000_000, expected_rate=0.009),
                *levels[3:],
            ),
            block_cache_bytes=7_900_000,
            memtable_bytes=1_700_000,
        )
    )
    for n in range(publications):
        busy = 1 + (n * 7 % 11)
        owner.operate("get", 1200 * busy, 2_300)
        owner.operate("get", 30 * busy, 41_000)
        owner.operate("put", 400 * busy, 3_100)
        owner.operate("write", 7, 250_000)
        owner.operate("seek", 25, 31_000)
        stats = owner.now.stats
        level = stats.levels[2]
        deepest = replace(
            level,
            filters_asked=level.filters_asked + 1000 * busy,
            filter_negatives=level.filter_negatives + 780 * busy,
            filter_false_positives=level.filter_false_positives + 8 * busy,
            blocks_read=level.blocks_read + 90 * busy,
            block_cache_hits=level.block_cache_hits + 138 * busy,
        )
        owner.publish(
            stats={
                "levels": (*stats.levels[:2], deepest, *stats.levels[3:]),
                "gets": stats.gets + 1230 * busy,
                "gets_found": stats.gets_found + 430 * busy,
                "gets_from_rows": stats.gets_from_rows + 150 * busy,
                "gets_from_memory": stats.gets_from_memory + 60 * busy,
                "user_bytes": stats.user_bytes + 51_000 * busy,
                "log_bytes": stats.log_bytes + 60_000 * busy,
                "flush_bytes": stats.flush_bytes + 45_000 * busy,
                "compaction_bytes_written": stats.compaction_bytes_written + 130_000 * busy,
                "compactions": n,
            },
            compaction=CompactionUnderWay(1, 1, 9, 19_000_000, 8_500_000, 1.3),
            flushing=n % 4 == 0,
        )
        owner.look()
    return owner


def shared_owner(members: int, publications: int = 3) -> Owner:
    """An owner whose store that many members share; the third of them does most."""
    owner = Owner()
    for n in range(1, publications + 1):
        processes = [figures(owner.now.pid, "owner", 10 * n, 0)]
        processes += [
            figures(1000 + at, "member", 100 * n * max(0, at * (4 - at)), 20 * n)
            for at in range(members)
        ]
        processes.append(figures(0, "gone", 7, 3, lost=2))
        gets = sum(one.counters["gets"] for one in processes)
        writes = 5 * n + sum(one.writes.count for one in processes)
        owner.publish(stats={"gets": gets, "writes": writes}, epoch=4, processes=tuple(processes))
        owner.look()
    return owner


def figures(pid: int, role: str, gets: int, writes: int, lost: int = 1) -> ProcessFigures:
    """A process with so many Gets, writes of 40 us, and times of 80 ms without an owner."""
    counters = dict.fromkeys(COUNTED, 0) | {"gets": gets}
    taken, without = Histogram(), Histogram()
    for _ in range(writes):
        taken.add(40_000)
    for _ in range(lost):
        without.add(80_000_000)
    return ProcessFigures(pid, role, counters, taken, without)
