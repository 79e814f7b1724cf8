"""Parentheses that keep the line of an error."""

# ruff: noqa: E501 - a script is one line

from __future__ import annotations

import pytest

from lsmkv.server.scripts.frames import with_frames


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("return redis.call('x')", "return (redis.call('x'))"),
        ("return\nredis . call ('x', (1))", "return\n(redis . call ('x', (1)))"),
        ("if a then return f(1) else return g(2) end", "if a then return (f(1)) else return (g(2)) end"),
        ("return a.b:c([[)]], ')', \"\\\")\")", "return (a.b:c([[)]], ')', \"\\\")\"))"),
        ("local function g() do end end return f(1)", "local function g() do end end return (f(1))"),
        ("local function f() return redis.call(1) end", "local function f() return (redis.call(1)) end"),
    ],
)  # fmt: skip
def test_a_call_that_is_returned_is_kept(source: str, expected: str) -> None:
    assert with_frames(source.encode()) == expected.encode()


@pytest.mark.parametrize(
    "source",
    [
        "",
        "return 1",
        "return f(1) + 1",
        "return f(1), 2",
        "return f(1)(2)",
        "return f(1).x",
        "return function() end",
        "return not f(1)",
        "return f",
        "return f(",
        "-- return redis.call(1)",
        "--[[ return redis.call(1) ]] return 1",
        "local s = 'return redis.call(1)'",
        "local function f() return unpack({1, 2}) end",
        "return 'unfinished",
        "return [[unfinished",
    ],
)
def test_everything_else_stays(source: str) -> None:
    assert with_frames(source.encode()) == source.encode()
