"""Bitmaps: strings, of which commands read and write single bits.

A string is stored as one value.  So a command costs O(its bytes), also if it changes one bit.
"""

from __future__ import annotations

from lsmkv.server.bits import combined, count_bits, find_bit, masked
from lsmkv.server.encoding import STRING
from lsmkv.server.numbers import to_int
from lsmkv.server.registry import command
from lsmkv.server.resp import CommandError, Reply, syntax_error
from lsmkv.server.session import Session

_BAD_OFFSET = "ERR bit offset is not an integer or out of range"
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
    entry, new = session.space.find_or_make(session.database, args[1], STRING)
    value = entry.rest
    at, mask = offset >> 3, 0x80 >> (offset & 7)
    byte = value[at] if at < len(value) else 0
    old = int(byte & mask != 0)
    if bit != old or at >= len(value):
        byte = byte | mask if bit else byte & ~mask
        entry.rest = b"".join((value[:at].ljust(at, b"\0"), bytes((byte,)), value[at + 1 :]))
        session.space.save(session.database, args[1], entry, new)
        session.announce("$", "setbit", args[1])
    return old


@command("GETBIT", 3, "readonly fast", group="bitmap")
def getbit(session: Session, args: list[bytes]) -> Reply:
    """Return a bit of a string; 0 after its end."""
    offset = to_bit_offset(session, args[2])
    value = session.space.string(session.database, args[1]) or b""
    at = offset >> 3
    return value[at] >> (7 - (offset & 7)) & 1 if at < len(value) else 0


def _is_bit(word: bytes) -> bool:
    """Whether a range is in bits, and not in bytes."""
    if word.upper() not in (b"BIT", b"BYTE"):
        raise syntax_error()
    return word.upper() == b"BIT"


def _range(start: int, end: int, size: int) -> tuple[int, int]:
    """The same range counted from the start alone, within a size."""
    start = max(start + size if start < 0 else start, 0)
    end = max(end + size if end < 0 else end, 0)
    return start, min(end, size - 1)


@command("BITCOUNT", -2, "readonly", group="bitmap")
def bitcount(session: Session, args: list[bytes]) -> Reply:
    """Return how many bits of a string, or of a range of it in bytes or bits, are 1."""
    value = session.space.string(session.database, args[1])
    if value is None:
        return 0
    if len(args) == 2:
        return count_bits(value)
    if len(args) not in (4, 5):
        raise syntax_error()
    start, end = to_int(args[2]), to_int(args[3])
    if start < 0 and end < 0 and start > end:
        return 0
    in_bits = len(args) == 5 and _is_bit(args[4])
    start, end = _range(start, end, len(value) * 8 if in_bits else len(value))
    if start > end:
        return 0
    if in_bits:
        return count_bits(masked(value, start, end, 0))
    return count_bits(value[start : end + 1])


@command("BITPOS", -3, "readonly", group="bitmap")
def bitpos(session: Session, args: list[bytes]) -> Reply:
    """Return the position of the first bit that is 1, or 0, in a string or a range of it."""
    bit = to_int(args[2])
    if bit not in (0, 1):
        raise CommandError("ERR The bit argument must be 1 or 0.")
    value = session.space.string(session.database, args[1])
    if value is None:
        return -bit
    if len(args) > 6:
        raise syntax_error()
    in_bits = False
    start, end = 0, len(value) - 1
    if len(args) > 3:
        start = to_int(args[3])
        in_bits = len(args) == 6 and _is_bit(args[5])
        if len(args) > 4:
            end = to_int(args[4])
    start, end = _range(start, end, len(value) * 8 if in_bits else len(value))
    if start > end:
        return -1
    if not in_bits:
        start, end = start * 8, end * 8 + 7
    found = find_bit(masked(value, start, end, 1 - bit), bit)
    if found >= 0:
        return found + (start & ~7)
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
    value = combined(operation, [space.string(database, key) or b"" for key in args[3:]])
    if value:
        space.set_string(database, target, value)
        session.announce("$", "set", target)
    elif space.clear(database, target):
        session.announce("g", "del", target)
    return len(value)
