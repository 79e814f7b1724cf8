"""``lsmkv import --from diskcache``, of databases that these tests write themselves."""

from __future__ import annotations

import contextlib
import json
import math
import os
import pickle
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
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
    ("slice", 1, None, None, PICKLE, None, pickle.dumps(slice(1))),
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
    assert "--trust-pickle requires --from diskcache" in result.err
    result = lsm(
        "import", tmp_path / "new", tmp_path, "--from", "diskcache", "--on-conflict", "skip"
    )
    assert "neither --format nor --on-conflict" in result.err


# Directories made to do harm


def replace_cache(place: Path, statement: str) -> None:
    """Make something else of the name ``Cache``."""
    make(place, [])
    with contextlib.closing(sqlite3.connect(place / "cache.db")) as connection:
        connection.execute("DROP TABLE Cache")
        connection.execute(statement)
        connection.commit()


COLUMNS = "1 AS raw, NULL AS expire_time, NULL AS tag, 1 AS mode, NULL AS filename"
RECURSIVE = (
    "CREATE VIEW Cache AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    f" SELECT i AS rowid, i AS key, {COLUMNS}, i AS value FROM n WHERE i < 0"
)
LARGE = (
    f"CREATE VIEW Cache AS SELECT 1 AS rowid, 'k' AS key, {COLUMNS}, zeroblob(900000000) AS value"
)
COMPUTED = (
    "CREATE TABLE Cache (rowid INTEGER PRIMARY KEY, key BLOB, raw INTEGER, expire_time REAL,"
    " tag BLOB, mode INTEGER, filename TEXT, value AS (zeroblob(900000000)))"
)
VIRTUAL = "CREATE VIRTUAL TABLE Cache USING fts5(key, raw, expire_time, tag, mode, filename, value)"


def large_row(place: Path) -> None:
    make(place, [("k", 1, None, None, RAW, None, bytes(65 << 20))])


def repeated_pages(place: Path) -> None:
    """A tree whose two upper pages refer to one page again and again: millions of rows."""
    make(place, [(number, 1, None, None, RAW, None, 1) for number in range(2000)])
    with contextlib.closing(sqlite3.connect(place / "cache.db")) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'Cache'"
        ((root,),) = connection.execute(query).fetchall()
    data = bytearray((place / "cache.db").read_bytes())
    size = int.from_bytes(data[16:18], "big")
    at = (root - 1) * size
    leaf = int.from_bytes(data[at + 8 : at + 12], "big")
    middle = next(page for page in range(leaf - 1, 1, -1) if page != root)
    for page, child in ((root, middle), (middle, leaf)):
        many = 400
        start = size - many * 5
        pointers = b"".join((start + 5 * cell).to_bytes(2, "big") for cell in range(many))
        head = b"\5\0\0" + many.to_bytes(2, "big") + start.to_bytes(2, "big") + b"\0"
        cells = (child.to_bytes(4, "big") + b"\1") * many
        content = head + child.to_bytes(4, "big") + pointers
        data[(page - 1) * size : page * size] = content.ljust(start, b"\0") + cells
    (place / "cache.db").write_bytes(data)


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a recursive view": (lambda place: replace_cache(place, RECURSIVE), "Cache is not a table"),
    "a large view": (lambda place: replace_cache(place, LARGE), "Cache is not a table"),
    "a computed column": (lambda place: replace_cache(place, COMPUTED), "Cache is not a table"),
    "a virtual table": (lambda place: replace_cache(place, VIRTUAL), "Cache is not a table"),
    "a large row": (large_row, "too big"),
    "repeated pages": (repeated_pages, "more steps than its size explains"),
    "a fifo": (lambda place: (place.mkdir(), os.mkfifo(place / "cache.db")), "not a regular file"),
    "a fifo beside it": (
        lambda place: (make(place, []), os.mkfifo(place / "cache.db-wal")),
        "cache.db-wal: not a regular file",
    ),
    "a link": (
        lambda place: (
            make(place.parent / "other", []),
            place.mkdir(),
            (place / "cache.db").symlink_to(place.parent / "other" / "cache.db"),
        ),
        "not a regular file",
    ),
    "a hard link": (
        lambda place: (
            make(place.parent / "other", []),
            place.mkdir(),
            os.link(place.parent / "other" / "cache.db", place / "cache.db"),
        ),
        "hard links",
    ),
}


@pytest.mark.skipif(sys.platform == "win32", reason="needs FIFOs, links and a limit of memory")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_database_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    """In a process with 1 GiB of memory; only a hang takes longer than its minute."""
    build, message = HOSTILE[name]
    build(tmp_path / "old")
    program = (
        "import resource, sys\nfrom lsmkv.tools import cli\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\nsys.exit(cli.main())"
    )
    arguments = ["import", tmp_path / "new", tmp_path / "old", "--from", "diskcache", "--create"]
    run = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path)),
    )
    assert run.returncode not in (0, 1), run.stderr
    assert message in run.stderr
    assert str(tmp_path / "old" / "cache.db") in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs FIFOs and links")
def test_hostile_files_of_values_are_left_out(tmp_path: Path) -> None:
    place = tmp_path / "old"
    rows = [
        (name, 1, None, None, BINARY, f"{name}/v.val" if name == "folder" else f"{name}.val", None)
        for name in ("fifo", "link", "hard", "folder", "device", "null\0", "", "good")
    ]
    make(place, rows)
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "v.val").write_bytes(b"secret")
    os.mkfifo(place / "fifo.val")
    (place / "link.val").symlink_to(secret / "v.val")
    os.link(secret / "v.val", place / "hard.val")
    (place / "folder").symlink_to(secret)
    (place / "device.val").symlink_to("/dev/zero")
    (place / "good.val").write_bytes(b"good")
    arguments = ("import", tmp_path / "new", place, "--from", "diskcache", "--create", "--json")
    result = lsm(*arguments)
    assert result.status == 0, result.err
    left_out = {"without an unshared regular file": 6, "without its file": 1}
    assert json.loads(result.out)["left_out"] == left_out
    with lsmkv.Cache(tmp_path / "new") as cache:
        assert {key: cache[key] for key in cache} == {"good": b"good"}


def test_a_text_that_is_too_large_for_memory_is_left_out(tmp_path: Path) -> None:
    make(tmp_path / "old", [("k", 1, None, None, TEXT, "v.val", None)])
    with open(tmp_path / "old" / "v.val", "wb") as file:
        file.truncate((256 << 20) + 1)
    result = lsm("import", tmp_path / "new", tmp_path / "old", "--from", "diskcache", "--create")
    assert "left out: 1 too large" in result.err


def test_any_value_in_any_column_is_copied_or_left_out(tmp_path: Path) -> None:
    odd = [None, "", "text", b"", b"\xff\x00", 0, -1, 2**63 - 1, 1e308, math.inf, -math.inf]
    sound = ("k", 1, None, None, RAW, None, "v")
    rows = [(*sound[:at], value, *sound[at + 1 :]) for at in range(len(sound)) for value in odd]
    make(tmp_path / "old", rows)
    arguments = ("import", tmp_path / "new", tmp_path / "old", "--from", "diskcache", "--create")
    for more in ([], ["--trust-pickle"]):
        result = lsm(*arguments, *more, "--json")
        assert result.status == 0, result.err
        figures = json.loads(result.out)
        assert figures["entries"] + sum(figures["left_out"].values()) == len(rows)
