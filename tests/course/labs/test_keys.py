"""Lab 1: planted mistakes are named."""

from __future__ import annotations

import pytest
from labs import Mistake, Planted, assert_caught, mistakes

from lsmkv.course.labs.keys import LAB
from lsmkv.engine.format.keys import InternalKeyComparator, pack, unpack
from lsmkv.engine.util.coding import decode_varint64, encode_varint
from lsmkv.engine.util.comparator import BytewiseComparator

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


MISTAKES: Planted = {
    ("decode_varint", "reading varints"): [
        ("the last byte's position", position_off_by_one, "The number is right"),
        ("the length", length_in_place_of_position, "not its length"),
        ("the top bit kept", top_bit_kept, "has seven bits"),
    ],
    ("unpack_key", "reading internal keys"): [
        ("a tag read big-endian", read_big_endian, "little-endian"),
        ("kind before sequence", swapped, "comes before the"),
        ("cut at a zero", up_to_the_first_zero, "The last eight bytes are the tag"),
        ("no tag", any_length, "since a tag has eight bytes"),
    ],
    ("encode_varint", "writing varints"): [
        ("lowest last", lowest_last, "the lowest first"),
        ("127 in two", too_long_at_128, "the last byte, so"),
        (
            "no top bit",
            lambda value: bytes(byte & 127 for byte in encode_varint(value)),
            "more follow: top bit 1",
        ),
        (
            "nothing for 0",
            lambda value: encode_varint(value) if value else b"",
            "Your bytes end there: 0 of 1",
        ),
    ],
    ("decode_varint", "invalid varints"): [
        ("IndexError", without_an_end, "raised IndexError"),
        ("0 at the end", zeros_at_the_end, "returned (0, 0)"),
        ("any length", ten_bytes_and_more, "at most ten bytes"),
    ],
    ("pack_key", "writing internal keys"): [
        ("big-endian tag", big_endian, "lowest byte, the kind"),
        ("no kind", without_a_kind, "lowest byte, the kind"),
        ("kind on top", kind_on_top, "sequence << 8"),
    ],
    ("compare_keys", "the order of internal keys"): [
        ("oldest first", oldest_first, "it is the newer one"),
        ("as bytes", whole_keys_as_bytes, "must be"),
        ("shorter first", shorter_first, "User keys are compared first"),
    ],
    ("encode_varint", "in the real engine"): [
        (
            "a varint too short in the store",
            lambda value: encode_varint(value & 0xFF),
            "a batch with your varints: lsmkv",
        ),
    ],
    ("compare_keys", "in the real engine"): [
        ("oldest first in a block", oldest_first, "the engine looked for"),
    ],
    ("pack_key", "in the real engine"): [
        ("a short sequence", sequence_of_32_bits, "the engine looked for"),
    ],
}


@pytest.mark.parametrize("mistake", mistakes(MISTAKES), ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake) -> None:
    assert_caught(LAB, mistake)


def test_each_check_catches_a_mistake() -> None:
    assert {check for _, check in MISTAKES} == {check.name for check in LAB.checks}
