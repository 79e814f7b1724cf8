"""Activity of a live store, as figures and words that are the same wherever they are drawn.

``lsmkv top`` draws them in the terminal (``panels.py``, ``guide.py``), and the page of ``lsmkv
inspect`` in the browser.  Every function takes a watch; where nothing is published it returns [].
"""

from __future__ import annotations

import time
from collections import Counter
from itertools import zip_longest
from typing import Final, Literal, NamedTuple

from lsmkv.engine.util.text import percent
from lsmkv.shared.owner import OPERATIONS, Published
from lsmkv.tools.processes import process_rows
from lsmkv.tools.text import duration, printable, size
from lsmkv.tools.top.watch import Watch, Window

PERCENTILES: Final = (50, 90, 99, 100)

_HIGH_RATE = 0.05
"""A rate of false positives that is five times that of the default, 10 bits a key."""

Tone = Literal["", "good", "bad"]


class Figure(NamedTuple):
    """A figure with its name."""

    name: str
    text: str
    tone: Tone = ""
    short: str = ""
    """A shorter text where there is less room; empty for the text itself."""


class OperationFigures(NamedTuple):
    """One kind of operation."""

    name: str
    seen: bool
    """True if there were any recently."""
    each_second: str
    percentiles: tuple[str, ...]
    """Their latencies, by :data:`PERCENTILES`."""


class CompactionFigures(NamedTuple):
    """A compaction under way."""

    share: float
    """The fraction of its inputs that is read."""
    levels: str
    tables: str


class LevelFigures(NamedTuple):
    """One level that holds anything, or is read."""

    level: int
    tables: str
    size: str
    read_each_second: str
    share: float
    """Its bytes, as a share of those of the largest level."""


class Explanation(NamedTuple):
    """The reason for which nothing is shown of a store, and a way to change that."""

    heading: str
    text: str
    call: str
    """The call that opens a store so that it is shown; empty where that would not help."""


def operations(watch: Watch) -> list[OperationFigures]:
    """Each kind of operation: its rate, and its latencies."""
    last, recent = watch.last, watch.recent
    if last is None or recent is None:
        return []
    found: list[OperationFigures] = []
    for operation in OPERATIONS:
        latencies = recent.latencies[operation]
        seen = latencies.count > 0
        taken = (duration(latencies.percentile(one)) if seen else "-" for one in PERCENTILES)
        each_second = rate(last.rate(last.operations(operation)))
        found.append(OperationFigures(operation, seen, each_second, tuple(taken)))
    return found


def caches(watch: Watch) -> list[Figure]:
    """The sources of Gets' answers, and the hit rates of the caches."""
    recent, published = watch.recent, watch.published
    if recent is None or published is None:
        return []
    stats = recent.stats
    blocks = stats.block_cache_hits + stats.blocks_read
    used, room = size(stats.block_cache_bytes), size(published.block_cache_capacity)
    return [
        Figure("block cache", _share(stats.block_cache_hits, blocks), "good"),
        Figure("row cache", _share(stats.gets_from_rows, stats.gets), "good"),
        Figure("memtables", _share(stats.gets_from_memory, stats.gets)),
        Figure("gets found", _share(stats.gets_found, stats.gets)),
        Figure("cached", f"{used} of {room}", short=used),
    ]


def filters(watch: Watch) -> list[Figure]:
    """The filters asked, and the block reads that they saved."""
    recent = watch.recent
    if recent is None:
        return []
    stats = recent.stats
    measured = stats.measured_rate
    is_high = measured is not None and measured > _HIGH_RATE
    return [
        Figure("asked", _each_second(recent, stats.filters_asked)),
        Figure("blocks saved", _each_second(recent, stats.filter_negatives), "good"),
        Figure("expected rate", percent(stats.expected_rate)),
        Figure("measured rate", percent(measured), "bad" if is_high else ""),
        Figure("blocks read", _each_second(recent, stats.blocks_read)),
    ]


def writes(watch: Watch) -> list[Figure]:
    """Bytes that were written, by the user and by the engine."""
    recent, published = watch.recent, watch.published
    if recent is None or published is None:
        return []
    stats = recent.stats
    return [
        Figure("user", _bytes(recent, stats.user_bytes)),
        Figure("log", _bytes(recent, stats.log_bytes)),
        Figure("flushed", _bytes(recent, stats.flush_bytes)),
        Figure("compacted", _bytes(recent, stats.compaction_bytes_written)),
        Figure("amplification", f"{published.stats.write_amplification:.2f}"),
    ]


def background(watch: Watch) -> list[Figure]:
    """The state of flushes, and the waits of writers."""
    recent, published = watch.recent, watch.published
    if recent is None or published is None:
        return []
    memory, room = size(published.stats.memtable_bytes), size(published.write_buffer_size)
    flushing = ", one is flushed" if published.flushing else f" of {room}"
    return [
        Figure("memtables", f"{memory}{flushing}"),
        _stalls(recent, published),
        Figure("slowdowns", _each_second(recent, recent.stats.slowdowns)),
    ]


