"""The panels of ``lsmkv top``: what each shows of a store that is watched.

A panel is a function of the watch and of its own size, which returns lines of styled text.  Words
and figures say everything; colours only repeat it.  Styles are names of the theme, so that light
and dark both fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import zip_longest

from textual.content import Content

from lsmkv.db.observe.published import Published
from lsmkv.db.observe.trace import OPERATIONS
from lsmkv.tools.text import duration, size
from lsmkv.tools.top.drawing import bar, chart
from lsmkv.tools.top.watch import Watch, Window

Panel = Callable[[Watch, int, int], Content]
"""Draws in so many columns and lines."""

GOOD, BAD, DIM, HEAD, LINE = "$text-success", "$text-error bold", "dim", "bold", "$accent"

PERCENTILES = (50, 90, 99, 100)

_HIGH_RATE = 0.05
"""A rate of false positives that is five times that of the default, 10 bits a key."""


def operations(watch: Watch, width: int, height: int) -> Content:
    """Each kind of operation: how many a second, how long they take, and how that went."""
    last, recent = watch.last, watch.recent
    if last is None or recent is None:
        return Content("")
    shown = _fitting_percentiles(width - 18)
    titles = ["max" if percent == 100 else f"p{percent}" for percent in shown]
    heading = f"{'':<8}{'a second':>10}" + "".join(f"{title:>8}" for title in titles)
    room = max(0, width - len(heading) - 2)
    lines: list[Content] = [Content.styled(heading, DIM)]
    for operation in OPERATIONS:
        latencies = recent.latencies[operation]
        seen = latencies.count > 0
        figures = f"{_rate(last.rate(last.operations(operation))):>10}"
        for percent in shown:
            taken = duration(latencies.percentile(percent)) if seen else "-"
            figures += f"{taken:>8}"
        (line,) = chart(watch.rates.get(operation, ()), room, 1)
        lines.append(
            Content.assemble(
                (f"{operation:<8}", HEAD if seen else DIM),
                (figures, "" if seen else DIM),
                (f"  {line}", LINE),
            )
        )
    return _joined(lines)


def _fitting_percentiles(width: int) -> list[int]:
    """Those that fit into so many columns: the middle goes last, as it says most."""
    shown = list(PERCENTILES)
    for least in (90, 100, 99):
        if 8 * len(shown) > width:
            shown.remove(least)
    return shown


def caches(watch: Watch, width: int, height: int) -> Content:
    """Where Gets were answered, and where blocks were found."""
    recent, published = watch.recent, watch.published
    if recent is None or published is None:
        return Content("")
    stats = recent.stats
    blocks = stats.block_cache_hits + stats.blocks_read
    used, room = size(stats.block_cache_bytes), size(published.block_cache_capacity)
    wide = len(f"cached {used} of {room}") <= width
    return _pairs(
        width,
        [
            ("block cache", _share(stats.block_cache_hits, blocks), GOOD),
            ("row cache", _share(stats.gets_from_rows, stats.gets), GOOD),
            ("memtables", _share(stats.gets_from_memory, stats.gets), ""),
            ("gets found", _share(stats.gets_found, stats.gets), ""),
            ("cached", f"{used} of {room}" if wide else used, ""),
        ],
    )


def filters(watch: Watch, width: int, height: int) -> Content:
    """What filters were asked, and what that saved."""
    recent = watch.recent
    if recent is None:
        return Content("")
    stats = recent.stats
    absent = stats.filter_negatives + stats.filter_false_positives
    is_high = stats.filter_false_positives > _HIGH_RATE * absent
    return _pairs(
        width,
        [
            ("asked", _each_second(recent, stats.filters_asked), ""),
            ("blocks saved", _each_second(recent, stats.filter_negatives), GOOD),
            ("said no", _share(stats.filter_negatives, stats.filters_asked), ""),
            (
                "false positives",
                _share(stats.filter_false_positives, absent, 2),
                BAD if is_high else "",
            ),
            ("blocks read", _each_second(recent, stats.blocks_read), ""),
        ],
    )


def writes(watch: Watch, width: int, height: int) -> Content:
    """Bytes that were written, by the user and by the engine."""
    recent, published = watch.recent, watch.published
    if recent is None or published is None:
        return Content("")
    stats = recent.stats
    return _pairs(
        width,
        [
            ("user", _bytes(recent, stats.user_bytes), ""),
            ("log", _bytes(recent, stats.log_bytes), ""),
            ("flushed", _bytes(recent, stats.flush_bytes), ""),
            ("compacted", _bytes(recent, stats.compaction_bytes_written), ""),
            ("amplification", f"{published.stats.write_amplification:.2f}", ""),
        ],
    )


def background(watch: Watch, width: int, height: int) -> Content:
    """Compaction and flush under way, and what writers wait for."""
    recent, published = watch.recent, watch.published
    if recent is None or published is None:
        return Content("")
    stats = recent.stats
    memory, room = size(published.stats.memtable_bytes), size(published.write_buffer_size)
    flushing = ", one is flushed" if published.flushing else f" of {room}"
    lines = [
        *_compaction(published, width),
        _pair(width, "memtables", f"{memory}{flushing}", ""),
        _stalls(recent, published, width),
        _pair(width, "slowdowns", _each_second(recent, stats.slowdowns), ""),
    ]
    return _joined(lines)


def _compaction(published: Published, width: int) -> list[Content]:
    compaction = published.compaction
    if compaction is None:
        done = published.stats.compactions
        return [_pair(width, "compaction", f"none now, {done:,} before" if done else "none", "")]
    share = compaction.bytes_read / compaction.bytes if compaction.bytes else 0.0
    levels = f"{compaction.level} to {compaction.level + 1}"
    files = f"{compaction.files} + {compaction.next_files} tables, {size(compaction.bytes)}"
    if len(levels) + len(files) + len("  level  ") <= width:
        levels = f"level {levels}"
    percent = f"{share:>5.0%}"
    room = max(4, width - len("compaction  ") - len(percent))
    return [
        Content.assemble("compaction  ", (bar(share, room), LINE), percent),
        _pair(width, f"  {levels}", files, DIM),
    ]


def _stalls(recent: Window, published: Published, width: int) -> Content:
    if published.stalled_seconds > 0:
        return _pair(width, "stalls", f"waiting for {published.stalled_seconds:.1f} s now", BAD)
    stats = recent.stats
    if stats.stalls == 0:
        return _pair(width, "stalls", "none", "")
    share = min(1.0, stats.stall_seconds / recent.seconds)
    return _pair(width, "stalls", f"{stats.stalls:,}, {share:.0%} of the time", BAD)


def levels(watch: Watch, width: int, height: int) -> Content:
    """Tables and bytes of each level, and the blocks that were read there."""
    recent = watch.recent
    if recent is None:
        return Content("")
    stats = recent.stats
    held = [level for level in stats.levels if level.files or level.blocks_read]
    most = max((level.bytes for level in held), default=0)
    heading = f"{'level':<5}{'tables':>8}{'size':>11}"
    shows_reads = width >= 38
    if shows_reads:
        heading += f"{'read/s':>8}"
    room = width - len(heading) - 1
    lines: list[Content] = [Content.styled(heading, DIM)]
    for level in held:
        figures = f"{level.level:<5}{level.files:>8,}{size(level.bytes):>11}"
        if shows_reads:
            figures += f"{_rate(recent.rate(level.blocks_read)):>8}"
        share = level.bytes / most if most else 0.0
        drawn = bar(share, room) if room >= 3 else ""
        lines.append(Content.assemble(figures, " ", (drawn, LINE)))
    if not held:
        lines.append(Content.styled("no tables yet", DIM))
    return _joined(lines)


def throughput(watch: Watch, width: int, height: int) -> Content:
    """All operations a second, over the last minutes."""
    totals = [sum(rates) for rates in zip_longest(*watch.rates.values(), fillvalue=0.0)]
    return _chart(totals, width, height, _rate)


def get_latency(watch: Watch, width: int, height: int) -> Content:
    """The 99th percentile of the Gets, over the last minutes."""
    return _chart(list(watch.p99), width, height, duration)


def _chart(values: list[float], width: int, height: int, shown: Callable[[float], str]) -> Content:
    most = max(values[-width:], default=0.0)
    lines = [Content.styled(f"up to {shown(most)}" if most else "nothing yet", DIM)]
    lines += [Content.styled(line, LINE) for line in chart(values, width, max(0, height - 1))]
    return _joined(lines)


# Parts of panels


def _pairs(width: int, pairs: Iterable[tuple[str, str, str]]) -> Content:
    return _joined([_pair(width, name, figure, style) for name, figure, style in pairs])


def _pair(width: int, name: str, figure: str, style: str) -> Content:
    """A name at the left and its figure at the right; a figure of nothing has no colour."""
    gap = max(1, width - len(name) - len(figure))
    plain = figure in ("-", "0", "0.0%", "0.00%", "none")
    return Content.assemble(name, " " * gap, (figure, DIM if plain else style))


def _joined(lines: Iterable[Content]) -> Content:
    return Content("\n").join(list(lines))


def _share(part: int, whole: int, digits: int = 1) -> str:
    return f"{part / whole:.{digits}%}" if whole else "-"


def _each_second(window: Window, number: int) -> str:
    rate = _rate(window.rate(number))
    return rate if rate in ("-", "0") else f"{rate}/s"


def _bytes(window: Window, number: int) -> str:
    return f"{size(window.rate(number))}/s" if number else "-"


def _rate(number: float) -> str:
    """Of what there is less than ten a second, a tenth counts."""
    if number == 0:
        return "0"
    return f"{number:,.0f}" if number >= 9.95 else f"{number:.1f}"
