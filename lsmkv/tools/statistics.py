"""``lsmkv stats``: the levels of a store as bars, what its filters save, and its amplification.

A store that is open for reading only knows its tables and their filters.  What Gets and writes
cost is counted by the process that does them.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

import lsmkv
from lsmkv import Stats
from lsmkv.engine.util.text import percent, quoted
from lsmkv.shared.owner import Published, read_owner
from lsmkv.tools.arguments import Stored, is_shard_set, open_to_read, refuse_order
from lsmkv.tools.bars import Bars
from lsmkv.tools.console import guarded, write, write_json
from lsmkv.tools.drawing import Sheet, stdout_console
from lsmkv.tools.filter_figures import (
    FilterFigures,
    TableFilters,
    blocks_of_an_absent_key,
    by_level_and_kind,
)
from lsmkv.tools.hash_check import HashCheck, check_hash
from lsmkv.tools.options import argument, flag
from lsmkv.tools.processes import process_rows, processes_as_dicts
from lsmkv.tools.shard_figures import draw_shards
from lsmkv.tools.shard_sets import open_shards
from lsmkv.tools.text import count, printable, size

_SECONDS = 2.0
_WIDEST = 120
_FEWEST_ASKED = 100  # filters for a rate that says anything


@guarded
def stats(
    directory: Stored,
    seconds: Annotated[
        float | None, argument("SECONDS", "With --watch: how often; 2 by default.", min=0.1)
    ] = None,
    watch: bool = flag("Look again and again, until Ctrl-C (status 130).", "--watch"),
    as_json: bool = flag("All counters, as JSON.", "--json"),
    openmetrics: bool = flag("The counters as text for Prometheus.", "--openmetrics"),
) -> None:
    """Print what is on each level, what the filters save, and the amplification.

    Nothing is written, and no lock is taken: it works while another process writes. What Gets and
    writes cost is counted by the process that does them, in its DB.stats(); if it publishes its
    counters (publish_stats=True), the measured rates are shown next to the expected ones.

    If keys are sequential, up to 2,000 missing numbers are also looked up in LevelDB's filters,
    which reads a few blocks. If far more pass than expected, a warning says what to do.

    Of a shard set: the shards of the newest version, and what a reader of all of them holds in
    memory and has requested. Each shard is opened, which takes one request.

    JSON: every counter of DB.stats(), here of this reading process, before those lookups and
    without the reads of filters that the figures need, five or a few more for each table;
    "filters": each level's by kind ("level", "kind", "number", "size", "expected"); "published":
    the counters of the live process, or null; "processes": if processes share the store, what each
    has done, times in nanoseconds; "hash_check": what sequential keys showed ("asked",
    "false_positives", "expected", "by_level", "rate", "suffers"), or null if keys are not
    sequential or no table has LevelDB's filters. For a shard set: the fields of
    lsmkv.shards.ShardsStats.

    OpenMetrics: the counters and latencies of the live process, if it publishes them; else the
    sizes of the levels alone, and lsmkv_publishing is 0.
    """
    if watch + as_json + openmetrics > 1:
        raise ValueError("give one of --watch, --json and --openmetrics")
    if seconds is not None and not watch:
        raise ValueError("SECONDS is for --watch")
    if is_shard_set(directory):
        if watch:
            raise ValueError("--watch is for stores: a version of a shard set never changes")
        if openmetrics:
            raise ValueError("--openmetrics is for stores: a shard set has no counters")
        _print_shards(directory, as_json)
        return
    if openmetrics:
        write(lsmkv.metrics_text([directory]).encode())
        return
    with open_to_read(directory) as db:
        if as_json:
            look = Look.at(db, FilterFigures(db.path))
            plain = {"path": directory} | look.stats.to_dict()
            plain["filters"] = [asdict(one) for one in by_level_and_kind(look.tables, look.filters)]
            plain["published"] = None if look.live is None else look.live.stats.to_dict()
            processes = () if look.live is None else look.live.processes
            plain["processes"] = processes_as_dicts(processes)
            plain["hash_check"] = _hash_fields(check_hash(db, look.filters))
            write_json(plain, indent=2)
        elif watch:
            _watch(db, _SECONDS if seconds is None else seconds)
        else:
            console = stdout_console()
            look = Look.at(db, FilterFigures(db.path))
            checked, damage = None, None
            try:
                checked = check_hash(db, look.filters)
            except lsmkv.CorruptionError as error:
                damage = error  # which is reported below what could be read
            _print(console, draw(look, console, checked))
            if damage is not None:
                raise damage
            if checked is not None and checked.suffers:
                _print(console, [Text(), *hash_warning(checked)])


def _print_shards(url: str, as_json: bool) -> None:
    refuse_order()
    with open_shards(url) as shards:
        shards.warm()
        if as_json:
            write_json({"path": url} | shards.stats().to_dict(), indent=2)
        else:
            console = stdout_console()
            _print(console, draw_shards(shards, console))


def _hash_fields(checked: HashCheck | None) -> dict[str, Any] | None:
    """The check as JSON; null if no table has LevelDB's filters."""
    if checked is None:
        return None
    return checked._asdict() | {"rate": checked.rate, "suffers": checked.suffers}


