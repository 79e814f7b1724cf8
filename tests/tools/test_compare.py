"""``lsmkv diff`` as a user starts it, and the files that it compares byte by byte."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from commands import lsm
from differing import KEYS, TINY, fill, scattered

import lsmkv
from lsmkv.tools import compare as compare_module
from lsmkv.tools.diff import Plan, State, make_plan


def test_the_command_starts_again_if_a_writer_removes_tables_that_are_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scattered(tmp_path / "a")
    with lsmkv.DB(tmp_path / "a", **TINY) as writer:
        writer.checkpoint(tmp_path / "b")
        fill(writer, KEYS, b"old")
        writer.compact_range()
        rounds: list[bytes] = [b"one", b"two"]

        def open_few(path: str) -> lsmkv.DB:
            return lsmkv.DB(path, read_only=True, max_open_files=14)  # nothing is held

        def plan_and_write(a: State, b: State, same: Any) -> Plan:
            plan = make_plan(a, b, same)
            if rounds:
                fill(writer, KEYS, rounds.pop(0))
                writer.compact_range()
            return plan

        monkeypatch.setattr(compare_module, "open_to_read", open_few)
        monkeypatch.setattr(compare_module, "make_plan", plan_and_write)
        status, out, err = lsm("diff", tmp_path / "a", tmp_path / "b")
        assert (status, err, rounds) == (1, "", [])
        lines = out.splitlines()
        assert [line.split("\t")[0] for line in lines] == [f"! {key.decode()}" for key in KEYS]
        assert {line.split("\t")[1] for line in lines} == {"two" * 10}

        monkeypatch.setattr(compare_module, "_ATTEMPTS", 3)
        rounds += [b"%d" % number for number in range(3)]  # a writer that is always faster
        status, out, err = lsm("diff", tmp_path / "a", tmp_path / "b")
        assert (status, out) == (2, "")
        assert "was removed by the store's writer" in err


def test_different_comparators_are_refused(tmp_path: Path) -> None:
    lsmkv.DB(tmp_path / "a", create_if_missing=True).close()
    lsmkv.DB(
        tmp_path / "b", create_if_missing=True, comparator=lsmkv.ReverseBytewiseComparator()
    ).close()
    status, out, err = lsm("diff", tmp_path / "a", tmp_path / "b")
    assert (status, out) == (2, "")
    assert "leveldb.BytewiseComparator" in err
    assert "leveldb.ReverseBytewiseComparator" in err


def test_equal_content_is_status_0(two: tuple[Path, Path]) -> None:
    a, _ = two
    for options in ([], ["-q"], ["--limit", "1"]):
        assert lsm("diff", a, a, *options) == (0, "", "")


def test_stats_of_a_checkpoint(tmp_path: Path) -> None:
    scattered(tmp_path / "a")
    with lsmkv.DB(tmp_path / "a") as db:
        db.checkpoint(tmp_path / "b")
    status, out, err = lsm("diff", tmp_path / "a", tmp_path / "b", "--stats", "--json")
    assert status == 0
    summary = json.loads(out)["summary"]
    assert summary["blocks_read"] == summary["bytes_read"] == summary["bytes_compared"] == 0
    assert summary["bytes_skipped"] == summary["bytes"] > 0
    assert summary["identity_check_reads"] > 0 < summary["identity_check_bytes_read"]
    assert "only in A 0, only in B 0, changed 0" in err
    checks = summary["identity_check_reads"]
    assert f", 0 data blocks read (0 B), {checks} identity check reads (" in err
    # Copies have to be looked at, but need not be decoded.
    shutil.copytree(tmp_path / "b", tmp_path / "c")
    _, out, _ = lsm("diff", tmp_path / "a", tmp_path / "c", "--json")
    summary = json.loads(out)["summary"]
    assert summary["blocks_read"] == 0
    assert summary["bytes_compared"] == summary["bytes_identical"] == summary["bytes"] // 2


def test_neither_store_is_written_to(two: tuple[Path, Path]) -> None:
    before = [(name, os.stat(path / name).st_mtime_ns) for path in two for name in os.listdir(path)]
    lsm("diff", *two)
    after = [(name, os.stat(path / name).st_mtime_ns) for path in two for name in os.listdir(path)]
    assert before == after


def test_a_missing_store_is_an_error(two: tuple[Path, Path], tmp_path: Path) -> None:
    for arguments in ((two[0], tmp_path / "none"), (tmp_path / "none", two[0])):
        status, out, err = lsm("diff", *arguments)
        assert (status, out) == (2, "")
        assert "none: no database here" in err
    assert not (tmp_path / "none").exists()
