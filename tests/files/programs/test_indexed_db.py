from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import lsmkv
from lsmkv.engine.util.coding import encode_varint
from lsmkv.files.programs.indexed_db import IndexedDB

DATA = Path(__file__).parents[2] / "data"


def nothing(_start: bytes, _most: int) -> list[tuple[bytes, bytes]]:
    return []


def meta(kind: int, *fields: int) -> bytes:
    return bytes([0, 1, 0, 0, kind, *fields])


@pytest.fixture(scope="module")
def shown() -> dict[str, str | None]:
    """All keys that Chromium wrote, and their values."""
    with lsmkv.DB(DATA / "indexeddb-chromium", read_only=True) as db:

        def find(start: bytes, most: int) -> list[tuple[bytes, bytes]]:
            with db.iterator(start=start) as found:
                return [entry for _, entry in zip(range(most), found, strict=False)]

        decoder = IndexedDB(find)
        return {str(decoder.key(key)): decoder.value(key, value) for key, value in db}


def test_names_and_values_that_chromium_wrote(shown: dict[str, str | None]) -> None:
    expected = {
        'all databases: id of database "http_localhost_40777@1" "library"': "1",
        "all databases: data version": "Blink 21, V8 16",
        "library: highest object store id": "3",
        "library / books: name": "books",
        "library / books: key path": "id",
        "library / books: auto increment": "1",
        "library / anything: key path": "none",
        "library / books / by tag: name": "by tag",
        "library / books / by tag: multi-entry": "1",
        "library / books: record 3": '{author: "Чехов", tags: [2, "tag 2"], title: "Book 2"}',
        "library / books: exists 3": "4",
        'library / books / by author: entry "Austen" of record 71': "version 72",
        "library / anything: record [[1], 2]": '"value 20"',
        "library / anything: record <2 bytes: 00 00>": '"value 25"',
        "library / anything: record Date('1970-01-01T00:00:00+00:00')": '"value 1"',
        'люди 👩 / people: record "20@example.org"': '{mail: "20@example.org", number: -22}',
    }
    assert {name: shown.get(name, "missing") for name in expected} == expected


def test_every_record_that_the_page_saw_has_a_text(shown: dict[str, str | None]) -> None:
    seen = json.loads((DATA / "chromium-seen.json").read_text(encoding="utf-8"))
    stores = seen["databases"]
    for database, object_stores in stores.items():
        for store, content in object_stores.items():
            start = f"{database} / {store}: record "
            found = [value for name, value in shown.items() if name.startswith(start)]
            assert len(found) == len(content["keys"])
            assert None not in found
            assert not any("…" in str(value) for value in found)


def test_ids_stand_for_names_that_are_lost() -> None:
    decoder = IndexedDB(nothing)
    key = bytes.fromhex("00010203 03 000000000000f03f")
    assert decoder.key(key) == "database 1 / object store 2: blobs 1"
    assert decoder.key(bytes.fromhex("0001021f 01010061 00 03000000000000f03f")) == (
        'database 1 / object store 2 / index 31: entry "a" of record 1'
    )
    assert decoder.key(meta(50, 2, 4)) == "database 1 / object store 2: last version"
    assert decoder.key(meta(100, 2, 31, 0)) == "database 1 / object store 2 / index 31: name"
    assert decoder.key(b"") is decoder.key(b"\x00\x01\x01\x09a") is None


def test_the_name_of_another_object_store_is_not_taken() -> None:
    decoder = IndexedDB(lambda _start, _most: [(meta(50, 3, 0), b"\x00b")])
    assert decoder.key(meta(50, 2, 4)) == "database 1 / object store 2: last version"


def test_names_are_looked_up_once_for_the_records_of_an_object_store() -> None:
    starts = []

    def find(start: bytes, _most: int) -> list[tuple[bytes, bytes]]:
        starts.append(start)
        return []

    decoder = IndexedDB(find)
    for number in range(100):
        decoder.key(bytes([0, 1, 1, 1, 3]) + bytes(7) + bytes([number]))
    assert len(starts) == 2


def test_names_of_databases_with_long_ids() -> None:
    number = 70_000
    entry = b"\x00\x00\x00\x00\xc9\x00\x01\x00a", number.to_bytes(3, "little")
    store = b"\x40" + number.to_bytes(3, "little") + b"\x00\x00\x32" + encode_varint(300) + b"\x00"
    entries = [entry, (store, b"\x00b")]

    def find(start: bytes, most: int) -> list[tuple[bytes, bytes]]:
        return [one for one in entries if one[0] >= start][:most]

    key = b"\x44" + number.to_bytes(3, "little") + (300).to_bytes(2, "little") + b"\x01\x05"
    assert IndexedDB(find).key(key) == "a / b: record"


def test_values_by_their_keys() -> None:
    decoder = IndexedDB(nothing)
    record = bytes.fromhex("0001010103000000000000f03f")
    assert decoder.value(record, b"\x05\xff\x0fT") == "true"
    assert decoder.value(record, b"\x05T") is decoder.value(record, b"\xff") is None
    key_path = meta(50, 1, 1)
    assert decoder.value(key_path, b"\x00\x00\x02\x02\x01\x00a\x01\x00b") == "a, b"
    assert decoder.value(key_path, b"\x00\x00\x02\xff\xff\xff\x7f") is None
    assert decoder.value(key_path, b"id") is None
    assert decoder.value(meta(50, 1, 0), b"\x00a\x00") is None
    assert decoder.value(meta(0), bytes(9)) is decoder.value(b"", b"a") is None


@example(b"2", b"", [])
@given(st.binary(max_size=60), st.binary(), st.lists(st.tuples(st.binary(), st.binary())))
def test_any_bytes_have_texts_or_none(
    key: bytes, value: bytes, entries: list[tuple[bytes, bytes]]
) -> None:
    decoder = IndexedDB(lambda _start, most: entries[:most])
    for one in (key, b"\x00\x01\x01\x01" + key, b"\x00\x01\x00\x00" + key, bytes(4) + key):
        for text in (decoder.key(one), decoder.value(one, value)):
            assert text is None or isinstance(text, str)
