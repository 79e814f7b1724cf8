from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lsmkv
from lsmkv.files.exchange import read_json_lines
from lsmkv.tools.inspect import entries as module
from lsmkv.tools.inspect.api import Api
from lsmkv.tools.inspect.entries import Wanted, entries, lines
from lsmkv.tools.inspect.source import Source

DATA = Path(__file__).parents[2] / "data"
CONTENT = {b"key %03d" % number: b"value %d" % number for number in range(500)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a table, and newer entries in its log."""
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"key 007", b"older")
        for key, value in CONTENT.items():
            db.put(key, value)
        db.flush()
        db.put(b"log", b"still there")
        db.delete(b"key 000")
    return tmp_path / "db"


@pytest.fixture
def source(path: Path) -> Iterator[Source]:
    with contextlib.closing(Source(str(path))) as source:
        yield source


def all_of(source: Source, wanted: Wanted) -> list[Any]:
    found: list[Any] = []
    place: str | None = ""
    while place is not None:
        answer = entries(source, wanted, place)
        assert len(answer["entries"]) <= module.WINDOW
        found += answer["entries"]
        place = answer["next"]
    return found


def texts(found: list[Any]) -> list[str]:
    return [one["key"]["text"] for one in found]


def test_windows_go_together(source: Source) -> None:
    found = all_of(source, Wanted())
    assert texts(found) == [f"key {number:03d}" for number in range(1, 500)] + ["log"]
    assert found[-1]["value"] == {"text": "still there", "bytes": 11}


def test_prefix_and_text(source: Source) -> None:
    assert texts(all_of(source, Wanted(b"key 49"))) == [f"key {n}" for n in range(490, 500)]
    assert texts(all_of(source, Wanted(text=b"STILL"))) == ["log"]
    assert texts(all_of(source, Wanted(b"key 1", b"9"))) == [
        f"key 1{n:02d}" for n in range(100) if "9" in f"{n}"
    ]
    assert all_of(source, Wanted(b"nothing")) == []


def test_a_question_reads_a_limited_number(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_LOOKED_AT", 100)
    answer = entries(source, Wanted(text=b"still"))
    assert (answer["entries"], answer["looked_at"]) == ([], 100)
    assert texts(all_of(source, Wanted(text=b"still"))) == ["log"]


def test_a_text_is_found_in_utf16(tmp_path: Path) -> None:
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"a", b"\x00" + "Größe".encode("utf-16-le"))
    with contextlib.closing(Source(str(tmp_path / "db"))) as source:
        assert texts(all_of(source, Wanted(text="röß".encode()))) == ["a"]


def test_file_by_file_every_version_is_there(source: Source) -> None:
    found = all_of(source, Wanted(by_file=True))
    sevens = [one for one in found if one["key"]["text"] == "key 007"]
    assert sevens[0]["value"]["text"] == "value 7"
    gone = next(one for one in found if one["value"] is None)
    assert gone["key"]["text"] == "key 000"
    assert gone["file"].endswith(".log")


def test_lines_are_those_of_an_export(source: Source) -> None:
    written = b""
    place: str | None = ""
    while place is not None:
        answer = lines(source, Wanted(), place)
        written += answer["lines"].encode()
        place = answer["next"]
    expected = {key: value for key, value in CONTENT.items() if key != b"key 000"}
    assert dict(read_json_lines(written.splitlines())) == expected | {b"log": b"still there"}


def test_lines_file_by_file_have_deletions(source: Source) -> None:
    answer = lines(source, Wanted(b"key 000", by_file=True))
    found = [json.loads(line) for line in answer["lines"].splitlines()]
    assert sorted(len(one) for one in found) == [3, 4]
    gone = min(found, key=len)
    assert set(gone) == {"file", "sequence", "key"}
    assert gone["key"] == "key 000"


def test_a_store_that_cannot_be_opened_is_read_file_by_file(path: Path) -> None:
    (path / "CURRENT").unlink()
    table = next(path.glob("*.ldb"))
    content = bytearray(table.read_bytes())
    content[100] ^= 0xFF
    table.write_bytes(content)
    with contextlib.closing(Source(str(path))) as source:
        found = all_of(source, Wanted())
        assert any("damage" in one.get("fault", "") for one in found)
        assert any(one.get("key", {}).get("text") == "log" for one in found)
        written = lines(source, Wanted())["lines"].splitlines()
        assert any("fault" in json.loads(line) for line in written)


def test_a_known_format_is_named_and_decoded(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    with lsmkv.DB(path, create_if_missing=True) as db:
        db.put(b"VERSION", b"1")
        db.put(b"META:https://example.org", b"")
        db.put(b"_https://example.org\x00\x01name", b"\x01caf\xe9")
    with contextlib.closing(Api(path)) as api:
        answer = api.answer("entries", {})
    assert answer["format"]["name"] == "Chromium's Local Storage"
    last = answer["entries"][-1]
    assert last["key"]["meaning"] == "https://example.org: name"
    assert last["value"]["meaning"] == "café"


def test_indexed_db_is_shown_with_names_and_values() -> None:
    with contextlib.closing(Api(str(DATA / "indexeddb-chromium"))) as api:
        shown = api.answer("entries", {})["entries"]
    meanings = {one["key"]["meaning"]: one["value"].get("meaning") for one in shown}
    assert meanings["library / books: key path"] == "id"
    assert meanings["library / books: record 1"] == (
        '{author: "Austen", tags: [0, "tag 0"], title: "Book 0"}'
    )


def test_a_store_that_cannot_be_opened_is_decoded_file_by_file(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with lsmkv.DB(path, create_if_missing=True) as db:
        db.put(b"_https://example.org\x00\x01name", b"\x01caf\xe9")
        db.flush()
    (path / "CURRENT").write_bytes(b"")
    with contextlib.closing(Api(str(path))) as api:
        answer = api.answer("entries", {})
    assert answer["by_file"]
    assert answer["format"]["name"] == "Chromium's Local Storage"
    (only,) = answer["entries"]
    assert (only["key"]["meaning"], only["value"]["meaning"]) == (
        "https://example.org: name",
        "café",
    )


def test_wrong_escapes_are_refused(path: Path) -> None:
    with contextlib.closing(Api(str(path))) as api:
        with pytest.raises(ValueError, match="escape"):
            api.answer("entries", {"prefix": "\\q"})
        with pytest.raises(ValueError, match="hexadecimal"):
            api.answer("entries", {"place": "zz"})
