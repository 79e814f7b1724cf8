"""Blobs of pairs: exact bytes, both ways, and every kind of damage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.engine.util.checksum import crc32c
from lsmkv.errors import CorruptionError
from lsmkv.shards.building.blob import pack_columns, pack_pairs, unpack_pairs

Pairs = list[tuple[bytes, bytes]]
PAIRS = [(b"b", b"1"), (b"", b""), (b"b", b"22"), (b"a", b"\x00" * 300)]


def sealed(body: bytes) -> bytes:
    return crc32c(body).to_bytes(4, "little") + body


def fixed32(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4, "little") for number in numbers)


def test_blob_bytes() -> None:
    body = fixed32(2, 3, 0, 1, 2) + b"key" + b"" + b"v" + b"vv"
    assert pack_pairs([(b"key", b"v"), (b"", b"vv")]) == sealed(body)
    assert pack_pairs([]) == sealed(fixed32(0))


@given(st.lists(st.tuples(st.binary(), st.binary())))
def test_round_trip_keeps_order_and_duplicates(pairs: Pairs) -> None:
    keys, values = unpack_pairs(pack_pairs(pairs))
    assert list(zip(keys, values, strict=True)) == pairs
    assert pack_columns(keys, values) == pack_pairs(pairs)


def test_every_cut_is_detected() -> None:
    blob = pack_pairs(PAIRS)
    for end in range(len(blob)):
        with pytest.raises(CorruptionError):
            unpack_pairs(blob[:end])
    with pytest.raises(CorruptionError):
        unpack_pairs(blob + b"\x00")


def test_every_flipped_bit_is_detected() -> None:
    blob = pack_pairs(PAIRS)
    for at in range(len(blob)):
        for bit in (1, 128):
            damaged = bytearray(blob)
            damaged[at] ^= bit
            with pytest.raises(CorruptionError):
                unpack_pairs(bytes(damaged))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "truncated"),
        (fixed32(1), "too short for the lengths of 1 pair"),
        (fixed32(0xFFFFFFFF, 1, 1) + b"kv", "too short for the lengths of 4,294,967,295 pairs"),
        (fixed32(1, 1, 2) + b"kv", "differs from the one"),
        (fixed32(1, 1, 1) + b"kvv", "differs from the one"),
        (fixed32(1, 0xFFFFFFFF, 1) + b"kv", "differs from the one"),
    ],
)
def test_lengths_that_do_not_fit_are_refused(body: bytes, reason: str) -> None:
    with pytest.raises(CorruptionError, match=reason):
        unpack_pairs(sealed(body))


@given(st.binary(max_size=40))
def test_any_bytes_are_a_blob_or_damage(body: bytes) -> None:
    try:
        keys, values = unpack_pairs(sealed(body))
    except CorruptionError:
        return
    assert pack_columns(keys, values) == sealed(body)


@pytest.mark.parametrize("wrong", ["text", bytearray(b"b"), memoryview(b"b"), 1 << 70, None])
def test_what_is_no_bytes_object_is_refused(wrong: object) -> None:
    for pair in ((wrong, b""), (b"", wrong)):
        with pytest.raises(TypeError, match=f"must be bytes, not {type(wrong).__name__}"):
            pack_pairs([(b"k", b"v"), pair])  # type: ignore[list-item]


def test_columns_of_two_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="2 keys, 1 values"):
        pack_columns([b"a", b"b"], [b""])
