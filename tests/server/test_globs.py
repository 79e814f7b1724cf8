"""Patterns, against a matcher that tries everything."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsmkv.server.globs import literal_prefix, matcher
from lsmkv.server.resp import CommandError


def matches(pattern: bytes, text: bytes) -> bool:
    """Straight from the meaning of a pattern: exponential, and plain."""
    if not pattern:
        return not text
    head, rest = pattern[:1], pattern[1:]
    if head == b"*":
        return any(matches(rest, text[at:]) for at in range(len(text) + 1))
    if not text:
        return False
    if head == b"?":
        return matches(rest, text[1:])
    if head == b"[":
        inside, rest = in_class(rest, text[0])
        return inside and matches(rest, text[1:])
    if head == b"\\" and rest:
        head, rest = rest[:1], rest[1:]
    return head == text[:1] and matches(rest, text[1:])


def in_class(pattern: bytes, byte: int) -> tuple[bool, bytes]:
    negated = pattern.startswith(b"^")
    pattern = pattern[negated:]
    inside = False
    while pattern and pattern[:1] != b"]":
        if pattern[:1] == b"\\" and len(pattern) > 1:
            inside |= pattern[1] == byte
            pattern = pattern[2:]
        elif pattern[1:2] == b"-" and len(pattern) > 2:
            ends = sorted((pattern[0], pattern[2]))
            inside |= ends[0] <= byte <= ends[1]
            pattern = pattern[3:]
        else:
            inside |= pattern[0] == byte
            pattern = pattern[1:]
    return inside is not negated, pattern[1:]


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (b"", [b""], [b"a"]),
        (b"*", [b"", b"a\n\xff"], []),
        (b"***", [b"", b"a"], []),
        (b"a*", [b"a", b"ab"], [b"", b"ba"]),
        (b"*a", [b"a", b"ba"], [b"ab"]),
        (b"a*b*c", [b"abc", b"axbxxc", b"abbcc"], [b"ac", b"ab", b"acb"]),
        (b"a*a", [b"aa", b"aba"], [b"a"]),
        (b"?", [b"a", b"\n", b"\xff"], [b"", b"aa"]),
        (b"h[ae]llo", [b"hello", b"hallo"], [b"hillo", b"hllo"]),
        (b"h[^e]llo", [b"hallo", b"h\nllo"], [b"hello"]),
        (b"[a-c][z-x]", [b"by", b"az"], [b"dy", b"aw"]),
        (b"[]", [], [b"", b"a", b"]"]),
        (b"[^]", [b"a", b"]"], [b""]),
        (b"[a", [b"a"], [b"[a", b"b"]),
        (b"[a-]", [b"a", b"]", b"_"], [b"-", b"b"]),
        (rb"[\]-]", [b"]", b"-"], [b"\\"]),
        (rb"\*\?\[", [b"*?["], [b"abc"]),
        (b"a\\", [b"a\\"], [b"a"]),
        (b"(a|b).+$", [b"(a|b).+$"], [b"ab"]),
    ],
)
def test_patterns(pattern: bytes, yes: list[bytes], no: list[bytes]) -> None:
    assert [key for key in yes + no if matcher(pattern)(key)] == yes


letters = st.lists(st.sampled_from([b"a", b"b", b"-", b"]", b"\xff"]), max_size=6).map(b"".join)
marks = [b"*", b"?", b"[", b"]", b"^", b"-", b"\\", b"a", b"b", b"\xff"]


@given(st.lists(st.sampled_from(marks), max_size=8).map(b"".join), letters)
@example(b"*[^", b"a")
def test_like_a_matcher_that_tries_everything(pattern: bytes, text: bytes) -> None:
    expected = matches(pattern, text)
    assert matcher(pattern)(text) == expected
    assert not expected or text.startswith(literal_prefix(pattern))


def test_many_stars_take_no_longer_than_few() -> None:
    # Trying everything would take longer than there is time.
    assert not matcher(b"*a" * 40 + b"*b")(b"a" * 2000)
    assert not matcher(b"a*" * 40 + b"b")(b"a" * 2000)
    assert matcher(b"*a" * 40)(b"a" * 2000)


def test_long_patterns() -> None:
    most = 64 * 1024
    assert matcher(b"a" * 10**6)(b"a" * 10**6)
    for one in (b"?", b"[a]", b"\\a", b"*a"):
        count = most // len(one)
        assert matcher(one * count)(b"a" * count)
        assert not matcher(one * count)(b"a" * (count - 1))
    with pytest.raises(CommandError, match=r"^ERR a pattern has at most 65536 bytes$"):
        matcher(b"?" * (most + 1))


@pytest.mark.parametrize(
    ("pattern", "prefix"),
    [(b"", b""), (b"a", b"a"), (b"a?", b"a"), (b"a[b]", b"a"), (b"a\\*", b"a"), (b"a]*", b"a]")],
)
def test_the_literal_beginning(pattern: bytes, prefix: bytes) -> None:
    assert literal_prefix(pattern) == prefix
