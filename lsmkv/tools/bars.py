"""Bars for the terminal, in eighths of a column where it has the characters."""

from __future__ import annotations

from rich.console import Console

EIGHTHS = " ▏▎▍▌▋▊▉█"
WASTED = "░"
"""Fills the part of a bar that was for nothing: it can be told from the rest without colours."""


def bar(figure: float, most: float, room: int, unicode: bool) -> str:
    """A bar of at most ``room`` columns for a figure up to ``most``.

    A figure above 0 is always visible.

    >>> bar(3, 8, 4, True), bar(3, 8, 4, False), bar(1, 10_000, 4, True), bar(0, 8, 4, True)
    ('█▌', '##', '▏', '')
    """
    eighths = round(8 * room * figure / most) if most else 0
    if figure and not eighths:
        eighths = 1
    if not unicode:
        return "#" * -(-eighths // 8)
    return EIGHTHS[8] * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def split_bar(used: float, wasted: float, most: float, room: int, unicode: bool) -> tuple[str, str]:
    """The two parts of a bar, what was of use and what was wasted; whole columns each.

    Each figure above 0 is visible, so the bar may be a column longer than its share.

    >>> split_bar(4, 2, 8, 8, True), split_bar(4, 0.001, 8, 8, False)
    (('████', '░░'), ('####', '-'))
    """
    if not most:
        return "", ""
    lengths = [max(round(room * figure / most), figure > 0) for figure in (used, wasted)]
    marks = (EIGHTHS[8], WASTED) if unicode else ("#", "-")
    return marks[0] * lengths[0], marks[1] * lengths[1]


def can_encode(console: Console, text: str) -> bool:
    """Whether the console's encoding has all characters of a text."""
    try:
        text.encode(console.encoding)
    except UnicodeEncodeError:
        return False
    return True
