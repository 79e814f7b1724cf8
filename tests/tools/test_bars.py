"""Bars of text."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from lsmkv.tools.bars import EIGHTHS, Bars, can_encode, split_bar


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
    assert can_encode(console) is fine
    assert can_encode(console, "#")


def test_what_was_of_use_and_what_was_wasted() -> None:
    assert split_bar(20, 60, 80, 8, fine=True) == ("██", "░░░░░░")
    assert split_bar(80, 0, 80, 8, fine=False) == ("########", "")
    assert split_bar(1, 1, 1e9, 8, fine=True) == ("█", "░")
    assert split_bar(0, 0, 0, 8, fine=True) == ("", "")
