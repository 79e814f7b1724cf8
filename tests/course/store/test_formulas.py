"""The formulas of the report, by the student or by the book."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lsmkv.course.store import formulas
from lsmkv.course.store.guard import Guard
from lsmkv.course.store.seams import Using


@pytest.fixture
def guard() -> Iterator[Guard]:
    formulas.KEPT.clear()
    yield Guard(".")
    formulas.KEPT.clear()


def keep(guard: Guard, part: str, name: str, function: Callable[..., Any]) -> None:
    formulas.keep(Using(part, {name: function}, guard))


def test_without_a_students_the_book_predicts(guard: Guard) -> None:
    assert formulas.false_positive_rate(10, 6) == pytest.approx(0.00844, rel=0.01)
    assert formulas.blocks_read(4, 0.25) == 1.0
    assert formulas.write_amplification(100, 150, 250) == 4.0
    assert formulas.write_amplification(0, 0, 0) == 0.0


def test_a_students_formula_is_used_if_it_is_right(guard: Guard) -> None:
    keep(guard, "blocks read", "predict", lambda tables, rate: 1 + tables * rate)
    assert formulas.blocks_read(4, 0.25) == 1.0
    assert guard.calls["blocks read"] == 1
    keep(guard, "blocks read", "predict", lambda tables, rate: tables * rate)
    assert formulas.blocks_read(4, 0.25) == 1.0
    assert guard.failures[0].what == "predict(4, 0.25) is 1.0, not 2"
