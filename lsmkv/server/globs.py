"""Patterns of KEYS, SCAN, PSUBSCRIBE and CONFIG GET: ``*``, ``?``, ``[a-c]``, ``[^x]``, ``\\x``.

A pattern is split at its stars into pieces of fixed length.  Each piece is searched for after the
one before it, leftmost first.  The time is at most O(pattern * text).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from lsmkv.server.resp import CommandError

_LONGEST = 64 * 1024
"""The longest pattern, in bytes, unless it has no wildcard.  It takes some tenths of a second."""
_LONGEST_KEPT = 1024
"""The longest pattern, in bytes, whose function is cached."""


def matcher(pattern: bytes) -> Callable[[bytes], bool]:
    r"""Return a function that says whether a key matches.  Raises ``CommandError`` for a pattern
    that is too long.

    Making it costs O(pattern).

    >>> [bool(matcher(rb"h[^x]*o\?")(key)) for key in (b"hello?", b"hello!", b"hxllo?")]
    [True, False, False]
    """
    return _kept(pattern) if len(pattern) <= _LONGEST_KEPT else _made(pattern)


@lru_cache(maxsize=256)
def _kept(pattern: bytes) -> Callable[[bytes], bool]:
    return _made(pattern)


def _made(pattern: bytes) -> Callable[[bytes], bool]:
    if not any(special in pattern for special in (b"*", b"?", b"[", b"\\")):
        return lambda key: key == pattern
    if len(pattern) > _LONGEST:
        raise CommandError(f"ERR a pattern has at most {_LONGEST} bytes")
    pieces = _pieces(pattern)
    if len(pieces) == 1:
        whole = pieces[0][1]
        return lambda key: whole.fullmatch(key) is not None
    (_, first), *middle, (last_length, last) = pieces
    if all(length == 0 for length, _ in (pieces[0], *middle, pieces[-1])):
        return lambda key: True

    def match(key: bytes) -> bool:
        found = first.match(key)
        if found is None:
            return False
        at = found.end()
        for _, piece in middle:
            found = piece.search(key, at)
            if found is None:
                return False
            at = found.end()
        return len(key) - last_length >= at and last.match(key, len(key) - last_length) is not None

    return match


def literal_prefix(pattern: bytes) -> bytes:
    """The bytes with which every matching key begins.

    >>> literal_prefix(b"user:*"), literal_prefix(b"*x"), literal_prefix(b"one")
    (b'user:', b'', b'one')
    """
    end = min((at for at in map(pattern.find, (b"*", b"?", b"[", b"\\")) if at >= 0), default=None)
    return pattern[:end]


def _pieces(pattern: bytes) -> list[tuple[int, re.Pattern[bytes]]]:
    """The pieces between stars, each with the number of bytes that it matches."""
    pieces: list[tuple[int, re.Pattern[bytes]]] = []
    length, at = 0, 0
    source = bytearray()  # appending to bytes would cost O(pattern^2)
    while at < len(pattern):
        char = pattern[at : at + 1]
        if char == b"*":
            if not (length == 0 and pieces):  # stars in a row are one
                pieces.append((length, re.compile(bytes(source), re.DOTALL)))
                length = 0
                source.clear()
            at += 1
            continue
        length += 1
        if char == b"?":
            source += b"."
            at += 1
        elif char == b"[":
            one, at = _class(pattern, at + 1)
            source += one
        else:
            if char == b"\\" and at + 1 < len(pattern):
                at += 1
            source += re.escape(pattern[at : at + 1])
            at += 1
    pieces.append((length, re.compile(bytes(source), re.DOTALL)))
    return pieces


def _class(pattern: bytes, at: int) -> tuple[bytes, int]:
    """A class of bytes as a regular expression, and the index in the pattern after it.

    A class that is not closed extends to the end of the pattern.
    """
    negated = pattern[at : at + 1] == b"^"
    at += negated
    members: set[int] = set()
    while at < len(pattern) and pattern[at] != 0x5D:
        if pattern[at] == 0x5C and at + 1 < len(pattern):
            members.add(pattern[at + 1])
            at += 2
        elif at + 2 < len(pattern) and pattern[at + 1] == 0x2D:
            low, high = sorted((pattern[at], pattern[at + 2]))
            members.update(range(low, high + 1))
            at += 3
        else:
            members.add(pattern[at])
            at += 1
    if negated:
        members = set(range(256)) - members
    if not members:
        return b"(?!)", at + 1
    return b"[" + b"".join(b"\\x%02x" % one for one in sorted(members)) + b"]", at + 1
