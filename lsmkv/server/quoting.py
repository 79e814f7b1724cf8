"""Lines of words with quotes: inline commands are split, and MONITOR shows requests so."""

from __future__ import annotations

import re

_WORD = re.compile(
    rb"""(?P<plain>[^\s"']*) (?:
        "(?P<double>(?:[^"\\]|\\.)*)"
      | '(?P<single>(?:[^'\\]|\\.)*)'
    )? (?:\s+|$)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_NAMED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}


def split_words(line: bytes) -> list[bytes]:
    r"""The words of a line, split as redis-cli and Redis do.  ``ValueError`` for unbalanced quotes.

    Double quotes allow ``\n \r \t \b \a \xHH``, and a backslash before any other byte; single
    quotes only ``\'``.  A word ends where its quotes do.

    >>> split_words(rb'''SET key "two words\n" 'it\'s' ''')
    [b'SET', b'key', b'two words\n', b"it's"]
    """
    words: list[bytes] = []
    at = 0
    line = line.strip()
    while at < len(line):
        found = _WORD.match(line, at)
        if found is None:
            raise ValueError("unbalanced quotes")
        word = found["plain"]
        if found["double"] is not None:
            word += _ESCAPE.sub(_unescaped, found["double"])
        elif found["single"] is not None:
            word += found["single"].replace(b"\\'", b"'")
        words.append(word)
        at = found.end()
    return words


def _unescaped(found: re.Match[bytes]) -> bytes:
    if found[1] is not None:
        return bytes.fromhex(found[1].decode())
    return _NAMED.get(found[2], found[2])


def quoted(argument: bytes) -> str:
    r"""An argument as MONITOR shows it.

    >>> print(quoted(b'a"\n\x01'))
    "a\"\n\x01"
    """
    named = {10: "\\n", 13: "\\r", 9: "\\t", 7: "\\a", 8: "\\b", 34: '\\"', 92: "\\\\"}
    shown = (
        named.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}")
        for byte in argument
    )
    return f'"{"".join(shown)}"'
