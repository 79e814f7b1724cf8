"""What lsmkv was asked to reach, beside what it reached.  A miss is told like everything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from lsmkv.tools.bench.engines.registry import OWN
from lsmkv.tools.bench.report import micros, ratio, times
from lsmkv.tools.text import size

PEER = "plyvel"
_WRITES = ("fillseq", "fillbatch", "fillrandom", "overwrite", "fillsync", "deleterandom")
_READS = (
    *("readrandom", "readmissing", "readhot", "readseq", "readreverse"),
    *("seekrandom", "seek10"),
)

COMPILED: dict[str, float] = {
    "fillseq": 1.5,
    "fillbatch": 1.6,
    "fillrandom": 1.5,
    "overwrite": 1.5,
    "fillsync": 1.15,
    "readrandom": 1.5,
    "readmissing": 2.5,
    "readhot": 4.0,
    "readseq": 2.0,
    "readreverse": 2.0,
    "seek10": 1.5,
    "deleterandom": 1.5,
    "scandeleted": 0.83,
    "queue": 0.83,
    "compact": 1.5,
    "open": 1.0,
}
"""plyvel's time over lsmkv's, at least."""

PURE: dict[str, float] = dict.fromkeys(_WRITES, 0.4) | dict.fromkeys(_READS, 0.2)

_LARGER_ON_DISK = 1.02
_MORE_WRITTEN = 1.05
_MORE_MEMORY = 1.5
_SUSTAINED = 1.5
_SLOWEST_THOUSANDTH = 1000.0
_IMPORT_MILLISECONDS = 50.0


class Row(NamedTuple):
    """One thing that was measured, and the bar for it."""

    title: str
    own: str
    peer: str
    ratio: str
    bar: str
    """Empty if there is none."""
    reached: bool | None
    """None where there is no bar, or nothing to compare with."""


def workload_rows(results: dict[str, Any], bars: dict[str, float]) -> list[Row]:
    """The workloads of one run against plyvel."""
    rows = []
    for name, workload in results["workloads"].items():
        own, peer = workload["engines"][OWN], workload["engines"].get(PEER, {})
        bar = bars.get(name)
        measured = peer.get("ratio")
        rows.append(
            Row(
                name,
                micros(own["micros"]["median"]),
                micros(peer["micros"]["median"]) if "micros" in peer else "-",
                "-" if measured is None else ratio(measured),
                "" if bar is None else f">= {bar:.2f}",
                None if bar is None or measured is None else measured["median"] >= bar,
            )
        )
    return rows


def study_rows(studies: dict[str, Any]) -> list[Row]:
    """The studies that were made, by name, each as one or more rows."""
    rows: list[Row] = []
    for name, rows_of in _STUDIES.items():
        by_engine = studies.get(name)
        if by_engine is not None:
            rows += rows_of(by_engine[OWN], by_engine.get(PEER, {"skipped": ""}))
    return rows


Figures = dict[str, Any]


def _sustained(own: Figures, peer: Figures) -> list[Row]:
    what = f"{own['ops']:,} random puts"
    theirs = None if "skipped" in peer else peer
    slowest = own["histogram"]["p999"]
    return [
        _compared(
            f"{what}, seconds",
            own["seconds"],
            None if theirs is None else theirs["seconds"],
            lambda number: f"{number:.2f}",
            at_least=_SUSTAINED,
        ),
        Row(
            f"{what}, p99.9 in microseconds",
            micros(slowest),
            "-" if theirs is None else micros(theirs["histogram"]["p999"]),
            "",
            f"<= {_SLOWEST_THOUSANDTH:,.0f}",
            slowest <= _SLOWEST_THOUSANDTH,
        ),
        Row(
            f"{what}, how many over 50 ms",
            str(own["over_50_ms"]),
            "-" if theirs is None else str(theirs["over_50_ms"]),
            "",
            "0",
            own["over_50_ms"] == 0,
        ),
    ]


def _growth(own: Figures, peer: Figures) -> list[Row]:
    points = own["points"]
    first, last = points[0], points[-1]
    ours = _growth_of(own)
    theirs = None if "skipped" in peer else _growth_of(peer)
    return [
        Row(
            f"a Get at {last['entries']:,} entries over one at {first['entries']:,}",
            times(ours),
            "-" if theirs is None else times(theirs),
            "",
            "<= plyvel's",
            None if theirs is None else ours <= theirs,
        )
    ]


def _growth_of(figures: Figures) -> float:
    points = figures["points"]
    return float(points[-1]["micros_per_get"] / points[0]["micros_per_get"])


def _footprint(own: Figures, peer: Figures) -> list[Row]:
    what = f"{own['entries']:,} random puts"
    return [
        _compared(f"{what}, {title}", own[name], peer.get(name), size, at_most=limit)
        for title, name, limit in (
            ("on disk as they are", "disk_bytes", _LARGER_ON_DISK),
            ("on disk, compacted", "disk_bytes_compacted", _LARGER_ON_DISK),
            ("tables written by flushes and compactions", "table_bytes_written", _MORE_WRITTEN),
        )
    ]


def _absent(own: Figures, peer: Figures) -> list[Row]:
    written = own["bytes_written"]
    theirs = peer.get("bytes_written")
    return [
        Row(
            f"bytes written by {own['gets']:,} Gets of absent keys",
            "-" if written is None else f"{written:,}",
            "-" if theirs is None else f"{theirs:,}",
            "",
            "0",
            None if written is None else written == 0,
        )
    ]


def _memory(own: Figures, peer: Figures) -> list[Row]:
    what = f"peak memory of the process, {own['entries']:,} entries"
    return [_compared(what, own["peak"], peer.get("peak"), size, at_most=_MORE_MEMORY)]


def _import(own: Figures, peer: Figures) -> list[Row]:
    theirs = peer.get("milliseconds")
    return [
        Row(
            "import, milliseconds",
            f"{own['milliseconds']:.1f}",
            "-" if theirs is None else f"{theirs:.1f}",
            "",
            f"< {_IMPORT_MILLISECONDS:.0f}",
            own["milliseconds"] < _IMPORT_MILLISECONDS,
        )
    ]


_STUDIES: dict[str, Callable[[Figures, Figures], list[Row]]] = {
    "sustained": _sustained,
    "growth": _growth,
    "footprint": _footprint,
    "absent": _absent,
    "memory": _memory,
    "import": _import,
}


def _compared(
    title: str,
    own: float | None,
    peer: float | None,
    shown: Callable[[float], str],
    *,
    at_least: float | None = None,
    at_most: float | None = None,
) -> Row:
    """A row with a ratio: plyvel's over lsmkv's where that has to be large, else lsmkv's share."""
    left = "-" if own is None else shown(own)
    right = "-" if peer is None else shown(peer)
    bar = f">= {at_least:.2f}" if at_least is not None else f"<= {at_most:.2f}"
    if not own or not peer:
        return Row(title, left, right, "-", bar, None)
    if at_least is not None:
        return Row(title, left, right, times(peer / own), bar, peer / own >= at_least)
    assert at_most is not None
    return Row(title, left, right, f"{own / peer:.3f}", bar, own / peer <= at_most)
