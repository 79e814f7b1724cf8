"""Bars are to scale, and what is more than nothing is seen."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from lsmkv.tools.bars import EIGHTHS, bar, can_encode, split_bar


@pytest.mark.parametrize(("figure", "drawn"), [(0, ""), (10, "█"), (15, "█▌"), (80, "█" * 8)])
def test_a_bar_is_to_scale(figure: float, drawn: str) -> None:
    assert bar(figure, 80, 8, True) == drawn


def test_a_bar_in_ascii() -> None:
    assert bar(41, 80, 8, False) == "#####"


def test_a_bar_of_nothing() -> None:
    assert bar(0, 0, 8, True) == ""
    assert split_bar(0, 0, 0, 8, True) == ("", "")


def test_little_is_seen() -> None:
    assert bar(1, 1e9, 8, True) == "▏"
    assert split_bar(1, 1, 1e9, 8, True) == ("█", "░")


def test_two_parts() -> None:
    assert split_bar(20, 60, 80, 8, True) == ("██", "░░░░░░")
    assert split_bar(80, 0, 80, 8, False) == ("########", "")


def test_encodings() -> None:
    for encoding, answer in (("ascii", False), ("utf-8", True)):
        file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        assert can_encode(Console(file=file), EIGHTHS) is answer
