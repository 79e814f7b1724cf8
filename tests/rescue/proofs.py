"""Which entries the files of a damaged store prove current, by the history that made them.

Nothing of :mod:`lsmkv.repair` is used: what a sound file of the patient had is known, and an entry
is *readable* if the bytes of its block, or of its log record, are somewhere in a damaged file.

The terms, for one damaged store:

- The MANIFEST is *known* if the file that CURRENT names is there, and has the first records of the
  patient's and nothing else.  If CURRENT is damaged, it is the MANIFEST with the highest number.
- A file of the patient is *vouched for* if the known MANIFEST names it (a table of its version, or
  a log from its log number on), or if a table that it names cannot be read as a whole, and the
  file is an input of the edit that made it: a table that the edit removed, or a log that it made
  obsolete; and so on for inputs that cannot be read.  Without a known MANIFEST, all files are.
- The *last* write is the highest sequence that can be read of files that are vouched for.
- A write is *gone* if a file that the known MANIFEST names had it, if its sequence is at most the
  last, and if it cannot be read of files that are vouched for.  Without a known MANIFEST, the
  files at the end of the run take its place, and a gone write may have any sequence.
- A gone write may be of any key within a range: the keys between the readable neighbors in its
  table; those between the table's first and last key if the table is missing, and a known MANIFEST
  states them; else all keys.

An entry is **proved current** at a moment if it is in the state of that moment, and can be read of
a file that is vouched for.  And no gone write until that moment, with a higher sequence, may have
its key.

The moments are those that a repair may go for: that after the last write; and, if writes are gone,
that before the first of them, since a store that lacks its newest writes is one of an earlier
moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from live_copies import Files, State
from patients import Patient

import lsmkv
from lsmkv.files import Edit, Log, Manifest, Table, parse_current, parse_name


class _Part(NamedTuple):
    """Bytes of a sound file, and the writes that they have."""

    offset: int
    content: bytes
    entries: list[tuple[bytes, int]]
    """Keys, and sequences."""


class Lost(NamedTuple):
    """Writes that are gone, and the keys that they may have; None is no bound."""

    first: bytes | None
    last: bytes | None
    sequences: list[int]
    newest: int
    """The highest sequence that they may have."""


class Proof(NamedTuple):
    """What the files of a damaged store prove."""

    has_manifest: bool
    """Whether the MANIFEST is known."""
    last: int
    """The highest sequence that can be read."""
    current: State
    """The entries that are proved current after it."""
    before: State
    """Those that are proved current before the first write that is gone."""
    later: dict[bytes, set[bytes | None]]
    """What was written after the last readable write: values of keys, None for deletions."""

    def right(self, found: State) -> int:
        """How many of the entries that are proved current at the end a repaired store has, or
        something newer in their place."""
        return sum(
            found.get(key) == value or found.get(key) in self.later.get(key, ())
            for key, value in self.current.items()
        )

    def right_before(self, found: State) -> int:
        """How many of those it has that are proved current before the first gone write."""
        return sum(found.get(key) == self.before[key] for key in self.before)


class Known:
    """The sound files of a patient, and what damaged ones of it prove."""

    def __init__(self, patient: Patient) -> None:
        self._patient = patient
        self._compare = None if patient.comparator is None else patient.comparator.compare
        self._sound: dict[str, bytes] = {}  # of logs and tables, their longest contents
        self._manifests: dict[str, bytes] = {}  # their longest contents
        for files in patient.run.steps:
            for name, content in files.items():
                parsed = parse_name(name)
                if parsed is None:
                    continue
                kept = self._manifests if parsed.kind == "manifest" else self._sound
                if parsed.kind in ("manifest", "table", "log"):
                    kept[name] = max(kept.get(name, b""), content, key=len)
        self._parts = {name: list(_parts(name, self._sound[name])) for name in self._sound}
        self._number_of = {name: _number(name) for name in self._sound}
        self._edits = self._all_edits()

    def prove(self, files: Files) -> Proof:
        """What these files prove."""
        readable = self._readable(files)
        manifest = self._manifest_of(files)
        if manifest is None:
            named = [name for name in self._patient.files if name in self._sound]
            vouched = set(self._sound)
        else:
            named = self._named_by(manifest)
            vouched = self._vouched(named, readable)
        found = {seq for name in vouched for at in readable[name] for _, seq in self._at(name, at)}
        last = max(found, default=0)
        lost = [
            one
            for name in named
            for one in self._lost_of(name, readable[name], manifest is not None, found, last)
        ]
        current = self._proved_at(last, found, lost)
        first = min((min(one.sequences) for one in lost), default=last + 1)
        before = current if first > last else self._proved_at(first - 1, found, [])
        later: dict[bytes, set[bytes | None]] = {}
        for key, value in self._patient.run.writes[last:]:
            later.setdefault(key, set()).add(value)
        return Proof(manifest is not None, last, current, before, later)

    def _proved_at(self, moment: int, found: set[int], lost: list[Lost]) -> State:
        newest: dict[bytes, int] = {}
        for sequence, (key, _) in enumerate(self._patient.run.writes[:moment], 1):
            newest[key] = sequence
        return {
            key: value
            for key, value in self._patient.run.state(moment).items()
            if (at := newest[key]) in found
            and not any(self._may_have(one, key, at) for one in lost)
        }

    def _at(self, name: str, at: int) -> list[tuple[bytes, int]]:
        return self._parts[name][at].entries

    def _readable(self, files: Files) -> dict[str, set[int]]:
        """For each sound file, which of its parts are somewhere in these files."""
        contents = [content for name, content in files.items() if name.endswith(_DATA)]
        return {
            name: {
                at
                for at, part in enumerate(parts)
                if any(content.startswith(part.content, part.offset) for content in contents)
            }
            for name, parts in self._parts.items()
        }

    # MANIFEST

    def _all_edits(self) -> list[Edit]:
        """Every edit of the run, those of a MANIFEST after those of the one before it."""
        edits: list[Edit] = []
        for name in sorted(self._manifests, key=_number):
            edits += Manifest(self._manifests[name]).edits()
        return edits

    def _manifest_of(self, files: Files) -> bytes | None:
        """The content of the known MANIFEST."""
        name = parse_current(files.get("CURRENT", b"")) or max(
            (name for name in files if name.startswith("MANIFEST-")), key=_number, default=""
        )
        content = files.get(name, b"")
        sound = self._manifests.get(name, b"")
        ends = {edit.end for edit in Manifest(sound).edits()}
        return content if sound.startswith(content) and len(content) in ends else None

    def _named_by(self, manifest: bytes) -> list[str]:
        version = Manifest(manifest).version()
        numbers = {table.number for level in version.levels for table in level}
        return [
            name
            for name, number in self._number_of.items()
            if (number in numbers if _is_table(name) else number >= version.log_number)
        ]

    def _vouched(self, named: list[str], readable: dict[str, set[int]]) -> set[str]:
        """The files that the MANIFEST names, and the inputs of those that cannot be read."""
        names = {number: name for name, number in self._number_of.items() if _is_table(name)}
        made: dict[int, set[str]] = {}
        log_number = 0
        for edit in self._edits:
            removed = {number for _, number in edit.deleted_files}
            for _, table in edit.new_files:
                if table.number in made or table.number in removed:
                    continue  # moved, or stated again at the head of a MANIFEST
                if removed:
                    inputs = {names[number] for number in removed if number in names}
                else:
                    inputs = self._logs_between(log_number, edit.log_number or 0)
                made[table.number] = inputs
            log_number = edit.log_number or log_number
        vouched: set[str] = set()
        todo = list(named)
        while todo:
            name = todo.pop()
            if name in vouched:
                continue
            vouched.add(name)
            if _is_table(name) and len(readable[name]) < len(self._parts[name]):
                todo += made.get(self._number_of[name], ())
        return vouched

    def _logs_between(self, first: int, last: int) -> set[str]:
        return {
            name
            for name, number in self._number_of.items()
            if not _is_table(name) and first <= number < last
        }

    # What is lost

    def _lost_of(
        self, name: str, readable: set[int], bounded: bool, found: set[int], last: int
    ) -> Iterator[Lost]:
        """The runs of parts that cannot be read and whose writes no other file has."""
        parts = self._parts[name]

        def newest(run: list[int]) -> int:
            return max(run) if bounded else MAX_SEQUENCE

        is_whole_table = _is_table(name) and not readable
        run: list[int] = []
        before: bytes | None = None
        if is_whole_table and bounded:
            before = parts[0].entries[0][0]
        for at, part in enumerate(parts):
            if at not in readable:
                gone = [seq for _, seq in part.entries if seq not in found]
                run += [seq for seq in gone if seq <= last or not bounded]
                continue
            if run:
                first = part.entries[0][0] if _is_table(name) else None
                yield Lost(before if _is_table(name) else None, first, run, newest(run))
            run = []
            before = part.entries[-1][0]
        if run:
            end = parts[-1].entries[-1][0] if _is_table(name) and bounded else None
            yield Lost(before if _is_table(name) else None, end, run, newest(run))

    def _may_have(self, lost: Lost, key: bytes, sequence: int) -> bool:
        if lost.newest <= sequence:
            return False
        below = lost.first is not None and self._less(key, lost.first)
        above = lost.last is not None and self._less(lost.last, key)
        return not below and not above

    def _less(self, one: bytes, other: bytes) -> bool:
        return one < other if self._compare is None else self._compare(one, other) < 0


MAX_SEQUENCE = (1 << 56) - 1
_DATA = (".log", ".ldb", ".sst")


def _is_table(name: str) -> bool:
    return not name.endswith(".log")


def _number(name: str) -> int:
    parsed = parse_name(name)
    assert parsed is not None
    return parsed.number


def _parts(name: str, content: bytes) -> Iterator[_Part]:
    if not content:
        return
    if name.endswith(".log"):
        for record in Log(content).records():
            operations = [(one.key, one.sequence) for one in record.batch.operations()]
            yield _Part(record.offset, content[record.offset : record.end], operations)
        return
    try:
        for block in Table(content).data_blocks():
            entries = [
                (entry.internal_key.user_key, entry.internal_key.sequence)
                for entry in block.entries()
            ]
            place = block.place
            yield _Part(place.offset, content[place.offset : place.end], entries)
    except lsmkv.CorruptionError:
        return  # it was never finished
