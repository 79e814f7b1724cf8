"""lsmkv.tools.bench.report: the figures as text for a terminal."""

from __future__ import annotations

from typing import Any

from lsmkv.tools.bench import report
from lsmkv.tools.bench.engines import OWN


def summary(median: float, **more: Any) -> dict[str, Any]:
    return {"micros": {"median": median, "low": median, "high": median}, **more}


def results(*peers: str) -> dict[str, Any]:
    """A workload that every peer does in twice the time, and one that none of them can do."""
    ratio = {"median": 2.0, "low": 1.5, "high": 31.0}
    doing = {OWN: summary(1.0)} | {name: summary(2.0, ratio=ratio) for name in peers}
    skipping = {OWN: summary(1500.0)} | {name: {"skipped": "it has no order"} for name in peers}
    return {
        "engines": {name: {"version": "1"} for name in (OWN, *peers)} | {"gone": {"missing": True}},
        "workloads": {"fillseq": {"engines": doing}, "readseq": {"engines": skipping}},
    }


def test_a_peer_is_shown_by_its_time_and_its_ratio() -> None:
    head, rule, fill, read, _, note = report.table(results("peer"))
    assert head.split() == ["us/op", OWN, "peer", "ratio", "(spread)"]
    assert rule == "-" * len(head)
    assert fill.split() == ["fillseq", "1.000", "2.000", "2.00", "(1.50-31.0)"]
    assert read.split() == ["readseq", "1,500", "-", "-"]
    assert note.startswith("ratio: the peer's time over lsmkv's")


def test_peers_stand_two_abreast_in_80_columns() -> None:
    lines = report.table(results("one", "two", "three"))
    heads = [line.split() for line in lines if line.startswith("us/op")]
    assert [[word for word in head if word in ("one", "two", "three")] for head in heads] == [
        ["one", "two"],
        ["three"],
    ]
    assert max(map(len, lines)) <= 80
    assert not any("gone" in line for line in lines)


def test_a_study_that_was_skipped_says_why() -> None:
    by_engine = {OWN: {"bytes_written": 0, "gets": 9}, "dbm": {"skipped": "it is no LevelDB"}}
    assert report.study("absent", by_engine) == [
        "absent",
        "  lsmkv      0 bytes written by 9 Gets of absent keys",
        "  dbm        - (it is no LevelDB)",
    ]
