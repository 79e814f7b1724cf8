"""Counters of each process of a shared store: :class:`ProcessFigures`.

The owner publishes them (``published.py``).  They come from the words in which members count for it
(``process_words.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from lsmkv.engine.counters import LOOKUP_COUNTERS, READ_COUNTERS
from lsmkv.engine.db.observe.histogram import Histogram
from lsmkv.engine.db.observe.process_words import PLACES
from lsmkv.engine.former_paths import keep_paths
from lsmkv.engine.stats import Stats

COUNTED: Final[tuple[str, ...]] = (*LOOKUP_COUNTERS, *READ_COUNTERS)
"""The counters of a process by name, those of levels included."""


class ProcessFigures(NamedTuple):
    """Counters of one process of a shared store since its owner opened it.

    >>> ProcessFigures(17, "member", {"gets": 3}, Histogram(), Histogram()).counters["gets"]
    3
    """

    pid: int
    """Its process id; 0 where that is not known, and of several together."""
    role: str
    """``"owner"``, ``"member"``, or ``"gone"``: all members together that have closed the store, or
    have ended."""
    counters: Mapping[str, int]
    """Counters of its reads, by the names of fields of :class:`~lsmkv.Stats`; of all levels
    together."""
    writes: Histogram
    """Durations of a member's writes, including the wait for the owner."""
    without_owner: Histogram
    """Durations without an owner, one for each time that it lost one: from the call that noticed it
    until it had the next one, or became the owner."""


def figures_of(pid: int, role: str, words: Sequence[int], own: Stats | None) -> ProcessFigures:
    """The figures of a process, from its words; the counters are those of ``own``, for an owner."""
    if own is None:
        counters = {name: sum(_part(words, name)) for name in COUNTED}
    else:
        counters = {name: getattr(own, name) for name in LOOKUP_COUNTERS}
        for name in READ_COUNTERS:
            counters[name] = sum([getattr(level, name) for level in own.levels])
    return ProcessFigures(
        pid, role, counters, _histogram(words, "writes"), _histogram(words, "without_owner")
    )


def with_members(own: Stats, members: Sequence[Sequence[int]]) -> Stats:
    """The owner's statistics, and in them what the reads of its members did."""
    whole = {name: getattr(own, name) for name in LOOKUP_COUNTERS}
    levels = [{name: getattr(level, name) for name in READ_COUNTERS} for level in own.levels]
    for words in members:
        for name in LOOKUP_COUNTERS:
            whole[name] += _part(words, name)[0]
        for name in READ_COUNTERS:
            for counts, number in zip(levels, _part(words, name), strict=False):
                counts[name] += number
    return replace(
        own,
        levels=tuple(
            replace(
                level,
                filter_positives=counts["filters_asked"] - counts["filter_negatives"],
                **counts,
            )
            for level, counts in zip(own.levels, levels, strict=True)
        ),
        **whole,
    )


def all_of(processes: Sequence[ProcessFigures], histogram: str) -> Histogram:
    """A histogram of all of them together."""
    found = Histogram()
    for one in processes:
        found = found + getattr(one, histogram)
    return found


def _part(words: Sequence[int], name: str) -> Sequence[int]:
    begin, end = PLACES[name]
    return words[begin:end]


def _histogram(words: Sequence[int], name: str) -> Histogram:
    total, *counts = _part(words, name)
    return Histogram.from_buckets(
        [(bucket, count) for bucket, count in enumerate(counts) if count > 0], total
    )


def as_plain(one: ProcessFigures) -> dict[str, Any]:
    """The figures as data for JSON."""
    return {
        "pid": one.pid,
        "role": one.role,
        "counters": dict(one.counters),
        "writes": histogram_as_plain(one.writes),
        "without_owner": histogram_as_plain(one.without_owner),
    }


def histogram_as_plain(histogram: Histogram) -> dict[str, Any]:
    """A histogram as data for JSON."""
    return {"total": histogram.total, "buckets": histogram.buckets()}


keep_paths(ProcessFigures)
