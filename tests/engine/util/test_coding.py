"""lsmkv.engine.util.coding: exact bytes, every boundary, and what is not well formed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsmkv.engine.util import coding
from lsmkv.errors import CorruptionError

VARINTS = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (16383, "ff7f"),
    (16384, "808001"),
    (2**32 - 1, "ffffffff0f"),
    (2**32, "8080808010"),
    (2**55, "8080808080808040"),
    (2**56 - 1, "ffffffffffffff7f"),
    (2**56, "808080808080808001"),
    (2**63, "80808080808080808001"),
    (2**64 - 1, "ffffffffffffffffff01"),
]

BOUNDARIES = sorted(
    {2 ** (7 * k) + d for k in range(1, 10) for d in (-1, 0, 1)}
    | {2**k + d for k in (8, 16, 31, 32, 55, 56, 63) for d in (-1, 0, 1)}
    | {0, 1, 2**64 - 2, 2**64 - 1}
)

READERS: list[Callable[[bytes, int], object]] = [
    coding.decode_fixed32,
    coding.decode_fixed64,
    coding.decode_varint32,
    coding.decode_varint64,
    coding.decode_string,
]


def test_fixed_integers_are_little_endian() -> None:
    assert coding.encode_fixed32(0x04030201).hex() == "01020304"
    assert coding.encode_fixed32(0xFFFFFFFF).hex() == "ffffffff"
    assert coding.decode_fixed64(bytes.fromhex("0102030405060708"), 0) == 0x0807060504030201
    assert coding.decode_fixed64(bytes.fromhex("ff" * 8), 0) == 2**64 - 1
    assert coding.decode_fixed64(bytes.fromhex("00" * 7 + "80"), 0) == 2**63


@pytest.mark.parametrize("value", BOUNDARIES)
def test_fixed_round_trip_at_a_position(value: int) -> None:
    wide = b"xx" + value.to_bytes(8, "little") + b"yy"
    assert coding.decode_fixed64(wide, 2) == value
    if value <= coding.MAX_UINT32:
        narrow = b"xx" + coding.encode_fixed32(value) + b"yy"
        assert coding.decode_fixed32(narrow, 2) == value


@pytest.mark.parametrize("value", [-1, 2**32])
def test_fixed32_refuses_what_does_not_fit(value: int) -> None:
    with pytest.raises(OverflowError):
        coding.encode_fixed32(value)


@pytest.mark.parametrize(("value", "encoded"), VARINTS)
def test_varint_bytes(value: int, encoded: str) -> None:
    assert coding.encode_varint(value).hex() == encoded


@pytest.mark.parametrize("value", BOUNDARIES)
def test_varint_round_trip_at_a_position(value: int) -> None:
    encoded = coding.encode_varint(value)
    assert len(encoded) == max(1, -(-value.bit_length() // 7))
    data = b"\xff\xff" + encoded + b"\xff"
    after = 2 + len(encoded)
    assert coding.decode_varint64(data, 2) == (value, after)
    if value <= coding.MAX_UINT32:
        assert coding.decode_varint32(data, 2) == (value, after)
    else:
        with pytest.raises(CorruptionError):
            coding.decode_varint32(data, 2)


def test_a_varint_cannot_be_negative() -> None:
    with pytest.raises(ValueError, match="-1"):
        coding.encode_varint(-1)


@pytest.mark.parametrize(
    "encoded",
    [
        "ffffffff1f",  # 33 bits in five bytes
        "8080808010",  # 2**32
        "808080808000",  # six bytes
        "ffffffffff",  # no end within five
    ],
)
def test_varint32_out_of_range(encoded: str) -> None:
    with pytest.raises(CorruptionError):
        coding.decode_varint32(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize(
    "encoded",
    [
        "ffffffffffffffffff02",  # 2**65 and some in ten bytes
        "80808080808080808002",  # 2**64
        "8080808080808080808000",  # eleven bytes
        "ffffffffffffffffffff",  # no end within ten
    ],
)
def test_varint64_out_of_range(encoded: str) -> None:
    with pytest.raises(CorruptionError):
        coding.decode_varint64(bytes.fromhex(encoded), 0)


def test_a_varint_may_be_longer_than_it_needs_to_be() -> None:
    """As in LevelDB: zeros above the top bit are harmless while the length limit is kept."""
    assert coding.decode_varint32(bytes.fromhex("8080808000"), 0) == (0, 5)
    assert coding.decode_varint64(bytes.fromhex("81808080808080808000"), 0) == (1, 10)


def test_string_bytes() -> None:
    assert coding.encode_string(b"") == b"\x00"
    assert coding.encode_string(b"foo") == b"\x03foo"
    assert coding.encode_string(b"x" * 200) == b"\xc8\x01" + b"x" * 200


def test_strings_one_after_the_other() -> None:
    data = b"".join(map(coding.encode_string, [b"", b"foo", b"\x00", b"y" * 1000]))
    at = 0
    read = []
    while at < len(data):
        value, at = coding.decode_string(data, at)
        read.append(value)
    assert read == [b"", b"foo", b"\x00", b"y" * 1000]
    assert at == len(data)


def test_a_string_that_promises_gigabytes() -> None:
    with pytest.raises(CorruptionError, match="past the end"):
        coding.decode_string(coding.encode_varint(2**32 - 1) + b"abc", 0)


@pytest.mark.parametrize(
    ("reader", "whole"),
    [
        (coding.decode_fixed32, b"\x01\x02\x03\x04"),
        (coding.decode_fixed64, b"\x01\x02\x03\x04\x05\x06\x07\x08"),
        (coding.decode_varint32, b"\xff\xff\xff\xff\x0f"),
        (coding.decode_varint64, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        (coding.decode_string, b"\x80\x01" + b"s" * 128),
    ],
)
def test_cut_at_every_byte(reader: Callable[[bytes, int], object], whole: bytes) -> None:
    for prefix in (b"", b"pre"):
        reader(prefix + whole, len(prefix))
        for cut in range(len(whole)):
            with pytest.raises(CorruptionError) as caught:
                reader(prefix + whole[:cut], len(prefix))
            assert caught.value.offset == len(prefix)
            assert caught.value.path is None


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("position", [-1, -4, 9, 10, 2**40])
def test_a_position_outside_the_buffer(
    reader: Callable[[bytes, int], object], position: int
) -> None:
    with pytest.raises(CorruptionError):
        reader(b"\x01" * 9, position)


@settings(deadline=None)
@given(st.integers(0, 2**64 - 1))
def test_any_integer_survives(value: int) -> None:
    encoded = coding.encode_varint(value)
    assert coding.decode_varint64(encoded, 0) == (value, len(encoded))
    assert coding.decode_fixed64(value.to_bytes(8, "little"), 0) == value
    low = value & 0xFFFFFFFF
    assert coding.decode_varint32(coding.encode_varint(low), 0)[0] == low
    assert coding.decode_fixed32(coding.encode_fixed32(low), 0) == low


@settings(deadline=None)
@given(st.binary(max_size=300), st.binary(max_size=20))
def test_any_string_survives(value: bytes, tail: bytes) -> None:
    encoded = coding.encode_string(value)
    assert coding.decode_string(encoded + tail, 0) == (value, len(encoded))


@settings(deadline=None)
@given(st.binary(max_size=24), st.integers(-2, 26))
def test_any_bytes_are_read_or_refused(data: bytes, position: int) -> None:
    for reader in READERS:
        try:
            reader(data, position)
        except CorruptionError:
            pass
