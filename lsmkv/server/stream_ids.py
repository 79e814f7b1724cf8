"""The ids of a stream's entries: 16 bytes that sort as the entries do, and text for clients.

An id is a time in milliseconds and a sequence number, both unsigned 64-bit integers: ``MS-SEQ``.
"""

from __future__ import annotations

import re
from typing import Final

from lsmkv.server.encoding import TWO_U64
from lsmkv.server.resp import CommandError

NO_ID: Final = bytes(16)
"""0-0, before all ids."""
LAST_ID: Final = b"\xff" * 16
"""The highest id."""
MAX_U64: Final = (1 << 64) - 1
_INVALID = "ERR Invalid stream ID specified as stream command argument"
_LONGEST = 127
_NUMBER = re.compile(rb"[ \t-\r]*\+?([0-9]+)")
"""A number as C's strtoull accepts it, except for negative ones."""


def to_id(milliseconds: int, sequence: int) -> bytes:
    """An id as bytes."""
    return TWO_U64.pack(milliseconds, sequence)


def id_text(id_: bytes) -> bytes:
    """An id as clients see it.

    >>> id_text(to_id(5, 1))
    b'5-1'
    """
    return b"%d-%d" % TWO_U64.unpack(id_)


def id_after(id_: bytes) -> bytes | None:
    """The next id; None for the highest one."""
    if id_ == LAST_ID:
        return None
    return (int.from_bytes(id_, "big") + 1).to_bytes(16, "big")


def id_before(id_: bytes) -> bytes | None:
    """The previous id; None for 0-0."""
    if id_ == NO_ID:
        return None
    return (int.from_bytes(id_, "big") - 1).to_bytes(16, "big")


def parse_id(text: bytes, missing: int = 0, special: bool = False) -> bytes:
    """The id in an argument.  ``missing`` is the sequence number if it has none.

    ``special`` allows ``-`` and ``+`` for the lowest and the highest id.  Raises ``CommandError``.

    >>> id_text(parse_id(b"7", missing=3)), id_text(parse_id(b"-", special=True))
    (b'7-3', b'0-0')
    """
    milliseconds, sequence = _parts(text, special)
    if sequence is None:
        return TWO_U64.pack(milliseconds, missing)
    return TWO_U64.pack(milliseconds, _number(sequence))


def parse_new_id(text: bytes) -> tuple[int, int | None]:
    """The id that XADD is given; without a sequence number if that is ``*``."""
    milliseconds, sequence = _parts(text, False)
    if sequence == b"*":
        return milliseconds, None
    return milliseconds, 0 if sequence is None else _number(sequence)


def parse_bound(text: bytes, missing: int = 0) -> tuple[bytes, bool]:
    """An end of a range, and whether it is exclusive: ``(`` before the id."""
    if len(text) > 1 and text[:1] == b"(":
        return parse_id(text[1:], missing), True
    return parse_id(text, missing, special=True), False


def parse_range(low: bytes, high: bytes) -> tuple[bytes, bytes]:
    """The first and the last id of a range."""
    return parse_start(low), _end(high)


def parse_start(text: bytes) -> bytes:
    """The first id of a range."""
    start, excluded = parse_bound(text)
    first = id_after(start) if excluded else start
    if first is None:
        raise CommandError("ERR invalid start ID for the interval")
    return first


def _end(text: bytes) -> bytes:
    end, excluded = parse_bound(text, MAX_U64)
    last = id_before(end) if excluded else end
    if last is None:
        raise CommandError("ERR invalid end ID for the interval")
    return last


def _parts(text: bytes, special: bool) -> tuple[int, bytes | None]:
    if len(text) > _LONGEST:
        raise CommandError(_INVALID)
    text = text.partition(b"\0")[0]
    if text in (b"-", b"+"):
        if not special:
            raise CommandError(_INVALID)
        return (0, b"0") if text == b"-" else (MAX_U64, b"%d" % MAX_U64)
    milliseconds, mark, sequence = text.partition(b"-")
    return _number(milliseconds), sequence if mark else None


def _number(text: bytes) -> int:
    if not text.isdigit():
        found = _NUMBER.fullmatch(text)
        if found is None:
            raise CommandError(_INVALID)
        text = found[1]
    number = int(text)
    if number > MAX_U64:
        raise CommandError(_INVALID)
    return number
