"""Bars of text."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from lsmkv.tools.bars import EIGHTHS, Bars, can_encode


@pytest.mark.parametrize("figure", [0.0, 1e-9, 0.3, 1.0, 2.5, 7.0, 9.99, 10.0])
def test_a_bar_is_as_long_as_its_figure(figure: float) -> None:
    drawn = Bars(10.0, 20, fine=True).draw(figure)
    eighths = sum(EIGHTHS.index(character) for character in drawn)
    assert abs(eighths - 16 * figure) <= 0.5 or eighths == 1
    assert (eighths == 0) == (figure == 0)
    plain = Bars(10.0, 20, fine=False).draw(figure)
    assert set(plain) <= {"#"}
    assert len(plain) == len(drawn)


def test_bars_of_nothing() -> None:
    assert Bars(0.0, 20, fine=True).draw(0.0) == ""


@pytest.mark.parametrize(
    ("encoding", "fine"), [("utf-8", True), ("ascii", False), ("cp437", False)]
)
def test_what_an_encoding_can_show(encoding: str, fine: bool) -> None:
    console = Console(file=io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    assert can_encode(console.encoding) is fine
    assert can_encode(console.encoding, "#")


@pytest.mark.parametrize("room", [8, 14, 40])
def test_counts_of_different_sizes_are_distinguishable_on_a_log_scale(room: int) -> None:
    bars = Bars(45_777, room, fine=True, log=True)
    lengths = [len(bars.draw(count)) for count in (0, 9, 100, 1_790, 45_777)]
    assert lengths == sorted(set(lengths))
    assert (lengths[0], lengths[-1]) == (0, room)
    linear = Bars(45_777, room, fine=True)
    assert len(linear.draw(9)) == len(linear.draw(100)) == 1
