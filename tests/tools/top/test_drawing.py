"""lsmkv.tools.top.drawing: bars and charts are as wide as they should be, and in proportion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.tools.top.drawing import bar, chart


@given(st.floats(-1, 2), st.integers(1, 50))
def test_a_bar_is_filled_in_proportion(share: float, width: int) -> None:
    drawn = bar(share, width)
    assert len(drawn) == width
    assert drawn.count("█") == min(width, int(max(0, share) * width + 0.0625)) or share <= 0
    assert (drawn.strip() == "") == (share <= 0)


@given(st.lists(st.floats(0, 1e9), max_size=60), st.integers(0, 40), st.integers(1, 6))
def test_a_chart_has_its_size_and_shows_what_is_there(
    values: list[float], width: int, height: int
) -> None:
    lines = chart(values, width, height)
    assert [len(line) for line in lines] == [width] * height
    shown = values[-width:] if width else []
    seen = [character != " " for character in lines[-1]][width - len(shown) :]
    assert seen == [value > 0 for value in shown]


def test_the_largest_value_fills_the_chart() -> None:
    assert chart([3, 0, 6], 4, 2) == ["   █", " █ █"]
    assert chart([5], 1, 1) == ["▇"]


@pytest.mark.parametrize("values", [[], [0.0, 0.0]])
def test_nothing_is_drawn_of_nothing(values: list[float]) -> None:
    assert chart(values, 3, 2) == ["   ", "   "]
    assert chart(values, 3, 0) == []
