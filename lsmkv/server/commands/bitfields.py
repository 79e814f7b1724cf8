"""BITFIELD: numbers of any width at any bit of a string.

The operations of a command run on copies of the chunks that they touch, or of the string if it is
whole, which are stored if they have changed anything.
"""

from __future__ import annotations

from typing import NamedTuple

from lsmkv.server import numbers
from lsmkv.server.bits import read_bits, write_bits
from lsmkv.server.command import KeyUse
from lsmkv.server.commands.bitmaps import check_bit_offset, to_bit_offset
from lsmkv.server.encoding import STRING, Entry
from lsmkv.server.numbers import to_int
from lsmkv.server.registry import command
from lsmkv.server.resp import CommandError, Reply, syntax_error
from lsmkv.server.session import Session
from lsmkv.server.string_value import StringValue

_BAD_TYPE = (
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64"
    " is."
)
_BAD_OFFSET = "ERR bit offset is not an integer or out of range"
_WORDS = {b"GET": 2, b"SET": 3, b"INCRBY": 3, b"OVERFLOW": 1}
"""The subcommands, and how many arguments each has."""


class _Operation(NamedTuple):
    name: bytes
    signed: bool
    bits: int
    offset: int
    number: int
    overflow: bytes
    """``WRAP``, ``SAT`` or ``FAIL``."""

    def read(self, value: StringValue) -> int:
        """The number that is there."""
        first, last = self.offset >> 3, (self.offset + self.bits - 1) >> 3
        number = read_bits(value.read(first, last + 1), self.offset & 7, self.bits)
        if self.signed and number >> (self.bits - 1):
            number -= 1 << self.bits
        return number

    def write(self, value: StringValue, number: int) -> None:
        """Set the number; the string must be long enough."""
        first, last = self.offset >> 3, (self.offset + self.bits - 1) >> 3
        part = bytearray(value.read(first, last + 1))
        write_bits(part, self.offset & 7, self.bits, number)
        value.write(first, bytes(part))

    def result(self, old: int) -> int | None:
        """The number that is to be there; None if it does not fit."""
        if self.name == b"SET":
            base, change = self.number, 0
            if not self.signed:
                base &= (1 << 64) - 1
        else:
            base, change = old, self.number
        exceeded = self._exceeded(base, change)
        if exceeded == 0:
            return base + change
        if self.overflow == b"FAIL":
            return None
        if self.overflow == b"SAT":
            return self._bounds()[exceeded > 0]
        total = base + change & ((1 << self.bits) - 1)
        if self.signed and total >> (self.bits - 1):
            total -= 1 << self.bits
        return total

    def _bounds(self) -> tuple[int, int]:
        if self.signed:
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 << self.bits) - 1

    def _exceeded(self, base: int, change: int) -> int:
        """1 if the sum is too large, -1 if it is too small, else 0.

        Redis computes the greatest change that fits in 64 bits.  So it takes a very small number
        that SET gives for a large one.
        """
        least, most = self._bounds()
        if base > most or (self.bits < 64 and change > numbers.wrapped(most - base)):
            return 1
        if base + change > most:
            return 1
        return -1 if base + change < least else 0


def _type(text: bytes) -> tuple[bool, int]:
    """Parse a type such as ``i16``: True if it is signed, and its width in bits."""
    bits = to_int(text[1:].partition(b"\0")[0], _BAD_TYPE)
    if text[:1] not in (b"i", b"u") or not 1 <= bits <= (64 if text[:1] == b"i" else 63):
        raise CommandError(_BAD_TYPE)
    return text[:1] == b"i", bits


def _offset(session: Session, text: bytes, bits: int) -> int:
    """A position in bits; ``#`` and a number counts in fields of this width."""
    if text[:1] != b"#":
        return to_bit_offset(session, text)
    offset = numbers.wrapped(to_int(text[1:], _BAD_OFFSET) * bits)
    check_bit_offset(session, offset)
    return offset


def _operations(session: Session, words: list[bytes]) -> list[_Operation]:
    found: list[_Operation] = []
    overflow = b"WRAP"
    at = 0
    while at < len(words):
        name = words[at].upper()
        count = _WORDS.get(name, len(words))
        if at + count >= len(words):
            raise syntax_error()
        if name == b"OVERFLOW":
            overflow = words[at + 1].upper()
            if overflow not in (b"WRAP", b"SAT", b"FAIL"):
                raise CommandError("ERR Invalid OVERFLOW type specified")
        else:
            signed, bits = _type(words[at + 1])
            offset = _offset(session, words[at + 2], bits)
            number = to_int(words[at + 3]) if count == 3 else 0
            found.append(_Operation(name, signed, bits, offset, number, overflow))
        at += 1 + count
    return found


def _field_keys(args: list[bytes]) -> list[KeyUse]:
    at = 2
    while at < len(args):
        name = args[at].upper()
        if name not in (b"GET", b"OVERFLOW") or at + _WORDS[name] >= len(args):
            return [KeyUse(args[1], ("RW", "access", "update"))]
        at += 1 + _WORDS[name]
    return [KeyUse(args[1], ("RO", "access"))]


@command("BITFIELD", -2, "write", group="bitmap", find_keys=_field_keys)
def bitfield(session: Session, args: list[bytes]) -> Reply:
    """Read, set and increment numbers at any position of a string, one after the other."""
    operations = _operations(session, args[2:])
    ends = [one.offset + one.bits for one in operations if one.name != b"GET"]
    if not ends:
        session.space.counting = True
        return _read(session, args[1], operations)
    entry, new = session.space.find_or_make(session.database, args[1], STRING)
    value = session.space.value(entry)
    size = (max(ends) + 7) >> 3
    longer, changed = size > value.size, False
    if longer:
        value.write(size - 1, b"\0")
    replies: list[Reply] = []
    for one in operations:
        old = one.read(value)
        if one.name == b"GET":
            replies.append(old)
            continue
        result = one.result(old)
        if result is None:
            replies.append(None)
            continue
        one.write(value, result)
        changed = changed or longer or result != old
        replies.append(old if one.name == b"SET" else result)
    if longer or changed:
        value.flush()
        session.space.save(session.database, args[1], entry, new)
    if changed:
        session.announce("$", "setbit", args[1])
    return replies


def _read(session: Session, key: bytes, operations: list[_Operation]) -> Reply:
    entry = session.space.find(session.database, key, STRING)
    value = session.space.value(Entry(STRING) if entry is None else entry)
    return [one.read(value) for one in operations]


@command("BITFIELD_RO", -2, "readonly fast", group="bitmap")
def bitfield_ro(session: Session, args: list[bytes]) -> Reply:
    """Read numbers at any position of a string."""
    operations = _operations(session, args[2:])
    if any(one.name != b"GET" for one in operations):
        raise CommandError("ERR BITFIELD_RO only supports the GET subcommand")
    return _read(session, args[1], operations)
