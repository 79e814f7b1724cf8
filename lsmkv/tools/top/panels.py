"""The panels of ``lsmkv top``: how each draws its figures of a store that is watched.

A panel is a function of the watch and of its own size, which returns lines of styled text.  The
figures are those of ``figures.py``; words and figures say everything, colors only repeat it.
Styles are names of the theme, so that light and dark both fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from textual.content import Content

from lsmkv.shared.owner import Published
from lsmkv.tools.text import duration
from lsmkv.tools.top import figures
from lsmkv.tools.top.drawing import bar, chart
from lsmkv.tools.top.figures import PERCENTILES, Figure
from lsmkv.tools.top.watch import Watch

Panel = Callable[[Watch, int, int], Content]
"""Draws in a number of columns and lines."""

GOOD, BAD, DIM, HEAD, LINE = "$text-success", "$text-error bold", "dim", "bold", "$accent"

_STYLES: dict[figures.Tone, str] = {"": "", "good": GOOD, "bad": BAD}


def operations(watch: Watch, width: int, height: int) -> Content:
    """Each kind of operation: its rate, its latencies, and their course."""
    found = figures.operations(watch)
    if not found:
        return Content("")
    shown = _fitting_percentiles(width - 18)
    titles = ["max" if percent == 100 else f"p{percent}" for percent in shown]
    heading = f"{'':<8}{'a second':>10}" + "".join(f"{title:>8}" for title in titles)
    room = max(0, width - len(heading) - 2)
    lines: list[Content] = [Content.styled(heading, DIM)]
    for one in found:
        message = f"{one.each_second:>10}"
        for percent, taken in zip(PERCENTILES, one.percentiles, strict=True):
            message += f"{taken:>8}" if percent in shown else ""
        (line,) = chart(watch.rates.get(one.name, ()), room, 1)
        lines.append(
            Content.assemble(
                (f"{one.name:<8}", HEAD if one.seen else DIM),
                (message, "" if one.seen else DIM),
                (f"  {line}", LINE),
            )
        )
    return _joined(lines)


def _fitting_percentiles(width: int) -> list[int]:
    """Those that fit into this many columns: the middle is dropped last, as it says most."""
    shown = list(PERCENTILES)
    for least in (90, 100, 99):
        if 8 * len(shown) > width:
            shown.remove(least)
    return shown


def processes(watch: Watch, width: int, height: int) -> Content:
    """The processes of a shared store, as many as there is room for."""
    found = figures.processes(watch)
    shown = _fitting_percentiles(width - 46)
    titles = ["max" if percent == 100 else f"p{percent}" for percent in shown]
    heading = f"{'pid':>8} {'role':8}{'gets/s':>9}{'writes/s':>9}"
    heading += "".join(f"{title:>8}" for title in titles) + f"{'no owner':>10}"
    lines: list[Content] = [Content.styled(heading, DIM)]
    room = max(1, height - 1)
    for one in found if len(found) <= room else found[: room - 1]:
        line = f"{one.name:>8} {one.role:8}{one.gets:>9}{one.writes:>9}"
        for percent, taken in zip(PERCENTILES, one.percentiles, strict=True):
            line += f"{taken:>8}" if percent in shown else ""
        idle = one.gets == one.writes == "0"
        lines.append(Content.styled(f"{line}{one.without_owner:>10}", DIM if idle else ""))
    if len(found) > room:
        lines.append(Content.styled(f"and {len(found) - room + 1:,} more", DIM))
    return _joined(lines)


def leases(watch: Watch, width: int, height: int) -> Content:
    """Named leases, their holders and waiters, as many as there is room for."""
    found = figures.leases(watch)
    pids = min(20, max(3, (width - 2) // 3))
    name = max(3, width - 2 * pids - 2)
    heading = figures.LeaseFigures("lease", "held by", "waits")
    lines = [Content.styled(_lease(heading, name, pids), DIM)]
    room = max(1, height - 1)
    for one in found if len(found) <= room else found[: room - 1]:
        line = _lease(one, name, pids)
        lines.append(Content.styled(line, DIM if one.waiters == "-" else ""))
    if len(found) > room:
        lines.append(Content.styled(f"and {len(found) - room + 1:,} more", DIM))
    return _joined(lines)


def _lease(one: figures.LeaseFigures, name: int, pids: int) -> str:
    held, waits = _cut(one.holders, pids), _cut(one.waiters, pids)
    return f"{_cut(one.name, name):{name}} {held:>{pids}} {waits:>{pids}}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."


def caches(watch: Watch, width: int, height: int) -> Content:
    """The sources of Gets' answers, and the hit rates of the caches."""
    return _pairs(width, figures.caches(watch))


