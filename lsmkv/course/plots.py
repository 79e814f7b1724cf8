"""Pictures of the measurements of a lab's code, drawn by :mod:`lsmkv.plot`: the extra ``plot``."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, NamedTuple

from lsmkv.course.labs.bloom import measured_rates
from lsmkv.course.labs.reading_store import measured_reads
from lsmkv.tools.plot import blocks_per_get, false_positive_rates, to_svg


class Plot(NamedTuple):
    """A picture and its content."""

    svg: bytes
    what: str
    measured: dict[str, Any]
    """Its figures, by their names in the picture."""


def rates(code: ModuleType) -> Plot:
    """Lab 4: false positive rates by bits per key."""
    measured = measured_rates(code)
    figure = false_positive_rates(range(1, 17), measured)
    axes = figure.axes[0]
    yours = axes.lines[-1]  # rings, so that LevelDB's points stay visible where both are equal
    yours.set_marker("o")
    yours.set_markersize(10)
    yours.set_markerfacecolor("none")
    axes.legend(frameon=False)
    return Plot(
        to_svg(figure), "false positive rates by bits per key, yours and LevelDB's", measured
    )


def reads(code: ModuleType) -> Plot:
    """Lab 8: blocks read per Get, with several filters."""
    measured = measured_reads(code)
    svg = to_svg(blocks_per_get(measured))
    return Plot(svg, "data blocks read per Get by filters, yours and lsmkv's", measured)


PLOTS: Final[dict[str, Callable[[ModuleType], Plot]]] = {"bloom": rates, "reading": reads}
"""The picture of a lab's results, by its short name."""
