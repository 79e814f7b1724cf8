"""The pieces of Redis' RDB format."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from lsmkv.server.rdb import (
    RdbError,
    Reader,
    encoded_length,
    encoded_listpack,
    encoded_string,
    intset,
    listpack,
    unpacked,
    ziplist,
)

ELEMENTS: list[int | bytes] = [
    *(0, 127, 128, -1, 2**63 - 1, -(2**63)),
    *(b"", b"a", b"b" * 63, b"c" * 64, b"d" * 125, b"e" * 20_000),
]
LISTPACK = bytes.fromhex(
    "39000000 0900"  # 57 bytes, 9 elements
    "01 01"
    "df ff 02"  # -1, in 13 bits
    "f1 ffff 03"
    "f2 ff ff ff 04"
    "f3 ffffffff 05"
    "f4 ffffffffffffffff 09"
    "83 616263 04"
    "e003 616263 05"
    "f0 03000000 616263 08"
    "ff"
)
ZIPLIST = bytes.fromhex(
    "43000000 00000000 0a00"
    "00 03 616263"
    "05 4003 616263"
    "06 80 00000003 616263"
    "fe 09000000 fe ff"
    "07 c0 ffff"
    "04 f0 ffffff"
    "05 d0 ffffffff"
    "06 e0 ffffffffffffffff"
    "0a f1"
    "02 fd"
    "ff"
)
INTSET = bytes.fromhex("02000000 03000000 ffff 0100 ff7f")


@pytest.mark.parametrize("number", [0, 63, 64, 16383, 16384, 2**32 - 1, 2**32, 2**64 - 1])
def test_a_length_is_read_as_written(number: int) -> None:
    reader = Reader(encoded_length(number))
    assert reader.length() == number
    assert reader.left == 0


def test_strings_of_redis() -> None:
    for data, text in (
        (b"\xc0\xf6", b"-10"),
        (b"\xc1\x39\x30", b"12345"),
        (b"\xc2\x00\x00\x00\x80", b"-2147483648"),
        (b"\xc3\x09\x40\x64\x01\x61\x61\xe0\x57\x00\x01\x61\x61", b"a" * 100),
        (encoded_string(b"x" * 100), b"x" * 100),
    ):
        reader = Reader(data)
        assert reader.string() == text
        assert reader.left == 0


def test_a_listpack_is_read_as_written() -> None:
    expected = [b"%d" % one if isinstance(one, int) else one for one in ELEMENTS]
    assert listpack(encoded_listpack(ELEMENTS)) == expected


def test_all_widths_of_elements() -> None:
    assert listpack(LISTPACK) == [b"1", *[b"-1"] * 5, *[b"abc"] * 3]
    assert ziplist(ZIPLIST) == [*[b"abc"] * 3, *[b"-1"] * 5, b"0", b"12"]
    assert intset(INTSET) == [b"-1", b"1", b"32767"]


def _unpacked(data: bytes) -> bytes:
    return unpacked(data, 100)


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (listpack, encoded_listpack(ELEMENTS[:10])),
        (listpack, LISTPACK),
        (ziplist, ZIPLIST),
        (intset, INTSET),
        (_unpacked, b"\x01\x61\x61\xe0\x57\x00\x01\x61\x61"),
    ],
)
def test_any_bytes_are_read_or_refused(read: Callable[[bytes], object], data: bytes) -> None:
    for cut in range(len(data)):
        with pytest.raises(RdbError):
            read(data[:cut])
    choices = random.Random(0)
    for _ in range(2000):
        changed = bytearray(data)
        for _ in range(choices.randrange(1, 4)):
            changed[choices.randrange(len(changed))] = choices.randrange(256)
        try:
            read(bytes(changed))
        except RdbError:
            pass