def filters(watch: Watch, width: int, height: int) -> Content:
    """The filters asked, and the block reads that they saved."""
    return _pairs(width, figures.filters(watch))


def writes(watch: Watch, width: int, height: int) -> Content:
    """Bytes that were written, by the user and by the engine."""
    return _pairs(width, figures.writes(watch))


def background(watch: Watch, width: int, height: int) -> Content:
    """Compaction and flush under way, and the waits of writers."""
    published = watch.published
    if published is None:
        return Content("")
    lines = [*_compaction(published, width), _pairs(width, figures.background(watch))]
    return _joined(lines)


def _compaction(published: Published, width: int) -> list[Content]:
    under_way = figures.compaction(published)
    if under_way is None:
        return [_pair(width, Figure("compaction", figures.no_compaction(published)))]
    levels = under_way.levels
    if len(levels) + len(under_way.tables) + len("  level  ") <= width:
        levels = f"level {levels}"
    percent = f"{under_way.share:>5.0%}"
    room = max(4, width - len("compaction  ") - len(percent))
    return [
        Content.assemble("compaction  ", (bar(under_way.share, room), LINE), percent),
        _pair(width, Figure(f"  {levels}", under_way.tables), DIM),
    ]


def levels(watch: Watch, width: int, height: int) -> Content:
    """Tables and bytes of each level, and the blocks that were read there."""
    if watch.recent is None:
        return Content("")
    heading = f"{'level':<5}{'tables':>8}{'size':>11}"
    shows_reads = width >= 38
    if shows_reads:
        heading += f"{'read/s':>8}"
    room = width - len(heading) - 1
    lines: list[Content] = [Content.styled(heading, DIM)]
    for level in figures.levels(watch):
        line = f"{level.level:<5}{level.tables:>8}{level.size:>11}"
        if shows_reads:
            line += f"{level.read_each_second:>8}"
        drawn = bar(level.share, room) if room >= 3 else ""
        lines.append(Content.assemble(line, " ", (drawn, LINE)))
    if len(lines) == 1:
        lines.append(Content.styled("no tables yet", DIM))
    return _joined(lines)


def throughput(watch: Watch, width: int, height: int) -> Content:
    """All operations a second, over the last minutes."""
    return _chart(figures.totals(watch), width, height, figures.rate)


def get_latency(watch: Watch, width: int, height: int) -> Content:
    """The 99th percentile of the Gets, over the last minutes."""
    return _chart(list(watch.p99), width, height, duration)


def _chart(values: list[float], width: int, height: int, shown: Callable[[float], str]) -> Content:
    most = max(values[-width:], default=0.0)
    lines = [Content.styled(f"up to {shown(most)}" if most else "nothing yet", DIM)]
    lines += [Content.styled(line, LINE) for line in chart(values, width, max(0, height - 1))]
    return _joined(lines)


# Parts of panels


def _pairs(width: int, shown: Iterable[Figure]) -> Content:
    return _joined([_pair(width, one, _STYLES[one.tone]) for one in shown])


def _pair(width: int, shown: Figure, style: str = "") -> Content:
    """A name at the left and its figure at the right; a figure of nothing has no color."""
    text = shown.text
    if shown.short and len(shown.name) + len(text) >= width:
        text = shown.short
    gap = max(1, width - len(shown.name) - len(text))
    plain = text in ("-", "0", "0.0%", "0.00%", "none")
    return Content.assemble(shown.name, " " * gap, (text, DIM if plain else style))


def _joined(lines: Iterable[Content]) -> Content:
    return Content("\n").join(list(lines))
