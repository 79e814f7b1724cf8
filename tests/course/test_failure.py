"""Messages of failed checks: the first differing byte, in its place."""

from __future__ import annotations

import pytest

from lsmkv.course.failure import (
    CheckFailure,
    difference,
    require,
    require_bytes,
    require_equal,
    shown,
)


def place(at: int) -> str:
    return f"place {at}"


@pytest.mark.parametrize("at", [0, 1, 7, 8, 9, 50, 98, 99])
def test_the_mark_stands_below_the_byte(at: int) -> None:
    expected = bytes(100)
    got = bytes(at) + b"\xee" + bytes(99 - at)
    lines = difference(got, expected, "the thing", place).split("\n")
    column = lines[3].index("^^")
    assert lines[2][column : column + 2] == "ee"
    assert lines[1][column : column + 2] == "00"
    assert lines[4] == f"Byte {at} is place {at}: expected 00, got ee."


def test_bytes_that_end_early_or_late() -> None:
    assert "Your bytes end there: 1 of 3." in difference(b"a", b"abc", "it", place)
    assert "The expected bytes end there: 1. Yours are 3." in difference(b"abc", b"a", "it", place)


def test_what_is_required() -> None:
    require(True, "")
    require_equal(1, 1, "f()")
    require_bytes(b"a", b"a", "it", place)
    with pytest.raises(CheckFailure, match=r"f\(\) must be 1, but your code returned True\.\nWhy"):
        require_equal(True, 1, "f()", "Why")
    with pytest.raises(CheckFailure, match="must be bytes, but your code returned 'a'"):
        require_bytes("a", b"a", "it", place)
    with pytest.raises(CheckFailure, match=r"byte 0 differs(?s:.*)\nWhy"):
        require_bytes(b"b", b"a", "it", place, "Why")
    with pytest.raises(CheckFailure, match="never"):
        require(0, "never")


def test_values_are_shown_short() -> None:
    assert shown(b"") == "no bytes"
    assert shown(b"\x01\x02") == "the bytes 01 02"
    assert shown(b"old") == "b'old'"
    assert shown(b"old\n") == "the bytes 6f 6c 64 0a"
    assert shown("é".encode()) == "the bytes c3 a9"
    assert len(shown(bytes(1000))) == 100