def hash_warning(checked: HashCheck) -> list[Text]:
    """Return the warning for keys that suffer from LevelDB's hash, at most 79 columns wide."""
    lines = [
        "LevelDB's hash does not suit these sequential keys: of absent ones in between,",
        f"{checked.expected:.2%} are expected to pass a filter, and {checked.rate:.2%} measured."
        " More bits hardly help.",
        "A hash of 64 bits does: lsmkv compact DIR --filter bloom64, and open the store",
        "with filter_policy=lsmkv.Bloom64Policy(). LevelDB reads such tables unfiltered.",
    ]
    return [Text(line, style="yellow") for line in lines]


def _watch(db: lsmkv.DB, seconds: float) -> None:
    """Draw over what was drawn before, or one after another where stdout is no terminal."""
    console = stdout_console()
    figures = FilterFigures(db.path)
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            lines = draw(Look.at(db, figures), console)
            lines[0].append(f", at {time.strftime('%H:%M:%S')}")
            if console.is_terminal:
                live.update(Group(*lines), refresh=True)
            else:
                _print(console, [*lines, Text()])
            time.sleep(seconds)
            db.refresh()


def _print(console: Console, lines: Sequence[Text]) -> None:
    for line in lines:
        console.print(line, soft_wrap=True)


@dataclass(frozen=True)
class Look:
    """The figures of a store at one moment."""

    path: str
    stats: Stats
    tables: list[lsmkv.TableInfo]
    filters: dict[lsmkv.TableInfo, TableFilters]
    ranges: dict[int, tuple[bytes, bytes]]
    """The first and the last user key of each level that has tables."""
    live: Published | None = None
    """The publication of the process that has the store open, if there is one."""

    @classmethod
    def at(cls, db: lsmkv.DB, figures: FilterFigures) -> Look:
        """The store as it is now."""
        tables = db.tables()
        in_order = functools.cmp_to_key(db.options.comparator.compare)
        ranges: dict[int, tuple[bytes, bytes]] = {}
        for table in tables:
            first, last = ranges.get(table.level, (table.smallest, table.largest))
            ranges[table.level] = (
                min(first, table.smallest, key=in_order),
                max(last, table.largest, key=in_order),
            )
        return cls(db.path, db.stats(), tables, figures.look(tables), ranges, _live(db.path))

    @property
    def size(self) -> int:
        """Bytes of all tables."""
        return sum(table.size for table in self.tables)


def _live(path: str) -> Published | None:
    """Return a live owner's publication; None if there is none, or if it cannot be read."""
    with contextlib.suppress(lsmkv.Error):
        owner = read_owner(path)
        return owner.published if owner.publishes else None
    return None


def draw(look: Look, console: Console, checked: HashCheck | None = None) -> list[Text]:
    """The lines to print, as wide as the console, at most 120 columns."""
    return list(_Drawing(look, console, checked).lines())


