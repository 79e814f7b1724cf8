"""Who is ahead in what was measured, and the targets: which lsmkv has reached, and which not.

docs/performance.md says who is ahead.  The targets are for those who work on lsmkv, and stand in
CONTRIBUTING.md, misses like everything else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from lsmkv.tools.bench.engines import OWN
from lsmkv.tools.bench.report import micros, ratio, times
from lsmkv.tools.text import size

PEER = "plyvel"
_WRITES = ("fillseq", "fillbatch", "fillrandom", "overwrite", "fillsync", "deleterandom")
READS = (
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
    "scandeleted": 0.85,
    "queue": 0.85,
    "readwhilewriting": 1.2,
    "compact": 1.5,
    "open": 1.0,
    "openlog": 1.0,
    "openkilled": 1.0,
}
"""plyvel's time over lsmkv's, at least."""

PURE: dict[str, float] = dict.fromkeys(_WRITES, 0.4) | dict.fromkeys(READS, 0.2)

_LARGER_ON_DISK = 1.02
_MORE_WRITTEN = 1.05
_MORE_MEMORY = 1.5
_SUSTAINED = 1.5
_UNCACHED = 1.2
_SLOWEST_THOUSANDTH = 300.0
_IMPORT_MILLISECONDS = 35.0


class Row(NamedTuple):
    """One thing that was measured, and the target for it."""

    title: str
    own: str
    peer: str
    ratio: str
    ahead: str
    """The engine that did better: in brackets if another round went the other way, empty if there
    is nothing to compare with."""
    target: str
    """Empty if there is none."""
    measured: str
    """What is compared with the target."""
    reached: bool | None
    """None where there is no target, or nothing to compare with."""


def workload_rows(results: dict[str, Any], targets: dict[str, float]) -> list[Row]:
    """The workloads of one run against plyvel."""
    rows = []
    for name, workload in results["workloads"].items():
        own, peer = workload["engines"][OWN], workload["engines"].get(PEER, {})
        target = targets.get(name)
        spread = peer.get("ratio")
        rows.append(
            Row(
                name,
                micros(own["micros"]["median"]),
                micros(peer["micros"]["median"]) if "micros" in peer else "-",
                "-" if spread is None else ratio(spread),
                "" if spread is None else ahead_by_ratio(**spread),
                "" if target is None else f">= {target:.2f}",
                "-" if spread is None else times(spread["median"]),
                None if target is None or spread is None else spread["median"] >= target,
            )
        )
    return rows


def ahead_by_ratio(median: float, low: float, high: float) -> str:
    """Who is ahead, by plyvel's time over lsmkv's.

    >>> ahead_by_ratio(2.0, 1.2, 3.0), ahead_by_ratio(0.7, 0.7, 2.9), ahead_by_ratio(1.0, 0.9, 2.0)
    ('lsmkv', '(plyvel)', 'even')
    """
    if median == 1:
        return "even"
    first = OWN if median > 1 else PEER
    return first if low > 1 or high < 1 else f"({first})"


def ahead_by_less(own: float | None, peer: float | None) -> str:
    """Who is ahead where less is better."""
    if own is None or peer is None:
        return ""
    return "even" if own == peer else OWN if own < peer else PEER


def study_rows(studies: dict[str, Any]) -> list[Row]:
    """The studies that were made, by name, each as one or more rows."""
    rows: list[Row] = []
    for name, rows_of in _STUDIES.items():
        by_engine = studies.get(name)
        if by_engine is not None:
            rows += rows_of(by_engine[OWN], by_engine.get(PEER, {"skipped": ""}))
    return rows


def target_table(runs: dict[str, list[Row]]) -> list[str]:
    """The rows of some runs that have a target, in a table with a column for each run; a ratio that
    misses its target is bold.

    >>> row = Row("open", "2.0", "1.0", "0.50 (0.5-0.5)", "plyvel", ">= 1.00", "0.50", False)
    >>> target_table({"200 entries": [row], "1 thread": []})[2:]
    ['| open | >= 1.00 | **0.50** | - |']
    """
    titles = list(dict.fromkeys(row.title for rows in runs.values() for row in rows if row.target))
    lines = [_line(["what", "target", *runs]), _line(["---", "--:", *["--:"] * len(runs)])]
    for title in titles:
        cells = []
        target = ""
        for rows in runs.values():
            row = next((row for row in rows if row.title == title and row.target), None)
            target = target if row is None else row.target
            cells.append("-" if row is None else _judged(row))
        lines.append(_line([title, target, *cells]))
    return lines


def _judged(row: Row) -> str:
    return f"**{row.measured}**" if row.reached is False else row.measured


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


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
            ahead_by_less(slowest, None if theirs is None else theirs["histogram"]["p999"]),
            f"<= {_SLOWEST_THOUSANDTH:,.0f}",
            micros(slowest),
            slowest <= _SLOWEST_THOUSANDTH,
        ),
        Row(
            f"{what}, how many over 50 ms",
            str(own["over_50_ms"]),
            "-" if theirs is None else str(theirs["over_50_ms"]),
            "",
            ahead_by_less(own["over_50_ms"], None if theirs is None else theirs["over_50_ms"]),
            "0",
            str(own["over_50_ms"]),
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
            ahead_by_less(ours, theirs),
            "<= plyvel's",
            times(ours),
            None if theirs is None else ours <= theirs,
        )
    ]


def _growth_of(figures: Figures) -> float:
    points = figures["points"]
    return float(points[-1]["micros_per_get"] / points[0]["micros_per_get"])


def _incompressible(own: Figures, peer: Figures) -> list[Row]:
    what = f"{own['entries']:,} entries that do not compress, in the system's cache"
    return [
        _compared(
            f"a Get among {what}, microseconds",
            own["micros_per_get"],
            peer.get("micros_per_get"),
            micros,
            at_least=_UNCACHED,
        ),
        _compared(
            "memory of the process then",
            own["resident_bytes"],
            peer.get("resident_bytes"),
            size,
            at_most=1.0,
        ),
    ]


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
            ahead_by_less(written, theirs),
            "0",
            "-" if written is None else f"{written:,}",
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
            ahead_by_less(own["milliseconds"], theirs),
            f"< {_IMPORT_MILLISECONDS:.0f}",
            f"{own['milliseconds']:.1f}",
            own["milliseconds"] < _IMPORT_MILLISECONDS,
        )
    ]


_STUDIES: dict[str, Callable[[Figures, Figures], list[Row]]] = {
    "sustained": _sustained,
    "growth": _growth,
    "incompressible": _incompressible,
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
    target = f">= {at_least:.2f}" if at_least is not None else f"<= {at_most:.2f}"
    if not own or not peer:
        return Row(title, left, right, "-", "", target, "-", None)
    ahead = ahead_by_less(own, peer)
    if at_least is not None:
        measured, reached = times(peer / own), peer / own >= at_least
    else:
        assert at_most is not None
        measured, reached = f"{own / peer:.3f}", own / peer <= at_most
    return Row(title, left, right, measured, ahead, target, measured, reached)
