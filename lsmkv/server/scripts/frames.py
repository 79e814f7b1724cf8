"""Keeps the place of an error in a script whose last act is a call.

Lua forgets the function that says ``return f()``, if ``f`` is written in Lua: the call takes its
place.  In Redis ``redis.call`` is written in C, so that the error of ``return redis.call(...)``
names the line.  In parentheses, ``return (redis.call(...))``, it is no last act.  The value is the
same where one value is returned: these functions return one, and so does a script.
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
_CALL: Final = re.compile(rb"\breturn\s+[A-Za-z_]")
_SINGLE: Final = {b"redis", b"cjson", b"bit"}
"""Tables whose functions return one value."""
_OPENS: Final = {b"function", b"do", b"if", b"repeat"}
_CLOSES: Final = {b"end", b"until"}
_ENDS: Final = {b"end", b"else", b"elseif", b"until", b";"}
"""Tokens that may follow a return statement."""


def with_frames(source: bytes) -> bytes:
    """A script with parentheses round calls that it returns.  No line gets another number.

    >>> with_frames(b"if x then return redis.call('get', KEYS[1]) end return 'return redis.x(1)'")
    b"if x then return (redis.call('get', KEYS[1])) end return 'return redis.x(1)'"
    """
    if _CALL.search(source) is None:
        return source
    tokens = [found[0] for found in _TOKEN.finditer(source)]
    code = [at for at, token in enumerate(tokens) if not (token.isspace() or token[:2] == b"--")]
    words = [tokens[at] for at in code]
    parts = tokens.copy()
    ends = _ends_of_calls(words)
    blocks: list[bytes] = []
    functions = 0
    for at, word in enumerate(words):
        if word in _OPENS:
            blocks.append(word)
            functions += word == b"function"
        elif word in _CLOSES and blocks:
            functions -= blocks.pop() == b"function"
        elif word == b"return":
            call = _call_behind(words, at + 1)
            if call and (functions == 0 or words[at + 1] in _SINGLE):
                end = ends.get(call)
                if end is not None:
                    parts[code[at + 1]] = b"(" + parts[code[at + 1]]
                    parts[code[end]] += b")"
    return b"".join(parts)


def _call_behind(words: list[bytes], at: int) -> int:
    """Return the index of the parenthesis of a call ``a.b:c(``; 0 if there is none."""
    if words[at : at + 1] in ([b"function"], [b"not"]):
        return 0
    while at + 1 < len(words) and words[at][:1].isalpha() and words[at] != b"return":
        if words[at + 1] == b"(":
            return at + 1
        if words[at + 1] not in (b".", b":"):
            return 0
        at += 2
    return 0


def _ends_of_calls(words: list[bytes]) -> dict[int, int]:
    """Map each opening parenthesis to its closing one, unless the expression continues."""
    ends: dict[int, int] = {}
    open_at: list[int] = []
    for at, word in enumerate(words):
        if word == b"(":
            open_at.append(at)
        elif word == b")" and open_at:
            start = open_at.pop()
            if at + 1 == len(words) or words[at + 1] in _ENDS:
                ends[start] = at
    return ends
