"""The report of ``lsmkv doctor``: lines of text with their colors, or JSON.

Needs nothing but the library: ``lsmkv doctor`` must run where something is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, Unpack

from lsmkv import OptionArguments
from lsmkv.engine.util.progress import Progress
from lsmkv.tools.bars import can_encode
from lsmkv.tools.console import MISS
from lsmkv.tools.doctor.access import remarks_on_access
from lsmkv.tools.doctor.engine import Advice, Engine, crc32c_text, engine, named
from lsmkv.tools.doctor.findings import (
    problems,
    problems_of_store,
    remarks,
    remarks_on_store,
    works,
)
from lsmkv.tools.doctor.place import Place, place
from lsmkv.tools.doctor.stored import Stored, examine_store
from lsmkv.tools.next_step import rescue_command
from lsmkv.tools.text import fold, printable, size, wrap

MEANING = (
    "Print what is installed, whether a store works in DIR, and whether the one in it is sound;"
    " exit with 1 for a problem, and with 3 for a broken store."
)
DIRECTORY = "A directory for stores, or one that holds a store."
JSON = "All that is known, as JSON."
"""The help text of ``--json``."""

Line = list[tuple[str, str]]
"""The parts of a line, each with its style, in rich's words; none for an empty line."""

WIDEST = 100
NARROWEST = 20
_LABEL = 18
_MARKS = {"yes": "✓", "no": "✗", "less": "-"}
_BROKEN = 3
"""The exit status for a broken store, as that of ``lsmkv verify``."""
_VERDICTS = {"sound": "green", "broken": "red", "not checked": "yellow"}
_STYLES = {"yes": "green", "no": "red", "less": "yellow"}


class Findings(NamedTuple):
    """The engine, the directory and its store, and the advice on them."""

    engine: Engine
    place: Place
    stored: Stored
    problems: list[Advice]
    remarks: list[Advice]

    @property
    def status(self) -> int:
        """The exit status."""
        return _BROKEN if self.stored.is_broken else MISS if self.problems else 0


def examine(
    directory: str, progress: Progress | None = None, **options: Unpack[OptionArguments]
) -> Findings:
    """Look at what is installed, try what a store needs in a directory, and survey the one there.

    ``progress`` is called with the bytes of the store that were read.  ``options`` are those of
    ``lsmkv.DB`` for the store.
    """
    here, there = engine(), place(directory)
    stored = Stored() if there.missing else examine_store(directory, progress, **options)
    return Findings(
        here,
        there,
        stored,
        problems_of_store(stored, there.path) + problems(here, there),
        remarks_on_store(stored, there.path)
        + list(remarks_on_access(there.access))
        + remarks(here, there),
    )


def as_json(found: Findings) -> str:
    """All that is known, as JSON; its fields are in the help of ``lsmkv doctor``."""
    return json.dumps(_plain(*found), indent=2)


def lines(found: Findings, width: int, encoding: str) -> Iterator[Line]:
    """The report, ``width`` columns wide or :data:`WIDEST`, in characters that can be encoded."""
    fine = can_encode(encoding, "".join(_MARKS.values()))
    return _Report(found, max(NARROWEST, min(width, WIDEST)), fine).lines()


def _plain(
    here: Engine, there: Place, stored: Stored, wrong: list[Advice], lesser: list[Advice]
) -> dict[str, Any]:
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
            "store": stored.to_dict() if stored.verdict else None,
            "tried_in": there.tried_in or None,
            "works": None if there.trials is None else works(there.trials),
            "access": [
                {"name": one.name, "mode": f"{one.mode:04o}", "links": one.links, "who": one.who}
                for one in there.access
            ],
            "free_bytes": there.free_bytes,
            "open_file_limit": there.open_file_limit,
        },
        "problems": [one._asdict() for one in wrong],
        "remarks": [one._asdict() for one in lesser],
    }


class _Report:
    """Draws the findings, part by part, ``width`` columns wide; ``fine`` in more than ASCII."""

    def __init__(self, found: Findings, width: int, fine: bool) -> None:
        self._found = found
        self._width = width
        self._fine = fine

    def lines(self) -> Iterator[Line]:
        """The engine, the directory, and the advice on them."""
        here, there, stored, wrong, lesser = self._found
        kind = "compiled" if here.compiled else "pure Python"
        yield [(f"lsmkv {here.version}, {kind}", "bold")]
        yield from self._engine()
        yield []
        yield [(printable(there.path), "bold")]
        yield from self._place()
        yield []
        for advice in wrong:
            yield from self._advice("no", advice, "red")
        for advice in lesser:
            yield from self._advice("less", advice, "yellow")
        if stored.is_broken:
            yield []
            yield [(f"broken: {printable(rescue_command(there.path))}", "red")]
        if wrong:
            return
        if lesser:
            yield []
        yield [("Stores work here." if lesser else "All is well.", "green")]

    def _engine(self) -> Iterator[Line]:
        here = self._found.engine
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

    def _place(self) -> Iterator[Line]:
        there = self._found.place
        if there.missing:
            yield from self._row("directory", there.missing, "red")
            return
        yield from self._row("file system", there.file_system or "not known")
        yield from self._row("holds a store", "yes" if there.holds_store else "no")
        yield from self._stored()
        for one in there.access:
            yield from self._row("who can lock" if one is there.access[0] else "", str(one))
        if there.free_bytes is not None:
            yield from self._row("free", size(there.free_bytes))
        limit = there.open_file_limit
        yield from self._row("open files", "not limited" if limit is None else f"up to {limit:,}")
        yield from self._trials()

    def _stored(self) -> Iterator[Line]:
        stored = self._found.stored
        if not stored.verdict:
            return
        yield from self._row("store", stored.verdict, _VERDICTS[stored.verdict])
        if stored.content:
            yield from self._row("", stored.content)
        if stored.open_in is not None:
            yield from self._row("", f"open in process {stored.open_in}")

    def _trials(self) -> Iterator[Line]:
        there = self._found.place
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

    def _row(self, label: str, text: str, style: str = "") -> Iterator[Line]:
        """A label, and beside it a text, which is broken after its commas."""
        room = max(self._width - _LABEL, _LABEL)
        for number, part in enumerate(fold(printable(text), room, 0).split("\n")):
            shown = f"  {label}" if number == 0 and label else ""
            yield [(f"{shown:{_LABEL}}", "dim"), (part, style)]

    def _advice(self, answer: str, advice: Advice, style: str) -> Iterator[Line]:
        mark = self._mark(answer)
        indent = " " * (len(mark) + 1)
        what = advice.what[:1].upper() + advice.what[1:]
        for line in wrap(f"{mark} {printable(what)}.", self._width, len(indent)):
            yield [(line, style)]
        for line in wrap(printable(advice.do), self._width - len(indent)):
            yield [(f"{indent}{line}", "")]

    def _mark(self, answer: str) -> str:
        return _MARKS[answer] if self._fine else answer


def _packages(versions: dict[str, str | None]) -> str:
    return ", ".join(named(name, version or "(not there)") for name, version in versions.items())
