from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.tools.text import (
    clipped,
    count,
    escape,
    from_argument,
    from_hex,
    printable,
    shown,
    size,
    unescape,
)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"plain text", "plain text"),
        ("café ☃".encode(), "café ☃"),
        (b"a\tb\nc\rd\\e", r"a\tb\nc\rd\\e"),
        (b"\x00\x1b[31m\x7f", r"\x00\x1b[31m\x7f"),
        (b"\xff\xfe", r"\xff\xfe"),
        ("\u202e".encode(), r"\xe2\x80\xae"),  # turns the direction of what follows
        ("\u2028".encode(), r"\xe2\x80\xa8"),  # a line separator
        (b"\\xff", r"\\xff"),
    ],
)
def test_escape(data: bytes, text: str) -> None:
    assert escape(data) == text
    assert unescape(text.encode()) == data


@given(st.binary() | st.text().map(str.encode))
def test_round_trip(data: bytes) -> None:
    text = escape(data)
    assert text.isprintable()
    assert unescape(text.encode()) == data


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b" ", r"\x20"),
        (b"   ", r"\x20\x20\x20"),
        (b" a  b ", r"\x20a  b\x20"),
        (b"a\t ", r"a\t\x20"),
        (b"", ""),
        (b"a b", "a b"),
    ],
)
def test_spaces_at_the_ends_are_seen(data: bytes, text: str) -> None:
    assert shown(data, is_hex=False) == text
    assert unescape(text.encode()) == data
    assert clipped(data, 20) == (text or "(empty)")


@pytest.mark.parametrize("text", [b"\\", b"\\x", b"\\x1", b"\\xg0", b"\\q", b"a\\\\\\"])
def test_unescape_refuses_what_escape_does_not_write(text: bytes) -> None:
    with pytest.raises(ValueError, match="no such escape"):
        unescape(text)


def test_messages_are_made_printable() -> None:
    assert printable("no such key: \x1b[2J") == "no such key: \\x1b[2J"
    assert printable("\udcff") == "\\xff"


def test_arguments() -> None:
    assert from_argument("é", is_hex=False) == b"\xc3\xa9"
    assert from_argument("\udcff", is_hex=False) == b"\xff"  # how Python passes on a stray byte
    assert from_argument("00 fF", is_hex=True) == b"\x00\xff"
    for wrong in ("0", "zz", "é"):
        with pytest.raises(ValueError, match="not hexadecimal"):
            from_hex(wrong)


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "key", "0 keys"),
        (1, "byte", "1 byte"),
        (2, "byte", "2 bytes"),
        (1, "data block", "1 data block"),
        (241_643, "data block", "241,643 data blocks"),
        (1, "entry", "1 entry"),
        (2, "entry", "2 entries"),
        (2, "batch", "2 batches"),
    ],
)
def test_a_count_agrees_with_its_noun(number: int, noun: str, text: str) -> None:
    assert count(number, noun) == text


def test_sizes_have_binary_units() -> None:
    assert size(1024) == "1.0 KiB"
    assert size(1024 * 1024) == "1.0 MiB"
    assert size(5 * 1024**3) == "5.0 GiB"
    assert size(5000 * 1024**3) == "5,000.0 GiB"
