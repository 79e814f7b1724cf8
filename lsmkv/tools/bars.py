"""Horizontal bars of text, an eighth of a column fine where the encoding has such characters."""

from __future__ import annotations

import math

EIGHTHS = " ▏▎▍▌▋▊▉█"


class Bars:
    """Draws bars whose longest stands for ``most`` and takes ``room`` columns.

    A figure above 0 is always visible.  Without ``fine``, a bar consists of ``#``.  With ``log``,
    its length is the logarithm of the figure plus one, so that counts of very different sizes stay
    distinguishable; such a chart has to say that its scale is logarithmic.

    >>> bars = Bars(10.0, 4, fine=True)
    >>> bars.draw(10), bars.draw(6.3), bars.draw(0.001), bars.draw(0)
    ('████', '██▌', '▏', '')
    >>> Bars(10.0, 4, fine=False).draw(6.3)
    '###'
    >>> counts = Bars(1790, 8, fine=True, log=True)
    >>> counts.draw(9), counts.draw(1790)
    ('██▌', '████████')
    """

    def __init__(self, most: float, room: int, *, fine: bool, log: bool = False) -> None:
        self._log = log
        self._most = self._length(most)
        self._room = room
        self._fine = fine

    def _length(self, figure: float) -> float:
        return math.log1p(figure) if self._log else figure

    def draw(self, figure: float) -> str:
        """The bar of a figure, without spaces after it."""
        eighths = round(8 * self._room * self._length(figure) / self._most) if self._most else 0
        if figure and not eighths:
            eighths = 1
        if not self._fine:
            return "#" * -(-eighths // 8)
        return EIGHTHS[8] * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def can_encode(encoding: str, text: str = EIGHTHS) -> bool:
    """True if an encoding has these characters; by default those of fine bars."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
