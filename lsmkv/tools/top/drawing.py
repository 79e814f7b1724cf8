"""Small pictures of figures, in block characters: bars, and how a figure went over time."""

from __future__ import annotations

from collections.abc import Sequence

from lsmkv.tools.bars import Bars

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def bar(share: float, width: int) -> str:
    """A bar of ``width`` columns, of which ``share`` (0 to 1) is filled.

    >>> bar(0.55, 4), bar(0.0, 4), bar(2.0, 4)
    ('██▎ ', '    ', '████')
    """
    return Bars(1.0, width, fine=True).draw(min(1.0, max(0.0, share))).ljust(width)


def chart(values: Sequence[float], width: int, height: int) -> list[str]:
    """The newest values as columns, the last one at the right, from 0 up to the largest.

    ``height`` lines from the top down.  Every value above 0 is visible, however small it is.  A
    chart of one line leaves an eighth free, so that charts in lines below each other do not touch.

    >>> chart([0, 1, 2, 4], 5, 1)
    ['  ▂▄▇']
    >>> chart([1, 8], 2, 2)
    [' █', '▂█']
    """
    shown = list(values)[-width:] if width > 0 else []
    most = max(shown, default=0.0)
    full = 7 if height == 1 else 8 * height
    eighths = [
        max(1, round(value / most * full)) if most > 0 and value > 0 else 0 for value in shown
    ]
    lines: list[str] = []
    for row in range(height - 1, -1, -1):
        cells = [_EIGHTHS[min(8, max(0, filled - 8 * row))] for filled in eighths]
        lines.append("".join(cells).rjust(width))
    return lines
