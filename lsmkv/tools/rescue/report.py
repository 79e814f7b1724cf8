"""Output of ``lsmkv rescue``: the stores, what each way keeps, and how to put the result back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lsmkv.files.repair import Rescue, Way
from lsmkv.tools.console import stdout_is_terminal, write_line
from lsmkv.tools.rescue.finding import Found
from lsmkv.tools.rescue.owners import Owner
from lsmkv.tools.text import as_argument, count, printable, size, wrap

_WIDEST = 100
_PLAIN = 80
_KEPT = {
    "as-is": "and nothing is damaged",
    "by-level": "each the newest that the files show",
    "keep-stale": "of which some may be out of date",
    "by-sequence": "of which some may be out of date, or deleted",
}


@dataclass
class Outcome:
    """A store that was found, and what was made of it."""

    found: Found
    owner: Owner
    rescue: Rescue | None = None
    problem: str = ""
    """The reason for which nothing was made of it, if it is not sound."""
    made: str | None = None
    """The path of the sound store."""
    remarks: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """As plain data for JSON."""
        rescue = self.rescue
        return {
            "path": self.found.path,
            "in_zip": self.found.inner if self.found.archive is not None else None,
            "owner": self.owner.words,
            "program": self.owner.program,
            "comparator": (rescue.comparator if rescue else self.owner.comparator) or None,
            "sound": rescue is not None and rescue.sound,
            "ways": [way.to_dict() for way in rescue.ways] if rescue else [],
            "recommended": rescue.recommended if rescue else None,
            "made_by": rescue.made if rescue else None,
            "made": self.made,
            "put_back": [" ".join(pieces) for pieces in commands([self])],
            "problem": self.problem or None,
            "remarks": self.remarks,
        }


class Printer:
    """Prints outcomes, in lines of the terminal's width."""

    def __init__(self) -> None:
        columns = shutil.get_terminal_size().columns if stdout_is_terminal() else _PLAIN
        self._width = min(columns, _WIDEST)

    def write(self, outcome: Outcome) -> None:
        """Print one store: its owner, what each way keeps, and which to take."""
        found = outcome.found
        inner = f": {found.inner or 'its top'}" if found.archive is not None else ""
        write_line(printable(f"{found.path}{inner}"))
        rescue = outcome.rescue
        order = rescue.comparator if rescue is not None else ""
        self._paragraph(f"{outcome.owner.words}{f'; keys in the order {order}' * bool(order)}.", 2)
        for remark in outcome.remarks:
            self._paragraph(f"{remark}.", 2)
        if rescue is None:
            self._paragraph(f"Nothing was made: {outcome.problem}.", 2)
        elif rescue.sound and outcome.made is None:
            kept = count(rescue.ways[0].entries, "entry")
            self._paragraph(f"It is sound: all of it was checked, and {kept} can be read.", 2)
        else:
            self._write_ways(rescue)
            self._paragraph(" ".join(_advice(rescue)), 2)
            if outcome.made is not None:
                by = "" if rescue.made == rescue.recommended else f" ({rescue.made}, as asked)"
                write_line(f"  Made{by}: {printable(outcome.made)}")
            else:
                self._paragraph(f"Nothing was made: {outcome.problem}.", 2)
        write_line("")

    def write_next(self, outcomes: list[Outcome]) -> None:
        """Print how to put the results back, and what not to do before that."""
        made = [outcome for outcome in outcomes if outcome.made is not None]
        if not made:
            return
        owners = list({outcome.owner.program: outcome.owner for outcome in made}.values())
        names = [owner.program for owner in owners]
        closed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        write_line("How to put the result back")
        self._paragraph(f"1. Close {closed}, and leave it closed until all is done.", 2)
        self._paragraph("2. Move what is damaged aside, and copy what is sound into its place:", 2)
        for pieces in commands(made):
            self._command(pieces, 5)
        self._paragraph("3. Keep what is damaged until you have seen that nothing is missing.", 2)
        write_line("")
        write_line("What not to do before that")
        for owner in owners:
            self._paragraph(f"- Do not start {owner.program}: {owner.danger}.", 2)
        self._paragraph(
            "- Do not run LevelDB's repair_db, or any cleaner, on the original: they change it.", 2
        )
        write_line("")
        self._paragraph("The original was only read. Nothing in it was changed.", 0)

    def _write_ways(self, rescue: Rescue) -> None:
        rows = [("way", "entries", "set aside", "lost", "compared with by-level")]
        rows += [_row(way) for way in rescue.ways]
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        write_line("")
        for name, entries, aside, lost, compared in rows:
            mark = ">" if name == rescue.recommended else " "
            start = f"{mark} {name:<{widths[0]}}  {entries:>{widths[1]}}  {aside:>{widths[2]}}"
            start += f"  {lost:>{widths[3]}}  "
            lines = wrap(printable(compared), max(20, self._width - len(start))) or [""]
            write_line((start + lines[0]).rstrip())
            for line in lines[1:]:
                write_line(" " * len(start) + line)
        write_line("")

    def _command(self, pieces: list[str], indent: int) -> None:
        """Print a command; if it is too long for a line, each of its paths has its own."""
        whole = printable(" ".join(pieces))
        if indent + len(whole) <= self._width:
            write_line(" " * indent + whole)
            return
        goes_on = " ^" if os.name == "nt" else " \\"
        for at, piece in enumerate(pieces):
            end = goes_on if at + 1 < len(pieces) else ""
            write_line(f"{' ' * (indent + 4 * bool(at))}{printable(piece)}{end}")

    def _paragraph(self, text: str, indent: int) -> None:
        hanging = indent + (2 if text.startswith("- ") else 3 if text[1:3] == ". " else 0)
        start = " " * indent
        for line in wrap(printable(f"{text[:1].upper()}{text[1:]}"), self._width - hanging):
            write_line(start + line)
            start = " " * hanging


