from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsmkv.files import TableFile, parse_key
from lsmkv.tools.inspect.plain import (
    grouped,
    shown_bytes,
    shown_file,
    shown_key,
    whole_number,
)
from lsmkv.tools.text import shown, unescape


def test_hostile_bytes_are_escaped_and_cut() -> None:
    shown = shown_bytes(b"\x1b[31m\xff\n" + b"x" * 1_000_000)
    assert shown["text"].startswith("\\x1b[31m\\xff\\n")
    assert shown["cut"] is True
    assert shown["bytes"] == 1_000_007
    assert len(shown["text"]) < 500
    assert shown["text"].isprintable()


@example(b"\xe0\xa0\x80\0\0\0\0", 2)  # the limit divides a character
@given(st.binary(max_size=400) | st.text(max_size=150).map(str.encode), st.integers(1, 96))
def test_what_is_cut_is_shorter_with_its_length_than_as_a_whole(data: bytes, limit: int) -> None:
    cut_text = shown_bytes(data, limit)
    assert cut_text["bytes"] == len(data)
    if "cut" in cut_text:
        note = f"… ({len(data):,} bytes)"
        assert len(cut_text["text"] + note) < len(shown(data, False))
    else:
        assert unescape(cut_text["text"].encode()) == data


def test_spaces_at_the_ends_are_seen() -> None:
    assert shown_bytes(b" ")["text"] == "\\x20"
    assert shown_bytes(b"  two words ")["text"] == "\\x20\\x20two words\\x20"


def test_a_key_of_indexeddb_has_a_meaning_that_is_cut() -> None:
    name = "x" * 1000
    key = bytes.fromhex("00010101 01 e807") + name.encode("utf-16-be")
    meaning = shown_key(key, "idb_cmp1")["meaning"]
    assert meaning.startswith("database 1, object store 1: record 'xxx")
    assert len(meaning) < 120
    assert "meaning" not in shown_key(key, "leveldb.BytewiseComparator")


def test_a_table_shows_user_keys() -> None:
    file = TableFile(7, 100, parse_key(b"ant" + bytes(8)), parse_key(b"bee" + bytes(8)))
    shown = shown_file(file, "000007.ldb")
    assert (shown["smallest"]["text"], shown["largest"]["text"]) == ("ant", "bee")


@pytest.mark.parametrize("text", ["", "-1", "1e3", "٣", "9" * 19, " 1", None])
def test_what_is_no_number_is_refused(text: str | None) -> None:
    with pytest.raises(ValueError, match="step must be a number"):
        whole_number(text, "step")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ends at 49161: torn", "ends at 49,161: torn"),
        ("block: offset 1234567", "block: offset 1,234,567"),
        ("a segment has 2^11 = 2048 slots", "a segment has 2^11 = 2,048 slots"),
        ("value '1234 5678'... of 49161 bytes", "value '1234 5678'... of 49,161 bytes"),
        ("/tmp/12345/001234.ldb: 999 of 1,234", "/tmp/12345/001234.ldb: 999 of 1,234"),
        ("MANIFEST-123456 has 0.12345 of 4096.", "MANIFEST-123456 has 0.12345 of 4,096."),
    ],
)
def test_numbers_of_messages_have_the_pages_format(text: str, shown: str) -> None:
    assert grouped(text) == shown
