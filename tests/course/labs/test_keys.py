"""Lab 1: planted mistakes are named."""

from __future__ import annotations

import pytest
from labs import Mistake, assert_caught

from lsmkv.course.labs.keys import LAB
from lsmkv.format.keys import InternalKeyComparator, pack, unpack
from lsmkv.util.coding import decode_varint64, encode_varint
from lsmkv.util.comparator import BytewiseComparator

order = InternalKeyComparator(BytewiseComparator())


def lowest_last(value: int) -> bytes:
    groups = [byte & 127 for byte in encode_varint(value)][::-1]
    return bytes([group | 128 for group in groups[:-1]] + groups[-1:])


def too_long_at_128(value: int) -> bytes:
    return b"\xff\x00" if value == 127 else encode_varint(value)


def length_in_place_of_position(data: bytes, position: int) -> tuple[int, int]:
    value, end = decode_varint64(data, position)
    return value, end - position


def top_bit_kept(data: bytes, position: int) -> tuple[int, int]:
    value, end = decode_varint64(data, position)
    return value | (128 if end - position > 1 else 0), end


def without_an_end(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while data[position] > 127:
        value |= (data[position] & 127) << shift
        position, shift = position + 1, shift + 7
    return value | data[position] << shift, position + 1


def zeros_at_the_end(data: bytes, position: int) -> tuple[int, int]:
    try:
        return without_an_end(data, position)
    except IndexError:
        return 0, len(data)


def ten_bytes_and_more(data: bytes, position: int) -> tuple[int, int]:
    try:
        return without_an_end(data, position)
    except IndexError:
        raise ValueError from None


def big_endian(user_key: bytes, sequence: int, kind: int) -> bytes:
    return user_key + (sequence << 8 | kind).to_bytes(8, "big")


def without_a_kind(user_key: bytes, sequence: int, kind: int) -> bytes:
    return user_key + (sequence << 8).to_bytes(8, "little")


def kind_on_top(user_key: bytes, sequence: int, kind: int) -> bytes:
    return user_key + sequence.to_bytes(7, "little") + bytes([kind])


def up_to_the_first_zero(key: bytes) -> tuple[bytes, int, int]:
    user_key, sequence, kind = unpack(key)
    return user_key.split(b"\0")[0], sequence, kind


def read_big_endian(key: bytes) -> tuple[bytes, int, int]:
    return unpack(key[:-8] + key[-8:][::-1])


def swapped(key: bytes) -> tuple[bytes, int, int]:
    user_key, sequence, kind = unpack(key)
    return user_key, kind, sequence


def position_off_by_one(data: bytes, position: int) -> tuple[int, int]:
    value, end = decode_varint64(data, position)
    return value, end - 1


def any_length(key: bytes) -> tuple[bytes, int, int]:
    return unpack(key) if len(key) >= 8 else (key, 0, 0)


def oldest_first(a: bytes, b: bytes) -> int:
    return order.compare(b, a) if a[:-8] == b[:-8] else order.compare(a, b)


def whole_keys_as_bytes(a: bytes, b: bytes) -> int:
    return (a > b) - (a < b)


def shorter_first(a: bytes, b: bytes) -> int:
    return len(a) - len(b) or order.compare(a, b)


def sequence_of_32_bits(user_key: bytes, sequence: int, kind: int) -> bytes:
    return pack(user_key, sequence & 0xFFFF if sequence < 1 << 20 else sequence, kind)


MISTAKES = (
    Mistake(
        "the last byte's position",
        "decode_varint",
        position_off_by_one,
        "reading varints",
        "The number is right",
    ),
    Mistake(
        "a tag read big-endian",
        "unpack_key",
        read_big_endian,
        "reading internal keys",
        "little-endian",
    ),
    Mistake(
        "kind before sequence", "unpack_key", swapped, "reading internal keys", "comes before the"
    ),
    Mistake("lowest last", "encode_varint", lowest_last, "writing varints", "the lowest first"),
    Mistake("127 in two", "encode_varint", too_long_at_128, "writing varints", "the last byte, so"),
    Mistake(
        "no top bit",
        "encode_varint",
        lambda value: bytes(byte & 127 for byte in encode_varint(value)),
        "writing varints",
        "more follow: top bit 1",
    ),
    Mistake(
        "nothing for 0",
        "encode_varint",
        lambda value: encode_varint(value) if value else b"",
        "writing varints",
        "Your bytes end there: 0 of 1",
    ),
    Mistake(
        "the length",
        "decode_varint",
        length_in_place_of_position,
        "reading varints",
        "not its length",
    ),
    Mistake("the top bit kept", "decode_varint", top_bit_kept, "reading varints", "has seven bits"),
    Mistake("IndexError", "decode_varint", without_an_end, "invalid varints", "raised IndexError"),
    Mistake(
        "0 at the end", "decode_varint", zeros_at_the_end, "invalid varints", "returned (0, 0)"
    ),
    Mistake(
        "any length", "decode_varint", ten_bytes_and_more, "invalid varints", "at most ten bytes"
    ),
    Mistake(
        "big-endian tag", "pack_key", big_endian, "writing internal keys", "lowest byte, the kind"
    ),
    Mistake(
        "no kind", "pack_key", without_a_kind, "writing internal keys", "lowest byte, the kind"
    ),
    Mistake("kind on top", "pack_key", kind_on_top, "writing internal keys", "sequence << 8"),
    Mistake(
        "cut at a zero",
        "unpack_key",
        up_to_the_first_zero,
        "reading internal keys",
        "The last eight bytes are the tag",
    ),
    Mistake(
        "no tag", "unpack_key", any_length, "reading internal keys", "since a tag has eight bytes"
    ),
    Mistake(
        "oldest first",
        "compare_keys",
        oldest_first,
        "the order of internal keys",
        "it is the newer one",
    ),
    Mistake(
        "as bytes", "compare_keys", whole_keys_as_bytes, "the order of internal keys", "must be"
    ),
    Mistake(
        "shorter first",
        "compare_keys",
        shorter_first,
        "the order of internal keys",
        "User keys are compared first",
    ),
    Mistake(
        "a varint too short in the store",
        "encode_varint",
        lambda value: encode_varint(value & 0xFF),
        "in the real engine",
        "a batch with your varints: lsmkv",
    ),
    Mistake(
        "oldest first in a block",
        "compare_keys",
        oldest_first,
        "in the real engine",
        "the engine looked for",
    ),
    Mistake(
        "a short sequence",
        "pack_key",
        sequence_of_32_bits,
        "in the real engine",
        "the engine looked for",
    ),
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake) -> None:
    assert_caught(LAB, mistake)


def test_each_check_catches_a_mistake() -> None:
    assert {mistake.check for mistake in MISTAKES} == {check.name for check in LAB.checks}
