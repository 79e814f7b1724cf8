"""lsmkv trace: what it prints of a trace, whatever the keys are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import fails, lsm

from lsmkv import DB

HOSTILE = [
    b"<b>&amp;</b>",
    b"\x1b[31mred\n",
    b"\xff\xfe",
    b"",
    "каф\u00e9\u202e".encode(),
    b"x" * 1_000_000,
]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    with DB(path, create_if_missing=True, trace=path / "TRACE") as db:
        db.put(b"k", b"value")
        db.get(b"k")
        db.get(b"none")
        with db.write_batch() as batch:
            batch.put(b"a", b"1")
            batch.delete(b"b")
        list(db)
        list(db.iterator(prefix=b"k"))
    return path


def columns(line: str) -> list[str]:
    began, _, unit, rest = line.split(maxsplit=3)
    assert float(began) >= 0
    assert unit in ("ns", "us", "ms", "s")
    return rest.split(maxsplit=1)


def test_operations_line_by_line(store: Path) -> None:
    done = lsm("trace", store)
    assert (done.status, done.err) == (0, "")
    heading, *lines = done.out.splitlines()
    assert heading.split() == ["second", "took", "operation", "size", "key"]
    assert [" ".join(" ".join(columns(line)).split()) for line in lines] == [
        "put 5 B k",
        "get 5 B k",
        "get - none",
        "write 3 B a (2 operations)",
        "seek 1 B (from an end of the store)",
        "seek 5 B k",
    ]
    assert lsm("trace", store / "TRACE").out == done.out
    assert lsm("trace", store, "--limit", "2").out.splitlines() == [heading, *lines[:2]]


def test_json_lines(store: Path) -> None:
    done = lsm("trace", store, "--json")
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [(one["operation"], one["key"], one["size"]) for one in found][:3] == [
        ("put", "k", 5),
        ("get", "k", 5),
        ("get", "none", None),
    ]
    assert found[3]["operations"] == 2
    assert all(one["duration_ns"] > 0 for one in found)
    hexed = json.loads(lsm("trace", store, "--json", "--hex", "--limit", "1").out)
    assert hexed["key_hex"] == "6b"


def test_the_summary(store: Path) -> None:
    done = lsm("trace", store, "--summary")
    assert done.status == 0
    assert done.out.startswith("6 operations in")
    rows = {line.split()[0]: line.split() for line in done.out.splitlines() if line}
    assert rows["get"][1:4] == ["2", "33.3%", "50.0%"]
    assert rows["seek"][1] == "2"
    assert rows["3"][2] == "k"
    plain = json.loads(lsm("trace", store, "--summary", "--json", "--keys", "1").out)
    assert plain["records"] == 6
    assert plain["operations"]["get"]["found"] == 1
    assert plain["keys"] == [{"key": "k", "times": 3}]


def test_hostile_keys_are_escaped_and_cut(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    with DB(":memory:", trace=path) as db:
        for key in HOSTILE * 2:
            db.get(key)
    for arguments in ([], ["--hex"], ["--summary"], ["--summary", "--hex"]):
        done = lsm("trace", path, *arguments)
        assert done.status == 0
        lines = done.out.splitlines()
        assert all(line.isprintable() for line in lines)
        assert max(map(len, lines)) <= 120
        assert any("(976.6 KiB)" in line for line in lines)
    found = [json.loads(line) for line in lsm("trace", path, "--json").out.splitlines()]
    assert found[2]["key_base64"] == "//4="
    assert found[5]["key"] == "x" * 1_000_000


def test_what_is_no_trace(tmp_path: Path, store: Path) -> None:
    fails(lsm("trace", tmp_path), "no trace here", "trace=")
    fails(lsm("trace", tmp_path / "none"), "no trace here")
    fails(lsm("trace", store / "CURRENT"), "not a trace")


def test_damage_is_reported_after_what_is_before_it(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    with DB(":memory:", trace=path) as db:
        for n in range(2000):
            db.get(b"%04d" % n)
    whole = path.read_bytes()
    at = whole.index(b"1200")
    path.write_bytes(whole[:at] + b"\0" + whole[at + 1 :])
    done = lsm("trace", path)
    assert done.status == 2
    assert "checksum" in done.err
    assert 512 < done.out.count("\n") < 1201


def test_a_trace_that_is_being_written(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    with DB(":memory:", trace=path) as db:
        for n in range(600):
            db.get(b"%d" % n)
        assert lsm("trace", path).out.count("\n") == 513
