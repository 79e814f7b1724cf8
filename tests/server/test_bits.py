"""Strings as bits, beside the same computed from a text of zeros and ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lsmkv.server.bits import combined, count_bits, find_bit, masked, read_bits, write_bits


def text(value: bytes | bytearray) -> str:
    return "".join(f"{byte:08b}" for byte in value)


@given(st.binary(max_size=40), st.sampled_from([0, 1]))
def test_counting_and_finding(value: bytes, bit: int) -> None:
    assert count_bits(value) == text(value).count("1")
    assert find_bit(value, bit) == text(value).find(str(bit))


def test_large_values_are_counted_and_combined_in_parts() -> None:
    value = bytes(200_000) + b"\xf0"
    assert count_bits(value) == 4
    assert combined("OR", [value, b"\x01"]) == b"\x01" + value[1:]
    assert combined("NOT", [value]) == b"\xff" * 200_000 + b"\x0f"
    assert combined("AND", [value, b"\xff" * 100]) == bytes(200_001)


@given(st.binary(min_size=1, max_size=10), st.data())
def test_masking(value: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(value) * 8 - 1))
    end = data.draw(st.integers(start, len(value) * 8 - 1))
    for rest in "01":
        expected = rest * (start & 7) + text(value)[start : end + 1]
        expected += rest * (-len(expected) % 8)
        assert text(masked(value, start, end, int(rest))) == expected


@given(st.lists(st.binary(max_size=9), min_size=1, max_size=4))
def test_combining(values: list[bytes]) -> None:
    size = max(map(len, values))
    columns = list(zip(*(text(value.ljust(size, b"\0")) for value in values), strict=True))
    assert text(combined("AND", values)) == "".join(map(min, columns))
    assert text(combined("OR", values)) == "".join(map(max, columns))
    odd = (str(column.count("1") % 2) for column in columns)
    assert text(combined("XOR", values)) == "".join(odd)


@given(st.binary(min_size=1, max_size=12), st.data())
def test_numbers_at_any_bit(value: bytes, data: st.DataObject) -> None:
    bits = data.draw(st.integers(1, min(64, len(value) * 8)))
    offset = data.draw(st.integers(0, len(value) * 8 - bits))
    assert read_bits(value, offset, bits) == int(text(value)[offset : offset + bits], 2)
    number = data.draw(st.integers(-(2**63), 2**64 - 1))
    changed = bytearray(value)
    write_bits(changed, offset, bits, number)
    written = text(changed)
    assert read_bits(changed, offset, bits) == number % 2**bits
    assert written[:offset] == text(value)[:offset]
    assert written[offset + bits :] == text(value)[offset + bits :]


def test_reading_after_the_end() -> None:
    assert read_bits(b"\xff", 4, 8) == 0xF0
    assert read_bits(b"\xff", 800, 63) == 0
    assert read_bits(b"", 0, 1) == 0
