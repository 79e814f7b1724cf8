"""Numbers in requests, and the exact sums of INCRBYFLOAT."""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal

from lsmkv.server.resp import CommandError

MIN_INT = -(2**63)
MAX_INT = 2**63 - 1
_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,18}")
_FLOAT = re.compile(
    rb"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?)", re.IGNORECASE
)
_HEXADECIMAL = re.compile(
    rb"[+-]?0x(?:[0-9a-f]+(?:\.[0-9a-f]*)?|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?", re.IGNORECASE
)
_EXACT = Context(prec=60)
_MAX_LONG_DOUBLE = Decimal("1.1897e4932")
_TOO_LARGE = Decimal("Infinity")

NOT_AN_INTEGER = "ERR value is not an integer or out of range"
NOT_A_FLOAT = "ERR value is not a valid float"


def to_int(text: bytes, error: str = NOT_AN_INTEGER) -> int:
    """A 64-bit integer in canonical decimal form; otherwise raises :class:`CommandError`."""
    if _INTEGER.fullmatch(text):
        value = int(text)
        if MIN_INT <= value <= MAX_INT:
            return value
    raise CommandError(error)


def to_int_from(least: int, text: bytes, error: str, no_int: str = "") -> int:
    """An integer of at least ``least``.  ``no_int`` is the error for other text, if there is a
    separate one."""
    number = to_int(text, no_int or error)
    if number < least:
        raise CommandError(error)
    return number


def wrapped(number: int) -> int:
    """A number as Redis' 64-bit counters hold it after an overflow.

    >>> wrapped(MAX_INT), wrapped(MAX_INT + 1) == MIN_INT
    (9223372036854775807, True)
    """
    return (number - MIN_INT) % (1 << 64) + MIN_INT


def to_float(text: bytes, error: str = NOT_A_FLOAT) -> float:
    """A double or an infinity; otherwise, also for NaN, raises :class:`CommandError`.

    >>> to_float(b"-1.5e3"), to_float(b"+inf")
    (-1500.0, inf)
    """
    value = parse_double(text)
    if value is None or (math.isinf(value) and overflows(text)):
        raise CommandError(error)
    if value == 0 and underflows(text):
        raise CommandError(error)
    return value


def overflows(text: bytes) -> bool:
    """True if a number became infinite because it is too large."""
    return b"inf" not in text.lower()


def underflows(text: bytes) -> bool:
    """True if a number became 0 because it is too small."""
    mark, digits = (b"p", b"123456789abcdef") if b"x" in text.lower() else (b"e", b"123456789")
    return any(digit in digits for digit in text.lower().partition(mark)[0])


def parse_double(text: bytes) -> float | None:
    """Parse a float as C's strtod does, except NaN; infinite beyond the range of a double."""
    if _FLOAT.fullmatch(text):
        return float(text)
    if _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(text.decode())
        except OverflowError:
            return -math.inf if text[:1] == b"-" else math.inf
    return None


def add_decimal(old: bytes, increment: bytes, old_error: str = NOT_A_FLOAT) -> bytes:
    """The sum in decimal, with at most 17 digits after the point.

    Redis adds 80-bit floating point numbers; decimal sums are exact.

    >>> add_decimal(b"0.1", b"0.2"), add_decimal(b"5.0e3", b"-200")
    (b'0.3', b'4800')
    """
    one, other = to_decimal(old, old_error), to_decimal(increment)
    total = _EXACT.add(one, other) if one.is_finite() and other.is_finite() else _TOO_LARGE
    if abs(total) > _MAX_LONG_DOUBLE:
        raise CommandError("ERR increment would produce NaN or Infinity")
    text = f"{total:.17f}".rstrip("0").rstrip(".")
    return b"0" if text == "-0" else text.encode()


def to_decimal(text: bytes, error: str = NOT_A_FLOAT) -> Decimal:
    """A decimal number or infinity.  Raises :class:`CommandError` if it exceeds a long double."""
    if _HEXADECIMAL.fullmatch(text):
        return Decimal(to_float(text, error))
    if not _FLOAT.fullmatch(text):
        raise CommandError(error)
    value = Decimal(text.decode())
    if value.is_finite() and value.copy_abs() > _MAX_LONG_DOUBLE:
        raise CommandError(error)
    return value
