"""Keys, values, counts and sizes as text.

``escape`` gives one line of printable UTF-8, safe on a terminal; ``unescape`` takes it back.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import textwrap
from unicodedata import combining, east_asian_width

from lsmkv.engine.util.text import count, escape, printable, size

__all__ = [
    "as_argument",
    "clipped",
    "count",
    "duration",
    "escape",
    "from_argument",
    "from_hex",
    "from_size",
    "printable",
    "shown",
    "size",
    "unescape",
    "wrap",
]

_LETTERS = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"\\": b"\\"}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(?:([KMGT]?)(?:iB)?)", re.IGNORECASE)
_BREAK = re.compile(r"(?<=[,;:]) ")
_FIGURE = re.compile(r"(?<=[0-9%]) (?=[A-Za-z])")
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.|\Z)", re.DOTALL)


def unescape(text: bytes) -> bytes:
    r"""The bytes that :func:`escape` was given; ``ValueError`` for an escape it does not write.

    >>> unescape(rb"caf\xc3\xa9\t")
    b'caf\xc3\xa9\t'
    """
    return _ESCAPE.sub(_unescaped, text) if b"\\" in text else text


def from_argument(text: str, is_hex: bool) -> bytes:
    """A key or value as typed on the command line: UTF-8, or hexadecimal digits."""
    return from_hex(text) if is_hex else text.encode("utf-8", "surrogateescape")


def as_argument(path: str) -> str:
    """A path as it is typed in this system's shell.

    >>> print(as_argument("inventory"))
    inventory
    """
    return subprocess.list2cmdline([path]) if os.name == "nt" else shlex.quote(path)


def from_hex(text: str) -> bytes:
    """Bytes from hexadecimal digits; spaces are allowed."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise ValueError(f"not hexadecimal: {text!r}") from None


def from_size(text: str) -> int:
    """A number of bytes as typed on the command line.

    >>> from_size("4096"), from_size("64K"), from_size("1.5 GiB")
    (4096, 65536, 1610612736)
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError(f"not a size: {text!r} (in bytes, or as 64K, 256M or 1.5G)")
    return int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))


def shown(data: bytes, is_hex: bool) -> str:
    r"""A key or value as one line of text, in which spaces at either end are visible.

    :func:`unescape` takes it back.

    >>> print(shown(b" two words ", False), shown(b" ", True))
    \x20two words\x20 20
    """
    if is_hex:
        return data.hex()
    text = escape(data)
    if not text.startswith(" ") and not text.endswith(" "):
        return text
    inner = text.strip(" ")
    before = len(text) - len(text.lstrip(" "))
    behind = len(text) - before - len(inner)
    return r"\x20" * before + inner + r"\x20" * behind


def clipped(data: bytes, width: int, is_hex: bool = False) -> str:
    r"""A key as one line of at most ``width`` columns; one that is cut ends in its size.

    ``width`` is 20 at least.  O(width), however long the key is.

    >>> print(clipped(b"ant", 20), clipped(b"\0" * 1_000_000, 30), clipped(b"", 20))
    ant \x00\x00\x00... (976.6 KiB) (empty)
    """
    if not data:
        return "(empty)"
    text = shown(data[:width], is_hex)
    if len(data) <= width and _columns(text) <= width:
        return text
    end = f"... ({size(len(data))})"
    # A character of several bytes that is cut in two is escaped, and an escape is never cut.
    kept = data[:width]
    while _columns(shown(kept, is_hex)) + len(end) > width:
        kept = kept[:-1]
    return shown(kept, is_hex) + end


def duration(nanoseconds: float) -> str:
    """A time, for people: two or three digits.

    >>> duration(850), duration(2_100), duration(13_400_000), duration(1.5e9), duration(999_999)
    ('850 ns', '2.1 us', '13 ms', '1.5 s', '1.0 ms')
    """
    for limit, unit in ((1e3, "ns"), (1e6, "us"), (1e9, "ms")):
        number = nanoseconds / (limit / 1e3)
        if number < 999.5:
            return (
                f"{number:.0f} {unit}" if number >= 9.95 or unit == "ns" else f"{number:.1f} {unit}"
            )
    number = nanoseconds / 1e9
    return f"{number:.1f} s" if number < 99.95 else f"{number:,.0f} s"


def _columns(text: str) -> int:
    """The columns of a terminal that a line of printable text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def fold(text: str, width: int, indent: int) -> str:
    """Text in lines of at most ``width`` columns, broken after commas, semicolons and colons alone.

    So a figure stays with its unit.  Lines after the first begin with ``indent`` spaces; a
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


def wrap(text: str, width: int, indent: int = 0) -> list[str]:
    """A paragraph in lines of at most ``width`` columns, in which a figure stays with its unit.

    Lines after the first begin with ``indent`` spaces.

    >>> wrap("It takes 1,575 bytes, or 1.5 KiB, of each table.", 16, 2)
    ['It takes', '  1,575 bytes,', '  or 1.5 KiB, of', '  each table.']
    """
    bound = _FIGURE.sub("\u00a0", text)  # textwrap breaks at the spaces of ASCII alone
    lines = textwrap.wrap(
        bound, width, break_on_hyphens=False, subsequent_indent=" " * indent, tabsize=1
    )
    return [line.replace("\u00a0", " ") for line in lines]


def _unescaped(match: re.Match[bytes]) -> bytes:
    escaped = match[1]
    if len(escaped) == 3:
        return bytes.fromhex(escaped[1:].decode())
    if escaped not in _LETTERS:
        raise ValueError(f"no such escape: {match[0].decode('utf-8', 'replace')}")
    return _LETTERS[escaped]
