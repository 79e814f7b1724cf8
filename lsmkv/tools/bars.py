"""Horizontal bars of text, an eighth of a column fine where the encoding has such characters."""

from __future__ import annotations

from rich.console import Console

EIGHTHS = " ▏▎▍▌▋▊▉█"


class Bars:
    """Draws bars whose longest stands for ``most`` and takes ``room`` columns.

    A figure above 0 is always visible.  Without ``fine``, a bar consists of ``#``.

    >>> bars = Bars(10.0, 4, fine=True)
    >>> bars.draw(10), bars.draw(6.3), bars.draw(0.001), bars.draw(0)
    ('████', '██▌', '▏', '')
    >>> Bars(10.0, 4, fine=False).draw(6.3)
    '###'
    """

    def __init__(self, most: float, room: int, *, fine: bool) -> None:
        self._most = most
        self._room = room
        self._fine = fine

    def draw(self, figure: float) -> str:
        """The bar of a figure, without spaces after it."""
        eighths = round(8 * self._room * figure / self._most) if self._most else 0
        if figure and not eighths:
            eighths = 1
        if not self._fine:
            return "#" * -(-eighths // 8)
        return EIGHTHS[8] * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def can_encode(console: Console, text: str = EIGHTHS) -> bool:
    """Whether a console's encoding has these characters: those of fine bars, if not told."""
    try:
        text.encode(console.encoding)
    except UnicodeEncodeError:
        return False
    return True


WASTED = "░"
"""Fills the part of a bar that was for nothing: it can be told from the rest without colours."""


def split_bar(used: float, wasted: float, most: float, room: int, *, fine: bool) -> tuple[str, str]:
    """The two parts of a bar, what was of use and what was wasted; whole columns each.

    ``most`` takes ``room`` columns.  Each figure above 0 is visible, so the bar may be a column
    longer than its share.

    >>> split_bar(4, 2, 8, 8, fine=True), split_bar(4, 0.001, 8, 8, fine=False)
    (('████', '░░'), ('####', '-'))
    """
    if not most:
        return "", ""
    lengths = [max(round(room * figure / most), figure > 0) for figure in (used, wasted)]
    marks = (EIGHTHS[8], WASTED) if fine else ("#", "-")
    return marks[0] * lengths[0], marks[1] * lengths[1]