def _stalls(recent: Window, published: Published) -> Figure:
    if published.stalled_seconds > 0:
        return Figure("stalls", f"waiting for {published.stalled_seconds:.1f} s now", "bad")
    stats = recent.stats
    if stats.stalls == 0:
        return Figure("stalls", "none")
    share = min(1.0, stats.stall_seconds / recent.seconds)
    return Figure("stalls", f"{stats.stalls:,}, {share:.0%} of the time", "bad")


def compaction(published: Published) -> CompactionFigures | None:
    """The compaction under way, if there is one."""
    under_way = published.compaction
    if under_way is None:
        return None
    share = under_way.bytes_read / under_way.bytes if under_way.bytes else 0.0
    tables = f"{under_way.files} + {under_way.next_files} tables, {size(under_way.bytes)}"
    return CompactionFigures(share, f"{under_way.level} to {under_way.level + 1}", tables)


def no_compaction(published: Published) -> str:
    """The text for a store without a running compaction."""
    done = published.stats.compactions
    return f"none now, {done:,} before" if done else "none"


def levels(watch: Watch) -> list[LevelFigures]:
    """Tables and bytes of each level, and the blocks that were read there."""
    recent = watch.recent
    if recent is None:
        return []
    held = [level for level in recent.stats.levels if level.files or level.blocks_read]
    most = max((level.bytes for level in held), default=0)
    return [
        LevelFigures(
            level.level,
            f"{level.files:,}",
            size(level.bytes),
            rate(recent.rate(level.blocks_read)),
            level.bytes / most if most else 0.0,
        )
        for level in held
    ]


class ProcessFigures(NamedTuple):
    """One process of a shared store."""

    name: str
    role: str
    gets: str
    writes: str
    """Writes per second."""
    percentiles: tuple[str, ...]
    """The latencies of its writes, by :data:`PERCENTILES`."""
    without_owner: str
    """The longest time that it was without an owner, before it had this one."""


def processes(watch: Watch) -> list[ProcessFigures]:
    """The owner and the members of a shared store, those that do most first; [] of any other."""
    recent, published = watch.recent, watch.published
    if recent is None or published is None:
        return []
    since = process_rows(published.processes, published.stats.writes)
    now = process_rows(recent.processes, recent.stats.writes)
    rows = [(one, all_of_it) for one, all_of_it in zip(now, since, strict=True)]
    rows = (
        [rows[0], *sorted(rows[1:-1], key=lambda row: -row[0].gets - row[0].writes)] if rows else []
    )
    return [
        ProcessFigures(
            *(one.name, one.role),
            *(rate(recent.rate(one.gets)), rate(recent.rate(one.writes))),
            tuple(one.percentile(percent) for percent in PERCENTILES),
            all_of_it.longest_without_owner,
        )
        for one, all_of_it in rows
    ]


class LeaseFigures(NamedTuple):
    """A named lease, for example a lock of a cache."""

    name: str
    holders: str
    waiters: str
    """Process ids."""


def leases(watch: Watch) -> list[LeaseFigures]:
    """The leases with names of a shared store, those first that processes wait for."""
    published = watch.published
    return [
        LeaseFigures(printable(one.name), _pids(one.holders), _pids(one.waiters))
        for one in (() if published is None else published.leased_names)
    ]


def _pids(pids: tuple[int | None, ...]) -> str:
    """Process ids; how many waits each has if there are several."""
    counted = Counter("?" if pid is None else f"{pid}" for pid in pids)
    return " ".join(pid if n == 1 else f"{pid} x {n}" for pid, n in counted.items()) or "-"


def totals(watch: Watch) -> list[float]:
    """All operations a second, from publication to publication."""
    return [sum(rates) for rates in zip_longest(*watch.rates.values(), fillvalue=0.0)]


def explanation(watch: Watch) -> Explanation:
    """Explain why nothing is shown of a store, and how to change that."""
    owner = watch.owner
    if watch.error is not None:
        return Explanation("What is published cannot be read", printable(str(watch.error)), "")
    published = owner.published
    text = ""
    if owner.pid is None:
        heading = "No process has this store open."
        if published is not None:
            ago = max(0.0, time.time() - published.time)
            text = (
                f"Process {published.pid} published here, last {ago:,.0f} s ago, and was killed."
                " What it wrote is kept: the next open replays the log."
            )
    else:
        who = f"Process {owner.pid}" if owner.pid else "A process"
        heading = f"{who} has this store open, and publishes nothing."
    call = f"lsmkv.DB({printable(repr(watch.path))}, publish_stats=True)"
    return Explanation(heading, text, call)


def rate(number: float) -> str:
    """Format a rate per second; below ten with one decimal.

    >>> rate(0), rate(1234.5), rate(0.25)
    ('0', '1,234', '0.2')
    """
    if number == 0:
        return "0"
    return f"{number:,.0f}" if number >= 9.95 else f"{number:.1f}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def _each_second(window: Window, number: int) -> str:
    shown = rate(window.rate(number))
    return shown if shown in ("-", "0") else f"{shown}/s"


def _bytes(window: Window, number: int) -> str:
    return f"{size(window.rate(number))}/s" if number else "-"
