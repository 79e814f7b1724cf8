"""Inputs of students: what is evaluated, and what is not."""

from __future__ import annotations

import pytest

from lsmkv.course.faults.fault import InputError, answer_of, call_in, holds, size_of


def test_a_call_with_plain_values() -> None:
    text = "f(b'a' * 3 + b'b', -1, [(2**56 - 1, None)], {'x': 1.5}, True)"
    arguments = (b"aaab", -1, [(2**56 - 1, None)], {"x": 1.5}, True)
    assert call_in(text) == ("f", arguments)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "f",
        "f(",
        "f(x)",
        "f(open('x'))",
        "f.g(1)",
        "f(a=1)",
        "f(*[1])",
        "f(**{})",
        "f(lambda: 1)",
        "f([x for x in 'ab'])",
        "f(1); g(2)",
        "f({**{}})",
        "f(1 / 0)",
        "f(2 ** 2 ** 30)",
        "f(9999999 ** 100)",
        "f(b'a' * 10**9)",
        "f([b'a' * 1000] * 10**6)",
        "f(10**9 * 'a')",
        "f('a' - 1)",
        "f({[]: 1})",
        "f(" + "(" * 500 + ")" * 500 + ")",
    ],
)
def test_nothing_else_is_evaluated(text: str) -> None:
    with pytest.raises(InputError):
        call_in(text)


def test_sizes() -> None:
    assert [size_of(one) for one in (b"", b"ab", 7, [], [1, 2], (b"ab", {1: "x"}))] == [
        *(0, 2, 1, 1, 3),
        1 + 2 + 1 + 1 + 1,
    ]


def test_a_mark_is_found_everywhere() -> None:
    for value in (b"xmarky", "xmarky", [b"mark"], (1, [("mark",)]), {b"mark": 1}, {1: "mark"}):
        assert holds(value, b"mark")
    assert not holds([b"mar", "k", 5, None], b"mark")


def test_an_exception_is_an_answer() -> None:
    assert answer_of(lambda: b"a", ()) == "b'a'"
    assert answer_of(int, ("x",)) == "ValueError"
