"""Strings as bits: bit 0 is the highest one of the first byte."""

from __future__ import annotations

_CHUNK = 1 << 16
"""Bytes that are counted or combined at once, as one number."""


def count_bits(value: bytes) -> int:
    r"""The number of bits that are 1.  O(bytes).

    >>> count_bits(b"\xff\x01")
    9
    """
    total = 0
    for at in range(0, len(value), _CHUNK):
        total += int.from_bytes(value[at : at + _CHUNK], "big").bit_count()
    return total


def masked(value: bytes, start: int, end: int, rest: int) -> bytes:
    r"""The bytes that have the bits from ``start`` to ``end``, both included; what else these bytes
    have becomes ``rest``, 0 or 1.

    >>> masked(b"\xff\xff\xff", 4, 11, 0)
    b'\x0f\xf0'
    """
    part = bytearray(value[start >> 3 : (end >> 3) + 1])
    before, behind = 0xFF & ~(0xFF >> (start & 7)), 0x7F >> (end & 7)
    if rest:
        part[0] |= before
        part[-1] |= behind
    else:
        part[0] &= ~before & 0xFF
        part[-1] &= ~behind & 0xFF
    return bytes(part)


def find_bit(value: bytes, bit: int) -> int:
    r"""The position of the first bit with this value; -1 if there is none.  O(bytes).

    >>> find_bit(b"\x00\x10", 1), find_bit(b"\xff", 0)
    (11, -1)
    """
    rest = value.lstrip(b"\0" if bit else b"\xff")
    if not rest:
        return -1
    first = rest[0] if bit else rest[0] ^ 0xFF
    return (len(value) - len(rest)) * 8 + 8 - first.bit_length()


def combined(operation: str, values: list[bytes]) -> bytes:
    r"""``AND``, ``OR`` or ``XOR`` of values, or ``NOT`` of one.  O(bytes of all).

    All are as long as the longest: what they lack is 0.

    >>> combined("OR", [b"\x01", b"\x80\x02"])
    b'\x81\x02'
    """
    longest = max(map(len, values))
    parts: list[bytes] = []
    for at in range(0, longest, _CHUNK):
        size = min(_CHUNK, longest - at)
        numbers = [
            int.from_bytes(value[at : at + size].ljust(size, b"\0"), "big")
            if at < len(value)
            else 0
            for value in values
        ]
        total = numbers[0]
        if operation == "NOT":
            total ^= (1 << 8 * size) - 1
        for number in numbers[1:]:
            if operation == "AND":
                total &= number
            elif operation == "OR":
                total |= number
            else:
                total ^= number
        parts.append(total.to_bytes(size, "big"))
    return b"".join(parts)


def read_bits(value: bytes | bytearray, offset: int, bits: int) -> int:
    r"""The number without sign that these bits are; bits after the end are 0.

    >>> read_bits(b"\x12\x34", 4, 8)
    35
    """
    first, last = offset >> 3, (offset + bits - 1) >> 3
    size = last - first + 1
    part = bytes(value[first : last + 1]) if first < len(value) else b""
    number = int.from_bytes(part.ljust(size, b"\0"), "big")
    return number >> (8 * size - (offset & 7) - bits) & ((1 << bits) - 1)


def write_bits(value: bytearray, offset: int, bits: int, number: int) -> None:
    """Set bits that are there to a number, of which only the lowest ``bits`` bits count."""
    first, last = offset >> 3, (offset + bits - 1) >> 3
    size = last - first + 1
    shift = 8 * size - (offset & 7) - bits
    mask = (1 << bits) - 1
    whole = int.from_bytes(value[first : last + 1], "big")
    whole = whole & ~(mask << shift) | (number & mask) << shift
    value[first : last + 1] = whole.to_bytes(size, "big")
