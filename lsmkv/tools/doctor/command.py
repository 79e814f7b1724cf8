"""``lsmkv doctor``: what is installed, what works in a directory, and what to do about the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from lsmkv.tools.bars import can_encode
from lsmkv.tools.console import MISS, guarded, stdout_console, write_line
from lsmkv.tools.doctor.engine import Advice, Engine, crc32c_text, engine, named
from lsmkv.tools.doctor.findings import problems, remarks, works
from lsmkv.tools.doctor.place import Place, place
from lsmkv.tools.text import fold, printable, size, wrap

_WIDEST = 100
_LABEL = 18
_MARKS = {"yes": "✓", "no": "✗", "less": "-"}
_STYLES = {"yes": "green", "no": "red", "less": "yellow"}


@guarded
def doctor(
    directory: Annotated[
        str,
        typer.Argument(metavar="DIR", help="A directory for stores, or one that holds a store."),
    ] = ".",
    as_json: Annotated[bool, typer.Option("--json", help="All that is known, as JSON.")] = False,
) -> None:
    """Print what is installed, and whether a store works in DIR; exit with 1 if one does not.

    What a store needs of a file system is tried with scratch files in DIR, which are removed. A DIR
    that holds a store is neither opened nor changed: the directory above is tried in its place, if
    it is on the same file system.

    What is printed is made for reports of bugs: it names versions, the system, and DIR as it was
    given, with your home directory as ~.

    JSON: "lsmkv" (the version), "compiled", "pure_because" (null if compiled), "python", "system",
    "codecs", "crc32c" (the package that computes checksums), "dependencies", "extras" (versions by
    package, null for what is not there); "directory": "path", "file_system" (null if unknown),
    "holds_store", "tried_in" (null if nothing was tried), "works" (null, or "files", "renames",
    "directory_sync", "hard_links", "lock", "ofd_lock", "mapped_log"), "free_bytes",
    "open_file_limit"; "problems" and "remarks": lists of "what" is not well and what to "do".
    """
    here, there = engine(), place(directory)
    wrong, lesser = problems(here, there), remarks(here, there)
    if as_json:
        write_line(json.dumps(_plain(here, there, wrong, lesser), indent=2))
    else:
        console = stdout_console()
        for line in _Report(here, there, console).lines(wrong, lesser):
            console.print(line, soft_wrap=True)
    if wrong:
        raise typer.Exit(MISS)


def _plain(here: Engine, there: Place, wrong: list[Advice], lesser: list[Advice]) -> dict[str, Any]:
    return {
        "lsmkv": here.version,
        "compiled": here.compiled,
        "pure_because": None if here.pure is None else here.pure.what,
        "python": here.python,
        "system": here.system,
        "codecs": here.codecs,
        "crc32c": here.crc32c,
        "dependencies": here.dependencies,
        "extras": here.extras,
        "directory": {
            "path": there.path,
            "file_system": there.file_system or None,
            "holds_store": there.holds_store,
            "tried_in": there.tried_in or None,
            "works": None if there.trials is None else works(there.trials),
            "free_bytes": there.free_bytes,
            "open_file_limit": there.open_file_limit,
        },
        "problems": [one._asdict() for one in wrong],
        "remarks": [one._asdict() for one in lesser],
    }


class _Report:
    """Draws what was found, part by part, as wide as the console, at most 100 columns."""

    def __init__(self, here: Engine, there: Place, console: Console) -> None:
        self._here = here
        self._there = there
        self._width = min(console.width, _WIDEST)
        self._fine = can_encode(console, "".join(_MARKS.values()))

    def lines(self, wrong: list[Advice], lesser: list[Advice]) -> Iterator[Text]:
        """The engine, the directory, and what is to be said of them."""
        here, there = self._here, self._there
        kind = "compiled" if here.compiled else "pure Python"
        yield Text(f"lsmkv {here.version}, {kind}", style="bold")
        yield from self._engine()
        yield Text()
        yield Text(printable(there.path), style="bold")
        yield from self._place()
        yield Text()
        for advice in wrong:
            yield from self._advice("no", advice, "red")
        for advice in lesser:
            yield from self._advice("less", advice, "yellow")
        if wrong:
            return
        if lesser:
            yield Text()
        yield Text("Stores work here." if lesser else "All is well.", style="green")

    def _engine(self) -> Iterator[Text]:
        here = self._here
        codecs = [name for name, good in here.codecs.items() if good]
        yield from self._row("Python", here.python)
        yield from self._row("system", here.system)
        yield from self._row("compression", ", ".join(codecs) or "none")
        yield from self._row("CRC-32C", crc32c_text(here))
        if here.dependencies:
            yield from self._row("packages", _packages(here.dependencies))
        for extra, packages in here.extras.items():
            if packages:
                yield from self._row(f"extra {extra!r}", _packages(packages))

    def _place(self) -> Iterator[Text]:
        there = self._there
        if there.missing:
            yield from self._row("directory", there.missing, "red")
            return
        yield from self._row("file system", there.file_system or "not known")
        yield from self._row("holds a store", "yes" if there.holds_store else "no")
        if there.free_bytes is not None:
            yield from self._row("free", size(there.free_bytes))
        limit = there.open_file_limit
        yield from self._row("open files", "not limited" if limit is None else f"up to {limit:,}")
        yield from self._trials()

    def _trials(self) -> Iterator[Text]:
        there = self._there
        trials = there.trials
        if trials is None:
            yield from self._row("tried", there.not_tried or "nothing", "yellow")
            return
        if there.holds_store:
            yield from self._row("tried", f"in {there.tried_in}")
        unmapped = "" if trials.mapped_log else "not on this file system"
        for name, failure, otherwise in (
            ("files", trials.files, "no"),
            ("renaming", trials.renames, "no"),
            ("directory fsync", trials.directory_sync, "no"),
            ("OFD lock" if trials.is_ofd else "lock", trials.lock, "no"),
            ("hard links", trials.links, "less"),
            ("mapped log", unmapped, "less"),
        ):
            answer = otherwise if failure else "yes"
            text = f"{self._mark(answer)} {failure}".rstrip()
            yield from self._row(name, text, _STYLES[answer])

    def _row(self, label: str, text: str, style: str = "") -> Iterator[Text]:
        """A label, and beside it a text, which is broken after its commas."""
        room = max(self._width - _LABEL, _LABEL)
        for number, part in enumerate(fold(printable(text), room, 0).split("\n")):
            shown = f"  {label}" if number == 0 else ""
            yield Text().append(f"{shown:{_LABEL}}", "dim").append(part, style)

    def _advice(self, answer: str, advice: Advice, style: str) -> Iterator[Text]:
        mark = self._mark(answer)
        indent = " " * (len(mark) + 1)
        what = advice.what[:1].upper() + advice.what[1:]
        for line in wrap(f"{mark} {printable(what)}.", self._width, len(indent)):
            yield Text(line, style)
        for line in wrap(printable(advice.do), self._width - len(indent)):
            yield Text(f"{indent}{line}")

    def _mark(self, answer: str) -> str:
        return _MARKS[answer] if self._fine else answer


def _packages(versions: dict[str, str | None]) -> str:
    return ", ".join(named(name, version or "(not there)") for name, version in versions.items())
