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
