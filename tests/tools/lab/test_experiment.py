from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_stores import build, key

import lsmkv
from lsmkv.filter_lab import parse_settings
from lsmkv.tools.lab.experiment import choose_gets, experiment, open_store


class Log:
    """The stages that were begun, and how far each came."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, str]] = []
        self.reports: list[tuple[int, int]] = []

    @contextlib.contextmanager
    def begin(self, doing: str, unit: str) -> Iterator[Log]:
        self.stages.append((doing, unit))
        yield self

    def advance(self, done: int) -> None:
        self.reports.append((done, 0))

    def report(self, done: int, total: int, phase: str) -> None:
        self.reports.append((done, total))


def test_stages_are_reported(tmp_path: Path) -> None:
    log = Log()
    with open_store(str(build(tmp_path / "db", "block:3"))) as db:
        chosen = choose_gets(db, None, 100, 1, log.begin)
        outcome = experiment(db, "a path", chosen, parse_settings("none table:9"), 1, log.begin)
    doing = ["Choosing keys", "Replaying Gets", "Scanning absent prefixes"]
    assert log.stages == list(zip(doing, ("key", "byte", "prefix"), strict=True))
    assert log.reports[-1] == (outcome.heat.scans, outcome.heat.scans)
    assert (outcome.path, outcome.seed, outcome.replay.gets) == ("a path", 1, 100)
    assert [one.setting for one in outcome.replay.results] == ["as stored", "none", "table:9"]


def test_the_gets_of_a_trace_are_chosen(tmp_path: Path) -> None:
    store, trace = build(tmp_path / "db", "none"), tmp_path / "trace"
    with lsmkv.DB(store, read_only=True, trace=trace) as db:
        db.get(key(1000))
        next(db.iterator())
    with open_store(str(store)) as db:
        chosen = choose_gets(db, str(trace), 100, 1, Log().begin)
        assert (chosen.keys, chosen.absent) == ([key(1000)], [])
        trace.unlink()
        with pytest.raises(lsmkv.Error):
            choose_gets(db, str(trace), 100, 1, Log().begin)
