"""``lsmkv bulk list``, ``prune`` and ``diff``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import fails, lsm, on_terminal

import lsmkv
import lsmkv.bulk

OLD = [(b"ant", b"1"), (b"bee", b"2"), (b"cat", b"3")]
NEW = [(b"ant", b"1"), (b"cat", b"4"), (b"dog", b"5")]


@pytest.fixture
def url(tmp_path: Path) -> Path:
    for pairs in (OLD, NEW):
        lsmkv.bulk.build(pairs, tmp_path / "set", shards=2)
    return tmp_path / "set"


def test_versions_are_listed_in_a_table(url: Path) -> None:
    heading, *rows = lsm("bulk", "list", url).out.splitlines()
    assert heading.split() == ["version", "published", "(UTC)", "shards", "pairs", "size", "build"]
    assert [row.split()[0] for row in rows] == ["1", "2"]
    plain = json.loads(lsm("bulk", "list", url, "--json").out)
    assert [one["version"] for one in plain] == [1, 2]
    assert plain[1]["pairs"] == 3
    assert plain[1]["build"] == rows[1].split()[-1]


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_table_fits_a_terminal(url: Path, columns: int) -> None:
    status, shown = on_terminal("bulk", "list", url, columns=columns)
    assert status == 0
    assert all(len(line) <= columns for line in shown.splitlines())
    assert len(shown.splitlines()) == 3


def test_a_set_without_versions_says_so(tmp_path: Path) -> None:
    done = lsm("bulk", "list", tmp_path)
    assert (done.status, done.out) == (0, "")
    assert done.err == f"lsmkv: {tmp_path}: no version was published here\n"
    assert json.loads(lsm("bulk", "list", tmp_path, "--json").out) == []
    fails(lsm("bulk", "list", tmp_path / "none"), "none: No such file or directory")


def test_prune_removes_old_versions(url: Path) -> None:
    young = lsm("bulk", "prune", url, "--keep", "1")
    assert young.out.splitlines() == [
        "removed no version, 0 objects, 0 B",
        "kept versions 1 to 2, 16 objects",
    ]
    would = lsm("bulk", "prune", url, "--keep", "1", "--grace", "0", "--dry-run")
    assert re.fullmatch(
        r"would remove version 1, 8 objects, [\d.]+ KiB\nkept version 2, 8 objects\n", would.out
    )
    assert len(lsmkv.bulk.versions(url)) == 2
    plain = json.loads(lsm("bulk", "prune", url, "--keep", "1", "--grace", "0", "--json").out)
    assert (plain["versions"], plain["kept_versions"], plain["dry_run"]) == ([1], [2], False)
    assert len(plain["objects"]) == 8
    assert len(lsmkv.bulk.versions(url)) == 1


def test_diff_prints_as_the_diff_of_stores(url: Path) -> None:
    done = lsm("bulk", "diff", url, "--stats")
    assert done.status == 1
    assert done.out == "- bee\t2\n! cat\t3\t4\n+ dog\t5\n"
    assert done.err == "lsmkv: only in A 1, only in B 1, changed 1\n"
    assert lsm("bulk", "diff", url, "2", "1").out == "+ bee\t2\n! cat\t4\t3\n- dog\t5\n"
    assert lsm("bulk", "diff", url, "1", "--keys-only", "--limit", "1").out == "- bee\n"


def test_diff_answers_by_its_status(url: Path) -> None:
    same = lsm("bulk", "diff", url, "2", "2")
    assert (same.status, same.out, same.err) == (0, "", "")
    quiet = lsm("bulk", "diff", url, "-q")
    assert (quiet.status, quiet.out, quiet.err) == (1, "", "")
    fails(lsm("bulk", "diff", url, "7"), "there is no version 7")


def test_diff_in_json_ends_in_a_summary(url: Path) -> None:
    lines = [json.loads(line) for line in lsm("bulk", "diff", url, "--json").out.splitlines()]
    assert lines[0] == {"change": "only_a", "key": "bee", "a": "2"}
    assert lines[1] == {"change": "changed", "key": "cat", "a": "3", "b": "4"}
    assert lines[-1] == {
        "summary": {
            "url": str(url),
            "a": 1,
            "b": 2,
            "only_a": 1,
            "only_b": 1,
            "changed": 1,
            "complete": True,
        }
    }
