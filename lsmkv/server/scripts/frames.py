"""Keeps the place of an error in a script whose last act is a call.

Lua forgets the function that says ``return f()``, if ``f`` is written in Lua: the call takes its
place.  In Redis ``redis.call`` is written in C, so that the error of ``return redis.call(...)``
names the line.  In parentheses, ``return (redis.call(...))``, it is no last act, and the value is
the same, since these functions return one value.
"""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(
    rb"""--\[(?P<level>=*)\[.*?(?:\](?P=level)\]|\Z)       # comments
    | --[^\n]*
    | \[(?P<quotes>=*)\[.*?(?:\](?P=quotes)\]|\Z)          # strings
    | "(?:\\.|[^"\\])*"?
    | '(?:\\.|[^'\\])*'?
    | [A-Za-z_][A-Za-z_0-9]*
    | \s+
    | .""",
    re.VERBOSE | re.DOTALL,
)
_CALL: Final = re.compile(rb"\breturn\s+(?:redis|cjson|bit)\s*\.\s*[a-z0-9_]+\s*\(")
_NAMES: Final = {b"redis", b"cjson", b"bit"}


def with_frames(source: bytes) -> bytes:
    """A script with parentheses round calls of ``redis``, ``cjson`` and ``bit`` that it returns.

    No line gets another number.

    >>> with_frames(b"if x then return redis.call('get', KEYS[1]) end return 'return redis.x(1)'")
    b"if x then return (redis.call('get', KEYS[1])) end return 'return redis.x(1)'"
    """
    if _CALL.search(source) is None:
        return source
    tokens = [found[0] for found in _TOKEN.finditer(source)]
    code = [at for at, token in enumerate(tokens) if not _is_blank(token)]
    parts = list(tokens)
    for place in range(len(code) - 4):
        words = [tokens[at] for at in code[place : place + 5]]
        if words[0] == b"return" and words[1] in _NAMES and words[2] == b"." and words[4] == b"(":
            end = _end_of_call(tokens, code, place + 4)
            if end >= 0:
                parts[code[place + 1]] = b"(" + parts[code[place + 1]]
                parts[end] += b")"
    return b"".join(parts)


def _is_blank(token: bytes) -> bool:
    return token.isspace() or token.startswith(b"--")


def _end_of_call(tokens: list[bytes], code: list[int], place: int) -> int:
    """Where the parenthesis of a call is closed; -1 if it is not, or if an operator or a further
    call follows."""
    depth = 0
    for at in range(place, len(code)):
        token = tokens[code[at]]
        if token == b"(":
            depth += 1
        elif token == b")":
            depth -= 1
            if depth == 0:
                follows = tokens[code[at + 1]] if at + 1 < len(code) else b"end"
                ends = (b"end", b"else", b"elseif", b"until", b";")
                return code[at] if follows in ends else -1
    return -1
