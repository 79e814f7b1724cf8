from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from stores import put_numbered

import lsmkv
from lsmkv.indexeddb import IndexedDBComparator
from lsmkv.tools.inspect.api import Api
from lsmkv.tools.inspect.memtables import WINDOW, memtable
from lsmkv.tools.inspect.source import Source


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store whose entries are all in its log."""
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"cow", b"milk")
        db.put(b"ant", b"six legs")
        db.put(b"cow", b"more milk")
        db.delete(b"bee")
        db.put(b" ", b"")
    return tmp_path / "db"


@pytest.fixture
def source(path: Path) -> Iterator[Source]:
    with contextlib.closing(Source(str(path))) as source:
        yield source


def test_the_newest_entry_of_each_key_is_listed(source: Source) -> None:
    answer = memtable(source)
    assert [(one["key"]["text"], one["sequence"], one["type"]) for one in answer["entries"]] == [
        ("\\x20", 5, "value"),
        ("ant", 2, "value"),
        ("bee", 4, "deletion"),
        ("cow", 3, "value"),
    ]
    assert answer["entries"][3]["value"] == {"text": "more milk", "bytes": 9}
    assert answer["entries"][2]["value"] is None
    assert (answer["first"], answer["total"], answer["more"]) == (0, 4, False)


def test_it_says_where_the_data_is(source: Source, path: Path) -> None:
    log = next(path.glob("*.log")).name
    where = f"4 entries, all in {log}; a flush makes the first table at 4.0 MiB"
    answer = memtable(source)
    assert answer["where"] == f"{where}, the default size of a memtable."
    assert answer["logs"] == [log]
    options = {"publish_stats": True, "write_buffer_size": 1 << 20}
    with lsmkv.DB(path, **options) as db:  # type: ignore[arg-type]
        db.put(b"dog", b"woof")
        log = sorted(path.glob("*.log"))[-1].name
        answer = memtable(source)
        assert answer["total"] == 1 or answer["where"].startswith("5 entries")
        db.flush()
        answer = memtable(source)
        assert (answer["total"], answer["where"]) == (0, "")
        db.put(b"dog", b"bark")
        answer = memtable(source)
        assert answer["where"] == f"1 entry in {answer['logs'][-1]}, but not in a table yet."
        assert (answer["full_at"], answer["full_at_known"]) == (1 << 20, True)


def test_an_empty_store_says_so(tmp_path: Path) -> None:
    lsmkv.DB(tmp_path / "db", create_if_missing=True).close()
    with contextlib.closing(Source(str(tmp_path / "db"))) as source:
        answer = memtable(source)
    assert answer["where"] == "The store is empty: its log has no entry, and there is no table."
    assert answer["entries"] == []


def test_a_list_goes_on_from_an_entry_or_a_key(tmp_path: Path) -> None:
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db:
        put_numbered(db, b"%05d", range(2 * WINDOW + 10), b"v")
    with contextlib.closing(Api(str(tmp_path / "db"))) as api:
        first = api.answer("memtable", {})
        assert (len(first["entries"]), first["more"]) == (WINDOW, True)
        last = api.answer("memtable", {"from": str(2 * WINDOW)})
        assert [one["key"]["text"] for one in last["entries"]] == [
            f"{number:05}" for number in range(2 * WINDOW, 2 * WINDOW + 10)
        ]
        assert not last["more"]
        found = api.answer("memtable", {"key": "00123x"})
        assert (found["first"], found["entries"][0]["key"]["text"]) == (124, "00124")
        assert api.answer("memtable", {"key": "z"})["entries"] == []


def test_keys_of_indexeddb_are_decoded(tmp_path: Path) -> None:
    key = bytes.fromhex("00010101 03 000000000000f03f")
    path = str(tmp_path / "db")
    with lsmkv.DB(path, create_if_missing=True, comparator=IndexedDBComparator()) as db:
        db.put(key, b"in a table")
        db.flush()
        db.put(key, b"in the log")
    meaning = "database 1, object store 1: record 1.0"
    with contextlib.closing(Api(path)) as api:
        assert api.answer("memtable", {})["entries"][0]["key"]["meaning"] == meaning
        table = api.answer("levels", {})["levels"][2]["tables"][0]
        assert table["smallest"]["meaning"] == table["largest"]["meaning"] == meaning
        got = api.answer("get", {"hex": key.hex()})
        assert got["key"]["meaning"] == got["tables"][0]["smallest"]["meaning"] == meaning
        query = {"name": table["name"], "offset": "0"}
        assert api.answer("block", query)["entries"][0]["key"]["meaning"] == meaning
        assert api.answer("table", query)["parts"][0]["up_to"]["meaning"] == meaning
        api.history().wait()
        edits = api.answer("history/window", {"from": "0"})["edits"]
        assert edits[-1]["added"][0]["smallest"]["meaning"] == meaning


def test_the_name_of_a_log_is_that_of_the_unflushed_one(path: Path) -> None:
    with lsmkv.DB(path) as db:
        db.flush()
        db.put(b"x", b"y")
        logs = [one.name for one in path.glob("*.log")]
        with contextlib.closing(Source(str(path))) as source:
            assert memtable(source)["logs"] == [max(logs)]


def test_the_history_says_what_is_in_no_table(path: Path) -> None:
    with contextlib.closing(Api(str(path))) as api:
        answer = api.answer("history", {})
    assert answer["memtable"]["where"].startswith("4 entries, all in ")