class _Drawing(Sheet):
    """Draws what is known, part by part."""

    def __init__(self, look: Look, console: Console, checked: HashCheck | None) -> None:
        super().__init__(console, _WIDEST)
        self._look = look
        self._checked = checked

    def lines(self) -> Iterator[Text]:
        """All parts, with an empty line between them."""
        look = self._look
        tables = count(len(look.tables), "table")
        yield Text(f"{printable(look.path)}: {tables}, {size(look.size)}", style="bold")
        parts = [self._levels(), self._filters(), self._amplification()]
        if look.live is not None and look.live.processes:
            parts.append(self._processes(look.live))
        for part in parts:
            yield Text()
            yield from part

    def _levels(self) -> Iterator[Text]:
        look = self._look
        memtable = look.stats.memtable_bytes
        sizes = {level.level: level.bytes for level in look.stats.levels if level.files}
        bars = Bars(max(memtable, *sizes.values(), 1), self._bar_room, fine=self.fine)
        gap = " " * self._bar_room
        heading = f"{'level':>5}{'tables':>8}{'size':>11}  {gap}  keys"
        yield Text(heading, style="dim")
        if memtable:
            bar = Text(bars.draw(memtable), style="magenta")
            yield self._row("log", "-", size(memtable), bar, "")
        for level, held in sizes.items():
            tables = [table for table in look.tables if table.level == level]
            bar = Text(bars.draw(held), style="cyan")
            keys = self._keys(*look.ranges[level])
            yield self._row(f"{level}", f"{len(tables):,}", size(held), bar, keys)
        yield self._row("all", f"{len(look.tables):,}", size(look.size), Text(), "")

    @property
    def _bar_room(self) -> int:
        return max(8, min(self.width // 6, 24))

    def _row(self, level: str, tables: str, held: str, bar: Text, keys: str) -> Text:
        bar.pad_right(self._bar_room - len(bar))
        line = Text(f"{level:>5}{tables:>8}{held:>11}  ") + bar
        line.append(f"  {keys}", style="dim")
        line.rstrip()
        line.truncate(self.width)
        return line

    def _keys(self, first: bytes, last: bytes) -> str:
        """A range of keys, each of them cut to the room that there is."""
        room = (self.width - self._bar_room - 28 - 4) // 2 - 3
        dots = "…" if self.fine else "..."
        return " .. ".join(_cut(key, max(4, room - len(dots)), dots) for key in (first, last))

    def _filters(self) -> Iterator[Text]:
        look = self._look
        rows = by_level_and_kind(look.tables, look.filters)
        if rows:
            held = sum(one.size for one in rows)
            share = f"{held / look.size:.1%} of the tables"
            yield Text(f"filters  {size(held)} with their offsets: {share}")
            yield Text(
                self._filter_row("level", "kind", "number", "size", "expected", "measured"), "dim"
            )
            kinds = Counter(one.level for one in rows)
            measured, source = self._measured()
            for one in rows:
                rate = measured.get(one.level) if kinds[one.level] == 1 else None
                yield Text(
                    self._filter_row(
                        f"{one.level}",
                        one.kind,
                        f"{one.number:,}",
                        size(one.size),
                        percent(one.expected),
                        percent(rate),
                    )
                )
            for level in sorted(set(measured) & {level for level in kinds if kinds[level] > 1}):
                yield Text(
                    self._filter_row(f"{level}", "all", "", "", "", percent(measured[level]))
                )
            yield Text("expected  absent keys that pass, by the bits of the filters", "dim")
            yield Text(f"measured  {source}", "dim")
        else:
            yield Text("filters  none")
        if look.tables:
            yield Text()
            yield Text(
                "Data blocks that a Get of an absent key in each level's range should search:"
            )
            yield from self._saving()

    def _filter_row(
        self, level: str, kind: str, number: str, held: str, expected: str, measured: str
    ) -> str:
        room = max(6, self.width - 50)
        shown = printable(kind)
        shown = shown if len(shown) <= room else f"{shown[: room - 3]}..."
        return (
            f"{level:>5}  {shown:{min(room, 20)}}{number:>8}{held:>12}{expected:>10}{measured:>10}"
        )

    def _measured(self) -> tuple[dict[int, float], str]:
        """The measured rates, by level, and a description of who measured them."""
        live = self._look.live
        if live is not None:
            found = {
                level.level: level.measured_rate
                for level in live.stats.levels
                if level.measured_rate is not None
            }
            asked = live.stats.filter_negatives + live.stats.filter_false_positives
            source = (
                f"by {count(asked, 'filter')} that process {live.pid} has asked for absent keys"
            )
            return found, source
        checked = self._checked
        if checked is not None and checked.asked >= _FEWEST_ASKED:
            return checked.by_level, (
                f"of {checked.asked:,} absent numbers between neighboring keys, asked now"
            )
        return {}, "by the process that reads: DB(..., publish_stats=True) shows it here"

    def _saving(self) -> Iterator[Text]:
        """Draw the expected cost of a Get of an absent key."""
        without, searched = blocks_of_an_absent_key(self._look.tables, self._look.filters)
        bars = Bars(without, max(8, min(self.width - 30, 50)), fine=self.fine)
        for name, figure, style in (
            ("without filters", without, "yellow"),
            ("with filters", searched, "green"),
        ):
            digits = 3 if figure >= 0.01 or not figure else 4 if figure >= 0.001 else 6
            shown = f"{figure:.{digits}f}"
            yield Text(f"  {name:15}{shown:>9}  ").append(bars.draw(figure), style=style)

    def _amplification(self) -> Iterator[Text]:
        levels = [level for level in self._look.stats.levels if level.files]
        asked = sum(level.files if level.level == 0 else 1 for level in levels)
        yield Text(f"read amplification   at most {count(asked, 'table')} to ask for a key")
        largest = max((level.bytes for level in levels if level.level > 0), default=0)
        known = "not known before a compaction"
        if largest:  # its keys are all different, so a scan would return about as much or more
            known = f"at most about {self._look.size / largest:.2f}, if no key is deleted"
        yield Text(f"space amplification  {known}")
        yield Text(f"write amplification  {self._write_amplification()}")
        if self._look.tables:
            filters = self._look.filters
            codecs = Counter(filters[one].codec or "unknown" for one in self._look.tables)
            held = ", ".join(f"{name} {number:,}" for name, number in codecs.most_common())
            new = self._look.stats.compression
            yield Text(f"compression          of tables: {held}; of new ones: {new}")
        live = self._look.live
        if live is not None:  # another writer, LevelDB for one, may do it in another way
            log = "mapped into memory" if live.stats.mapped_log else "written to"
            yield Text(f"write-ahead log      {log} by process {live.pid}")

    def _write_amplification(self) -> str:
        live = self._look.live
        if live is None:
            return "counted by the process that writes: its db.stats()"
        if not live.stats.user_bytes:
            return f"process {live.pid} has written nothing yet"
        return f"{live.stats.write_amplification:.2f}, by process {live.pid}"

    def _processes(self, live: Published) -> Iterator[Text]:
        """List the work of each process of a shared store."""
        yield Text(f"processes  in epoch {live.epoch:,}, since this owner opened the store")
        heading = ("pid", "role", "gets", "writes", "p50", "p99", "max", "no owner")
        yield Text(self._process_row(*heading), "dim")
        for one in process_rows(live.processes, live.stats.writes):
            yield Text(
                self._process_row(
                    *(one.name, one.role, f"{one.gets:,}", f"{one.writes:,}"),
                    *(one.percentile(percent) for percent in (50, 99, 100)),
                    one.longest_without_owner,
                )
            )
        whole = (f"{live.stats.gets:,}", f"{live.stats.writes:,}")
        yield Text(self._process_row("all", "", *whole, "", "", "", ""))
        yield Text("p50, p99, max  of a member's writes, waiting for the owner included", "dim")
        yield Text("no owner       the longest time without one, before this one", "dim")

    def _process_row(self, *cells: str) -> str:
        name, role, gets, writes, *times = cells
        shown = f"{name:>8}  {role:6}{gets:>15}{writes:>13}"
        return (shown + "".join(f"{one:>8}" for one in times[:3]) + f"{times[3]:>10}").rstrip()


def _cut(key: bytes, longest: int, dots: str) -> str:
    """A key in quotes, cut to a number of characters."""
    text = quoted(key, longest)
    end = text.rfind("'") + 1
    return text if end == len(text) else text[:end] + dots
