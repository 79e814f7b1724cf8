"""``lsmkv import --from diskcache``, of databases that these tests write themselves."""

from __future__ import annotations

import json
import pickle
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from commands import lsm

import lsmkv

RAW, BINARY, TEXT, PICKLE = range(1, 5)
SPRUNG: list[int] = []


class Trap:
    """Unpickled, it runs."""

    def __reduce__(self) -> Any:
        return SPRUNG.append, (1,)


def make(place: Path, rows: list[tuple[Any, ...]], settings: dict[str, Any] | None = None) -> None:
    """A directory of diskcache 5.  Rows: key, raw, expire_time, tag, mode, filename, value."""
    place.mkdir(parents=True)
    connection = sqlite3.connect(place / "cache.db")
    connection.execute("CREATE TABLE Settings (key TEXT NOT NULL UNIQUE, value)")
    connection.execute(
        "CREATE TABLE Cache (rowid INTEGER PRIMARY KEY, key BLOB, raw INTEGER, store_time REAL,"
        " expire_time REAL, access_time REAL, access_count INTEGER DEFAULT 0, tag BLOB,"
        " size INTEGER DEFAULT 0, mode INTEGER DEFAULT 0, filename TEXT, value BLOB)"
    )
    connection.executemany("INSERT INTO Settings VALUES (?, ?)", (settings or {}).items())
    connection.executemany(
        "INSERT INTO Cache (key, raw, expire_time, tag, mode, filename, value)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        rows,
    )
    connection.commit()
    connection.close()


ROWS: list[tuple[Any, ...]] = [
    ("text", 1, None, "t", RAW, None, "six legs"),
    (b"bytes", 1, None, 5, RAW, None, b"wings"),
    (7, 1, None, None, RAW, None, 2.5),
    ("large", 1, None, None, BINARY, "ab/cd/large.val", None),
    ("large text", 1, None, None, TEXT, "text.val", None),
    ("dict", 1, None, None, PICKLE, None, pickle.dumps({"a": (1, 2)})),
    (pickle.dumps(("f", 1, None)), 0, None, None, RAW, None, 3),
    ("pickle file", 1, None, None, PICKLE, "pickle.val", None),
    ("set", 1, None, None, PICKLE, None, pickle.dumps({1})),
    ("old", 1, 1000.0, None, RAW, None, "expired"),
    ("gone", 1, None, None, BINARY, "gone.val", None),
    ("escape", 1, None, None, BINARY, "../outside", None),
    ("absolute", 1, None, None, BINARY, "/etc/hostname", None),
    ("odd", 1, None, None, 9, None, b"x"),
    ("broken", 1, None, None, TEXT, "broken.val", None),
]


def make_all(place: Path) -> None:
    make(
        place,
        [*ROWS, ("soon", 1, time.time() + 1000, None, RAW, None, 1)],
        {"size_limit": 1 << 25, "eviction_policy": "none", "cull_limit": 7, "disk": "x"},
    )
    (place.parent / "outside").write_bytes(b"secret")
    (place / "ab" / "cd").mkdir(parents=True)
    (place / "ab" / "cd" / "large.val").write_bytes(bytes(100_000))
    (place / "text.val").write_text("é" * 50_000, encoding="utf-8")
    (place / "broken.val").write_bytes(b"\xff")
    (place / "pickle.val").write_bytes(pickle.dumps([1, "x"]))


@pytest.mark.parametrize("trust", [False, True])
def test_a_cache_is_copied(tmp_path: Path, trust: bool) -> None:
    make_all(tmp_path / "old")
    more = ["--trust-pickle"] if trust else []
    target = tmp_path / "new"
    result = lsm(
        "import", target, tmp_path / "old", "--from", "diskcache", "--create", "--json", *more
    )
    assert result.status == 0, result.err
    figures = json.loads(result.out)
    left_out = {
        "expired": 1,
        "without its file": 1,
        "outside of the directory": 2,
        "of an unknown kind": 1,
        "damaged": 1,
    }
    left_out |= {"unsupported": 1} if trust else {"pickled": 4}
    assert figures == {"path": str(target), "entries": 9 if trust else 6, "left_out": left_out}
    assert ("--trust-pickle unpickles" in result.err) is not trust
    with lsmkv.Cache(target) as cache:
        expected: dict[Any, Any] = {
            "text": "six legs",
            b"bytes": b"wings",
            7: 2.5,
            "large": bytes(100_000),
            "large text": "é" * 50_000,
            "soon": 1,
        }
        if trust:
            expected |= {"dict": {"a": (1, 2)}, ("f", 1, None): 3, "pickle file": [1, "x"]}
        assert {key: cache[key] for key in cache} == expected
        assert cache.get(b"bytes", tag=True) == (b"wings", 5)
        assert 900 < cache.get("soon", expire_time=True)[1] - time.time() <= 1000
        assert (cache.size_limit, cache.eviction_policy, cache.cull_limit) == (1 << 25, "none", 7)
        assert list(cache)[:3] == ["text", b"bytes", 7]


def test_nothing_is_unpickled_unless_asked_for(tmp_path: Path) -> None:
    SPRUNG.clear()
    rows = [
        ("k", 1, None, None, PICKLE, None, pickle.dumps(Trap())),
        (pickle.dumps(Trap()), 0, None, None, RAW, None, 1),
    ]
    make(tmp_path / "old", rows)
    arguments = ("import", tmp_path / "new", tmp_path / "old", "--from", "diskcache", "--create")
    result = lsm(*arguments)
    assert result.status == 0, result.err
    assert "left out: 2 pickled" in result.err
    assert SPRUNG == []


def test_a_fanout_cache(tmp_path: Path) -> None:
    for number in range(3):
        row = (f"k{number}", 1, None, None, RAW, None, number)
        make(tmp_path / "old" / f"{number:03d}", [row], {"size_limit": 1 << 20})
    arguments = ("import", tmp_path / "new", tmp_path / "old", "--from", "diskcache", "--create")
    assert lsm(*arguments).status == 0
    with lsmkv.Cache(tmp_path / "new") as cache:
        assert [cache[f"k{number}"] for number in range(3)] == [0, 1, 2]
        assert cache.size_limit == 3 << 20


def test_what_is_no_cache(tmp_path: Path) -> None:
    target = tmp_path / "new"
    result = lsm("import", target, tmp_path, "--from", "diskcache", "--create")
    assert result.status != 0
    assert "no cache of diskcache here" in result.err
    assert not target.exists()
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "cache.db").write_bytes(b"not a database, but of some length" * 100)
    result = lsm("import", target, tmp_path / "bad", "--from", "diskcache", "--create")
    assert result.status != 0
    assert "not a database of diskcache" in result.err


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    result = lsm("import", tmp_path / "new", "-", "--trust-pickle")
    assert "--trust-pickle goes with --from diskcache" in result.err
    result = lsm(
        "import", tmp_path / "new", tmp_path, "--from", "diskcache", "--on-conflict", "skip"
    )
    assert "neither --format nor --on-conflict" in result.err
