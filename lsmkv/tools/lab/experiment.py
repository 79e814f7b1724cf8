"""The lab's experiment on one store: the Gets chosen, replayed, and prefixes scanned for.

``lsmkv filter-lab`` runs it in the foreground, and the page of ``lsmkv inspect`` in a thread of its
server: the same store, settings, Gets and seed give the same outcome in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

import lsmkv
from lsmkv import Env
from lsmkv.tools.filter_lab import FilterSetting, absent_prefixes, replay, scan_absent
from lsmkv.tools.lab.gets import Gets, given_gets, sampled_gets
from lsmkv.tools.lab.heat import read_heat
from lsmkv.tools.lab.outcome import Outcome
from lsmkv.tools.lab.verdict import judge
from lsmkv.tools.text import printable

_MOST_SCANS = 1000


class Stage(Protocol):
    """A stage of the work, which receives its progress."""

    def advance(self, done: int, /) -> None:
        """Report additional progress."""

    def report(self, done: int, total: int, phase: str, /) -> None:
        """Report the total progress."""


Stages = Callable[[str, str], AbstractContextManager[Stage]]
"""Begins a stage, by what is done and the noun of what is counted."""


def open_store(path: str, env: Env | None = None) -> lsmkv.DB:
    """Open a store as the lab reads it: for reading only, without a block cache."""
    return lsmkv.DB(path, read_only=True, lru_cache_size=0, env=env)


def choose_gets(db: lsmkv.DB, trace: str | None, gets: int, seed: int, begin: Stages) -> Gets:
    """The Gets of a trace, or else a sample of the store's keys with as many near misses."""
    if trace is not None:
        return given_gets(_traced_gets(trace), gets, seed, f"the trace {printable(trace)}")
    with begin("Choosing keys", "key") as stage:
        return sampled_gets(db, gets, seed, stage.advance)


def experiment(
    db: lsmkv.DB,
    path: str,
    chosen: Gets,
    settings: list[FilterSetting],
    seed: int,
    begin: Stages,
) -> Outcome:
    """Replay the Gets, and scan for absent prefixes: the near misses that no key begins with."""
    with begin("Replaying Gets", "byte") as stage:
        done = replay(db, chosen.keys, settings, stage.report)
    prefixes = absent_prefixes(db, chosen.absent, _MOST_SCANS)
    with begin("Scanning absent prefixes", "prefix") as stage:
        by_scans = scan_absent(db, prefixes, stage.report)
    heat = read_heat(done.stored, len(chosen.keys), len(prefixes), by_scans)
    return Outcome(path, chosen.source, seed, done, heat, judge(done))


def _traced_gets(trace: str) -> Iterator[bytes]:
    """The keys of a trace's Gets, in their order."""
    return (record.key for record in lsmkv.read_trace(trace) if record.operation == "get")
