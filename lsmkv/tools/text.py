"""Keys, values, counts and sizes as text.

``escape`` gives one line of printable UTF-8, safe on a terminal; ``unescape`` takes it back.
"""

from __future__ import annotations

import re

import lsmkv
from lsmkv.util.text import count, escape, printable, size

__all__ = [
    "count",
    "escape",
    "from_argument",
    "from_hex",
    "printable",
    "shown",
    "size",
    "unescape",
    "version_line",
]

_LETTERS = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"\\": b"\\"}
_BREAK = re.compile(r"(?<=[,;:]) ")
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.|\Z)", re.DOTALL)


def version_line() -> str:
    """The version, and whether it is compiled."""
    return f"lsmkv {lsmkv.__version__} ({'compiled' if lsmkv.COMPILED else 'pure Python'})"


def unescape(text: bytes) -> bytes:
    r"""The bytes that :func:`escape` was given; ``ValueError`` for an escape it does not write.

    >>> unescape(rb"caf\xc3\xa9\t")
    b'caf\xc3\xa9\t'
    """
    return _ESCAPE.sub(_unescaped, text) if b"\\" in text else text


def from_argument(text: str, is_hex: bool) -> bytes:
    """A key or value as typed on the command line: UTF-8, or hexadecimal digits."""
    return from_hex(text) if is_hex else text.encode("utf-8", "surrogateescape")


def from_hex(text: str) -> bytes:
    """Bytes from hexadecimal digits; spaces are allowed."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise ValueError(f"not hexadecimal: {text!r}") from None


def shown(data: bytes, is_hex: bool) -> str:
    """A key or value as one line of text."""
    return data.hex() if is_hex else escape(data)


def fold(text: str, width: int, indent: int) -> str:
    """Text in lines of at most ``width`` columns, broken after commas, semicolons and colons alone.

    A figure stays with its unit, therefore.  Lines after the first begin with ``indent`` spaces; a
    part that is longer than a line stays whole.

    >>> print(fold("a.ldb  level 2, 1,020 blocks, 241,643 entries", 30, 7))
    a.ldb  level 2, 1,020 blocks,
           241,643 entries
    """
    first, *rest = _BREAK.split(text)
    lines = [first]
    for part in rest:
        if len(lines[-1]) + 1 + len(part) <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(" " * indent + part)
    return "\n".join(lines)


def _unescaped(match: re.Match[bytes]) -> bytes:
    escaped = match[1]
    if len(escaped) == 3:
        return bytes.fromhex(escaped[1:].decode())
    if escaped not in _LETTERS:
        raise ValueError(f"no such escape: {match[0].decode('utf-8', 'replace')}")
    return _LETTERS[escaped]
