"""Bitmaps: strings, of which commands read and write single bits.

A command reads and writes the chunks that it touches, or a string that is whole.
"""

from __future__ import annotations

from collections.abc import Iterator

from lsmkv.server.bits import combined, count_bits, find_bit, masked, read_bits
from lsmkv.server.encoding import STRING
from lsmkv.server.numbers import to_int
from lsmkv.server.registry import command
from lsmkv.server.resp import CommandError, Reply, syntax_error
from lsmkv.server.session import Session
from lsmkv.server.string_value import StringValue

_BAD_OFFSET = "ERR bit offset is not an integer or out of range"
_PIECE = 1 << 20
"""Bytes that are combined between two looks at the time."""
_BAD_BIT = "ERR bit is not an integer or out of range"


def to_bit_offset(session: Session, text: bytes) -> int:
    """The position of a bit that a string can have."""
    offset = to_int(text, _BAD_OFFSET)
    check_bit_offset(session, offset)
    return offset


def check_bit_offset(session: Session, offset: int) -> None:
    """Raise :class:`CommandError` if no string can have a bit at this position."""
    if offset < 0 or offset >> 3 >= session.service.settings.max_bulk:
        raise CommandError(_BAD_OFFSET)


@command("SETBIT", 4, "write", group="bitmap")
def setbit(session: Session, args: list[bytes]) -> Reply:
    """Set a bit of a string, extending it if necessary.  Returns the bit's old value."""
    offset = to_bit_offset(session, args[2])
    bit = to_int(args[3], _BAD_BIT)
    if bit not in (0, 1):
        raise CommandError(_BAD_BIT)
    space = session.space
    entry, new = space.find_or_make(session.database, args[1], STRING)
    value = space.value(entry)
    at, mask = offset >> 3, 0x80 >> (offset & 7)
    byte = (value.read(at, at + 1) or b"\0")[0]
    old = int(byte & mask != 0)
    if bit != old or at >= value.size:
        value.write(at, bytes((byte | mask if bit else byte & ~mask,)))
        value.flush()
        space.save(session.database, args[1], entry, new)
        session.announce("$", "setbit", args[1])
    return old


@command("GETBIT", 3, "readonly fast", group="bitmap")
def getbit(session: Session, args: list[bytes]) -> Reply:
    """Return a bit of a string; 0 after its end."""
    offset = to_bit_offset(session, args[2])
    entry = session.space.find(session.database, args[1], STRING)
    if entry is None:
        return 0
    return read_bits(session.space.value(entry).read(offset >> 3, (offset >> 3) + 1), offset & 7, 1)


def _is_bit(word: bytes) -> bool:
    """True if a range is in bits rather than bytes."""
    if word.upper() not in (b"BIT", b"BYTE"):
        raise syntax_error()
    return word.upper() == b"BIT"


def _bit_range(start: int, end: int, size: int, in_bits: bool) -> tuple[int, int]:
    """The same range in bits, counted from the start alone, within a string of ``size`` bytes."""
    if in_bits:
        size *= 8
    start = max(start + size if start < 0 else start, 0)
    end = min(max(end + size if end < 0 else end, 0), size - 1)
    return (start, end) if in_bits else (start * 8, end * 8 + 7)


def _masked_pieces(
    value: StringValue, start: int, end: int, rest: int
) -> Iterator[tuple[int, bytes]]:
    """The bytes that are stored of a range in bits, with their positions.  What else the first and
    the last one have becomes ``rest``, 0 or 1."""
    for at, piece in value.pieces(start >> 3, (end >> 3) + 1):
        low, high = max(start - at * 8, 0), min(end - at * 8, len(piece) * 8 - 1)
        inner = low == 0 and high == len(piece) * 8 - 1
        yield at, piece if inner else masked(piece, low, high, rest)


@command("BITCOUNT", -2, "readonly", group="bitmap")
def bitcount(session: Session, args: list[bytes]) -> Reply:
    """Return how many bits of a string, or of a range of it in bytes or bits, are 1."""
    entry = session.space.find(session.database, args[1], STRING)
    if entry is None:
        return 0
    value = session.space.value(entry)
    start, end, in_bits = 0, -1, False
    if len(args) != 2:
        if len(args) not in (4, 5):
            raise syntax_error()
        start, end = to_int(args[2]), to_int(args[3])
        if start < 0 and end < 0 and start > end:
            return 0
        in_bits = len(args) == 5 and _is_bit(args[4])
    start, end = _bit_range(start, end, value.size, in_bits)
    if start > end:
        return 0
    total = 0
    for _, piece in _masked_pieces(value, start, end, 0):
        total += count_bits(piece)
    return total


@command("BITPOS", -3, "readonly", group="bitmap")
def bitpos(session: Session, args: list[bytes]) -> Reply:
    """Return the position of the first bit that is 1, or 0, in a string or a range of it."""
    bit = to_int(args[2])
    if bit not in (0, 1):
        raise CommandError("ERR The bit argument must be 1 or 0.")
    entry = session.space.find(session.database, args[1], STRING)
    if entry is None:
        return -bit
    value = session.space.value(entry)
    if len(args) > 6:
        raise syntax_error()
    in_bits = False
    start, end = 0, -1
    if len(args) > 3:
        start = to_int(args[3])
        in_bits = len(args) == 6 and _is_bit(args[5])
        if len(args) > 4:
            end = to_int(args[4])
    start, end = _bit_range(start, end, value.size, in_bits)
    if start > end:
        return -1
    following = start >> 3
    for at, piece in _masked_pieces(value, start, end, 1 - bit):
        if at > following and bit == 0:
            break
        found = find_bit(piece, bit)
        if found >= 0:
            return at * 8 + found
        following = at + len(piece)
    if bit == 0 and following <= end >> 3:
        return max(following * 8, start)
    # Without an end, a string is thought of as followed by zeros.
    return -1 if bit or len(args) > 4 else end + 1


@command("BITOP", -4, "write", group="bitmap")
def bitop(session: Session, args: list[bytes]) -> Reply:
    """Store AND, OR or XOR of strings, or NOT of one.  Returns the length of the result."""
    operation = args[1].upper().decode("latin-1")
    if operation not in ("AND", "OR", "XOR", "NOT"):
        raise syntax_error()
    if operation == "NOT" and len(args) != 4:
        raise CommandError("ERR BITOP NOT must be called with a single source key.")
    space, database, target = session.space, session.database, args[2]
    values = [space.string(database, key) or b"" for key in args[3:]]
    parts: list[bytes] = []
    for at in range(0, max(map(len, values)), _PIECE):
        parts.append(combined(operation, [one[at : at + _PIECE] for one in values]))
        space.records.look_at_time()
    value = b"".join(parts)
    if value:
        space.set_string(database, target, value)
        session.announce("$", "set", target)
    elif space.clear(database, target):
        session.announce("g", "del", target)
    return len(value)
