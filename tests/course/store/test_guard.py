"""A part's answers are compared with the engine's, and a part that fails is set aside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lsmkv.course.store.guard import Guard

SOURCE = """
def double(number):
    return 2 * number

def wrong(number):
    return 3 * number

def raising(number):
    return 1 / 0

def ending(number):
    raise SystemExit(5)

def counting(number):
    for one in range(number):
        yield one
    yield 1 / (3 - number)
"""


@pytest.fixture
def mine(tmp_path: Path) -> dict[str, Callable[..., Any]]:
    path = tmp_path / "lab1_keys.py"
    path.write_text(SOURCE)
    names: dict[str, Any] = {}
    exec(compile(SOURCE, str(path), "exec"), names)
    return names


def test_the_right_answer_is_used_and_counted(
    tmp_path: Path, mine: dict[str, Callable[..., Any]]
) -> None:
    guard = Guard(str(tmp_path))
    assert guard.compared("a", mine["double"], (4,), lambda: 8) == 8
    assert (guard.calls["a"], guard.failures, guard.aside) == (1, [], set())


@pytest.mark.parametrize(
    ("name", "what", "place"),
    [
        ("wrong", "wrong(4) is 12, not 8", ""),
        (
            "raising",
            "raising(4) raised ZeroDivisionError: division by zero",
            "lab1_keys.py, line 9: return 1 / 0",
        ),
        (
            "ending",
            "ending(4) raised SystemExit: 5",
            "lab1_keys.py, line 12: raise SystemExit(5)",
        ),
    ],
)
def test_a_failure_is_noted_once_and_the_engine_answers(
    tmp_path: Path, mine: dict[str, Callable[..., Any]], name: str, what: str, place: str
) -> None:
    guard = Guard(str(tmp_path))
    for _ in range(2):
        assert guard.compared("a", mine[name], (4,), lambda: 8) == 8
    assert [(one.what, one.place) for one in guard.failures] == [(what, place)]
    assert guard.aside == {"a"}
    assert guard.compared("b", mine["double"], (4,), lambda: 8) == 8


def test_what_the_engine_refuses_is_not_asked(
    tmp_path: Path, mine: dict[str, Callable[..., Any]]
) -> None:
    guard = Guard(str(tmp_path))
    with pytest.raises(ValueError, match="refused"):
        guard.compared("a", mine["raising"], (4,), refuse)
    assert guard.failures == []


def refuse() -> None:
    raise ValueError("refused")


def test_a_students_function_calls_the_engines_parts_unless_it_is_given_a_callback(
    tmp_path: Path, mine: dict[str, Callable[..., Any]]
) -> None:
    guard = Guard(str(tmp_path))

    def inner() -> bool:
        return guard.is_in_use("other")

    callback = guard.outside(inner)
    assert inner()
    assert guard.tried("a", inner, ()) is False
    assert guard.tried("a", callback, ()) is True


def test_a_generator_takes_its_steps_one_by_one(
    tmp_path: Path, mine: dict[str, Callable[..., Any]]
) -> None:
    guard = Guard(str(tmp_path))
    taken: list[int] = []

    def supplied() -> Iterator[int]:
        for one in range(5):
            taken.append(one)
            yield one

    steps = guard.steps(
        "a", lambda values: (2 * one for one in values), (guard.supply(supplied()),)
    )
    assert next(steps) == 0
    assert taken == [0]
    assert list(guard.steps("a", mine["counting"], (3,))) == [0, 1, 2]
    assert guard.failures[0].what.endswith("raised ZeroDivisionError: division by zero")


def test_the_part_that_runs_is_announced(
    tmp_path: Path, mine: dict[str, Callable[..., Any]]
) -> None:
    announced: list[str] = []
    guard = Guard(str(tmp_path), announced.append)
    guard.compared("a", mine["double"], (4,), lambda: 8)
    assert announced == ["a", ""]
