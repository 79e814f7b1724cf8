"""The plots of docs/performance.md and docs/guides/caching.md, as SVG.

The same figures give the same bytes.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import matplotlib as mpl
from full_cache import Figures
from matplotlib.figure import Figure
from rows import PEER

from lsmkv.plot import to_svg
from lsmkv.tools.bench.engines import OWN

_SETTINGS: dict[Any, Any] = {"font.size": 9}
_COLORS = {OWN: "#1f77b4", PEER: "#ff7f0e"}
_PERCENTILES = (("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p99.9", "p999"), ("max", "high"))


def ratio_plot(results: dict[str, Any]) -> bytes:
    """How many times plyvel's time is lsmkv's, workload by workload."""
    measured = {
        name: workload["engines"][PEER]["ratio"]
        for name, workload in results["workloads"].items()
        if "ratio" in workload["engines"].get(PEER, {})
    }
    names = list(measured)[::-1]

    def draw(axes: Any) -> None:
        for at, name in enumerate(names):
            one = measured[name]
            ahead = OWN if one["median"] > 1 else PEER
            axes.barh(at, one["median"] - 1, left=1, color=_COLORS[ahead], height=0.6)
            axes.plot([one["low"], one["high"]], [at, at], color="black", linewidth=1)
        axes.axvline(1, color="grey", linewidth=0.8, linestyle="--")
        axes.set_yticks(range(len(names)), names)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(
            lambda ratio, _: f"{ratio:g}" if ratio >= 1 else f"1/{1 / ratio:g}"
        )
        axes.set_xlabel(
            f"time of {PEER} / time of {OWN}; line: spread; blue: {OWN} is faster, orange: {PEER}"
        )

    return _svg(draw, 0.28 * len(names) + 1)


def growth_plot(by_engine: dict[str, Any]) -> bytes:
    """Microseconds a Get by the number of entries."""

    def draw(axes: Any) -> None:
        for engine, figures in _measured(by_engine):
            points = figures["points"]
            entries = [point["entries"] for point in points]
            times = [point["micros_per_get"] for point in points]
            axes.plot(entries, times, marker="o", color=_COLORS.get(engine), label=engine)
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("entries")
        axes.set_ylabel("microseconds a Get")
        axes.legend()

    return _svg(draw, 3.2)


def latency_plot(by_engine: dict[str, Any]) -> bytes:
    """Percentiles of puts in the sustained run."""
    titles = [title for title, _ in _PERCENTILES]

    def draw(axes: Any) -> None:
        for engine, figures in _measured(by_engine):
            histogram = figures["histogram"]
            numbers = [histogram[name] for _, name in _PERCENTILES]
            axes.plot(titles, numbers, marker="o", color=_COLORS.get(engine), label=engine)
        axes.set_yscale("log")
        axes.set_ylabel("microseconds a put")
        axes.legend()

    return _svg(draw, 3.2)


def space_plot(by_row: dict[str, dict[str, Figures]]) -> bytes:
    """The space on disk of caches at their limit, by how much was stored; as multiples of it."""
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(7, 2.2 * math.ceil(len(by_row) / 2)), layout="constrained")
        panels = figure.subplots(math.ceil(len(by_row) / 2), 2, sharex=True, sharey=True)
        for axes, row in itertools.zip_longest(panels.flat, by_row):
            if row is None:
                axes.set_visible(False)
                continue
            for engine, figures in by_row[row].items():
                stored = [look.stored for look in figures.looks]
                space = [look.size for look in figures.looks]
                axes.plot(stored, space, linewidth=1, label=engine)
            axes.axhline(1, color="grey", linewidth=0.8, linestyle="--")
            axes.set_ylim(bottom=0)
            axes.set_title(row, fontsize="medium")
            axes.spines[["top", "right"]].set_visible(False)
        lines = panels.flat[0].get_lines()[:-1]
        figure.legend(handles=lines, loc="outside upper center", ncols=len(lines), frameon=False)
        figure.supxlabel("stored / limit")
        figure.supylabel("space on disk / limit")
        return to_svg(figure)


def _measured(by_engine: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(name, figures) for name, figures in by_engine.items() if "skipped" not in figures]


def _svg(draw: Any, height: float) -> bytes:
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(7, height), layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        axes.spines[["top", "right"]].set_visible(False)
        return to_svg(figure)