def _row(way: Way) -> tuple[str, str, str, str, str]:
    entries = f"{way.entries:,}"
    if not way.works:
        return way.name, entries, "", "", f"damaged: {way.problem}"
    lost = size(way.lost_bytes) if way.lost_bytes else "0 B"
    compared = ""
    if way.name not in ("as-is", "by-level"):
        kinds = [(way.more, "more"), (way.fewer, "fewer"), (way.other, "with another value")]
        parts = [f"{count(number, 'key')} {words}" for number, words in kinds if number]
        compared = ", ".join(parts) or "the same"
    return way.name, entries, f"{way.set_aside:,}", lost, compared


def _advice(rescue: Rescue) -> Iterator[str]:
    """Three sentences: what to take, what it lacks, what another way has."""
    best = None if rescue.recommended is None else rescue.way(rescue.recommended)
    if best is None:
        yield "No way makes a sound store of it. Keep the folder: a later version may read more."
        return
    yield f"Take {best.name}: it keeps {count(best.entries, 'entry')}, {_KEPT[best.name]}."
    lacks = list(best.remarks)
    if best.set_aside:
        lacks.append(f"{count(best.set_aside, 'entry')} that may be out of date are set aside")
    if best.lost_bytes:
        lacks.append(f"{size(best.lost_bytes)} of tables cannot be read or are missing")
    text = "; ".join(lacks) or "nothing is lost, and nothing is set aside"
    yield f"{text[0].upper()}{text[1:]}."
    more = [way for way in rescue.ways if way.works and way.entries > best.entries]
    if not more:
        yield "No other way keeps more."
        return
    most = max(more, key=lambda way: way.entries)
    further = count(most.entries - best.entries, "entry")
    yield f"With --way {most.name} there are {further} more, which may be out of date or deleted."


def commands(outcomes: list[Outcome]) -> list[list[str]]:
    """The commands that put sound stores into their places, each in pieces that a line may hold."""
    unpack: dict[str, list[str]] = {}
    replace: list[list[str]] = []
    pack: dict[str, list[str]] = {}
    cd, move, copy = ("cd /d", "move", "xcopy /E /I") if os.name == "nt" else ("cd", "mv", "cp -R")
    for outcome in outcomes:
        if outcome.made is None:
            continue
        found = outcome.found
        place = found.path
        if found.archive is not None:
            stem, extension = os.path.splitext(found.archive)
            place = folder = free_name(f"{stem}.unpacked")
            if found.inner:
                place = os.path.join(folder, *found.inner.split("/"))
            whole = as_argument(free_name(f"{stem}.new{extension}"))
            zipped = as_argument(found.archive)
            unpack[folder] = ["python -m zipfile -e", zipped, as_argument(folder)]
            pack[folder] = [f"{cd} {as_argument(folder)} &&", f"python -m zipfile -c {whole} ."]
            aside = f"{folder}.damaged-{len(replace) // 2 + 1}"
        else:
            aside = free_name(f"{place}.damaged")
        replace.append([move, as_argument(place), as_argument(aside)])
        replace.append([copy, as_argument(outcome.made), as_argument(place)])
    return [*unpack.values(), *replace, *pack.values()]


def free_name(path: str) -> str:
    """A path that does not exist: this one, or with a number appended."""
    number, free = 1, path
    while os.path.lexists(free):
        number += 1
        free = f"{path}-{number}"
    return free
