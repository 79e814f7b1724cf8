from __future__ import annotations

from pathlib import Path

import pytest
from stores import put_numbered

import lsmkv
from lsmkv.tools.decoded import cut, decoder_of, meaning, program_of

DATA = Path(__file__).parent.parent / "data"


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("indexeddb-chromium", "Chromium's IndexedDB"),
        ("localstorage-chromium", "Chromium's Local Storage"),
        ("snappy", None),
    ],
)
def test_the_program_of_a_store(name: str, program: str | None) -> None:
    with lsmkv.DB(DATA / name, read_only=True) as db:
        found = program_of(db)
    assert (None if found is None else found.name) == program


def test_a_store_in_another_order_is_nobodys() -> None:
    order = lsmkv.ReverseBytewiseComparator()
    with lsmkv.DB(":memory:", create_if_missing=True, comparator=order) as db:
        db.put(b"~local_player", b"")
        assert program_of(db) is None


def test_landmarks_are_found_behind_many_other_keys() -> None:
    with lsmkv.DB(":memory:", create_if_missing=True) as db:
        put_numbered(db, b"ant %d", range(1000), b"")
        assert program_of(db) is None
        db.put(b"~local_player", b"")
        found = program_of(db)
        assert found is not None
        assert found.name == "a world of Minecraft's Bedrock edition"


def test_a_meaning_is_one_printable_line() -> None:
    assert meaning(None) is None
    assert meaning("a\n\u202e") == "a\\n\\xe2\\x80\\xae"
    long = meaning("x" * 5000)
    assert long is not None
    assert len(long) == 301


def test_names_that_cannot_be_read_are_numbers() -> None:
    with lsmkv.DB(DATA / "indexeddb-chromium", read_only=True) as db:
        program = program_of(db)
        assert program is not None
        decoder = decoder_of(db, program)
    assert decoder is not None
    assert decoder.key(bytes([0, 1, 1, 1])) == "database 1 / object store 1: lower bound"


def test_long_values_are_cut_for_pages_with_the_parity_of_their_length() -> None:
    assert [len(cut(bytes(size))) for size in (5, 4096, 4097, 5000, 5001)] == [
        *(5, 4096, 4097, 4096, 4097)
    ]
