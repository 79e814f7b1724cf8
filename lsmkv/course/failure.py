"""Failures of a check: a plain message and, if bytes differ, the first difference.

The first different byte is shown with its offset, the expected and the actual value, and the
meaning of a byte at that place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from lsmkv.engine.errors import CorruptionError

_AROUND = 7
"""Bytes shown on either side of the different one."""


class Place(NamedTuple):
    """A line of a student's file."""

    file: str
    line: int
    text: str
    function: str

    other: str = ""
    """The file's name; empty for the checked file."""

    def __str__(self) -> str:
        return f"{self.other + ', ' if self.other else ''}line {self.line}: {self.text}"


def place_of(error: BaseException) -> str:
    """The student's line that raised an exception, as a line of a message; empty if unknown."""
    place = getattr(error, "place", None)
    return "" if place is None else f"\n  {place}"


class CheckFailure(Exception):
    """The student's part does not do what the specification says."""


def require(condition: object, message: str) -> None:
    """Fail with ``message`` unless ``condition`` holds."""
    if not condition:
        raise CheckFailure(message)


def require_equal(got: object, expected: object, call: str, hint: str = "") -> None:
    """Fail unless a call returned what was expected, of the same type."""
    if type(got) is not type(expected) or got != expected:
        wrong = f"{call} must be {shown(expected)}, but your code returned {shown(got)}"
        raise CheckFailure(f"{wrong}.\n{hint}" if hint else f"{wrong}.")


def require_refused(
    call: Callable[[], object], call_text: str, why: str = "", hint: str = ""
) -> None:
    """Fail unless a call raises ``ValueError``, or what the engine's decoders raise."""
    try:
        done = f"returned {shown(call())}"
    except (ValueError, CorruptionError):
        return
    except (CheckFailure, NotImplementedError):
        raise
    except Exception as error:
        done = f"raised {type(error).__name__}"
        hint = place_of(error).lstrip("\n") + ("\n" + hint if hint else "")
    since = f", since {why}" if why else ""
    wrong = f"{call_text} must raise ValueError{since}, and your code {done}."
    raise CheckFailure(f"{wrong}\n{hint}" if hint else wrong)


def require_bytes(
    got: object, expected: bytes, what: str, meaning: Callable[[int], str], hint: str = ""
) -> None:
    """Fail unless ``got`` is ``expected``; ``meaning`` says what the byte at an offset is."""
    if not isinstance(got, bytes):
        raise CheckFailure(f"{what} must be bytes, but your code returned {shown(got)}.")
    if got != expected:
        raise CheckFailure(difference(got, expected, what, meaning) + (f"\n{hint}" if hint else ""))


def difference(got: bytes, expected: bytes, what: str, meaning: Callable[[int], str]) -> str:
    """The first byte in which ``got`` differs from ``expected``, described with its context.

    >>> print(difference(b"a-c", b"abc", "the word", lambda at: f"letter {at + 1}"))
    the word: byte 1 differs.
      expected  61 62 63
      got       61 2d 63
                   ^^
    Byte 1 is letter 2: expected 62, got 2d.
    """
    shorter = min(len(got), len(expected))
    at = next((at for at in range(shorter) if got[at] != expected[at]), shorter)
    begin = max(0, at - _AROUND)
    lines = [
        f"{what}: byte {at} differs.",
        f"  expected  {_window(expected, begin, at)}",
        f"  got       {_window(got, begin, at)}",
        "            " + " " * (3 * (at - begin) + 4 * (begin > 0)) + "^^",
    ]
    if at == len(got):
        lines.append(f"Your bytes end there: {len(got):,} of {len(expected):,}.")
        lines.append(f"Byte {at} is {meaning(at)}: expected {expected[at]:02x}.")
    elif at == len(expected):
        lines.append(f"The expected bytes end there: {len(expected):,}. Yours are {len(got):,}.")
    else:
        lines.append(f"Byte {at} is {meaning(at)}: expected {expected[at]:02x}, got {got[at]:02x}.")
    return "\n".join(lines)


def _window(data: bytes, begin: int, at: int) -> str:
    end = at + _AROUND + 1
    before = "... " if begin > 0 else ""
    return before + data[begin:end].hex(" ") + (" ..." if end < len(data) else "")


def shown(value: object) -> str:
    """A value in a message: bytes in hexadecimal unless all are printable, truncated if long."""
    if isinstance(value, bytes) and not (
        value and value.isascii() and value.decode().isprintable()
    ):
        text = f"the bytes {value.hex(' ')}" if value else "no bytes"
    else:
        text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."
