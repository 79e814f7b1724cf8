from __future__ import annotations

import math

import pytest

from lsmkv.errors import CorruptionError
from lsmkv.files.programs.reading import Reader, bare, in_hex, literal
from lsmkv.indexeddb import Date


def test_a_reader_takes_fields_off_the_front() -> None:
    reader = Reader(b"\x00\x01\xff\x81\x01" + b"\x00" * 6 + b"\xf0\x3f", 1)
    assert (reader.byte(), reader.peek(), reader.integer(1), reader.varint()) == (1, 255, -1, 129)
    assert (reader.double(), reader.at_end, reader.peek()) == (1.0, True, None)
    for size in (1, -1):
        with pytest.raises(CorruptionError):
            reader.take(size)
    with pytest.raises(CorruptionError):
        reader.varint()
    assert reader.take(0) == b""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-0.5, "-0.5"),
        (1e300, "1e+300"),
        (math.inf, "Infinity"),
        (math.nan, "NaN"),
        ('a"b', r'"a\"b"'),
        ("ключ", '"ключ"'),
        (Date(math.nan), "Date(invalid)"),
        (Date(math.inf), "Date(inf)"),
        ([], "[]"),
        ([[b"a"], True], "[[<1 byte: 61>], true]"),
        (b"", "<0 bytes>"),
    ],
)
def test_literals(value: object, text: str) -> None:
    assert literal(value) == text


def test_a_name_that_needs_quotes_keeps_them() -> None:
    for name in ('"a b"', '"1a"', '""', '"', "", "12", "-1"):
        assert bare(name) == name
    assert bare('"a1"') == "a1"


def test_long_bytes_are_cut() -> None:
    assert in_hex(b"a" * 17) == f"17 bytes: {'61 ' * 16}…"
    assert in_hex(b"a" * 16) == f"16 bytes: {'61 ' * 16}".rstrip()
