"""Lab 9 in the engine: version edits, CURRENT, and the commit of a flush."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lsmkv.course.store.seams import Using, engine

Field = tuple[Any, ...]

_COUNTERS = (
    (2, "log_number"),
    (9, "prev_log_number"),
    (3, "next_file_number"),
    (4, "last_sequence"),
)
"""The fields of numbers, in the order in which they are written."""
_ORDER = (1, *(tag for tag, _ in _COUNTERS), 5, 6, 7)
"""All tags in that order."""


def fields_of(edit: Any) -> list[Field]:
    """An edit as lab 9 has it, in the order in which it is written."""
    fields: list[Field] = []
    if edit.comparator is not None:
        fields.append((1, edit.comparator.encode()))
    for tag, name in _COUNTERS:
        if getattr(edit, name) is not None:
            fields.append((tag, getattr(edit, name)))
    fields += [(5, level, key) for level, key in edit.compact_pointers]
    fields += [(6, level, number) for level, number in sorted(edit.deleted_files)]
    fields += [(7, level, *_file_of(file)) for level, file in edit.new_files]
    return fields


def _file_of(file: Any) -> tuple[int, int, bytes, bytes]:
    return file.number, file.size, file.smallest, file.largest


def edits(using: Using) -> None:
    """Each edit that is appended to a MANIFEST, and each that is read from one."""

    def encode(own: Any) -> Callable[[Any], bytes]:
        def call(self: Any) -> bytes:
            fields = fields_of(self)
            return bytes(using.compared(using.mine.encode_edit, (fields,), lambda: own(self)))

        return call

    def decode(own: Any) -> Any:
        def decode_edit(record: bytes) -> list[Field]:
            found = using.mine.decode_edit(record)
            return sorted(found, key=lambda field: _ORDER.index(field[0]))

        def call(record: bytes, *levels: int) -> Any:
            with using.guard.inside(using.in_use()):
                edit = own(record, *levels)
            if using.in_use():
                using.agreed(decode_edit, (record,), fields_of(edit))
            return edit

        return staticmethod(call)

    using.method("format.version_edit.VersionEdit.encode", encode)
    using.method("format.version_edit.VersionEdit.decode", decode)


def applying(using: Using) -> None:
    """The levels after each edit."""

    def make(own: Any) -> Callable[..., Any]:
        def apply(self: Any, edit: Any) -> Any:
            if not using.in_use():
                return own(self, edit)
            with using.guard.inside():
                right = own(self, edit)
            levels = [[_file_of(file) for file in files] for files in self.levels]
            expected = [[_file_of(file) for file in files] for files in right.levels]
            found = using.agreed(using.mine.apply_edit, (levels, fields_of(edit)), expected)
            files = {file.number: file for level in right.levels for file in level}
            chosen = [[files[one[0]] for one in level] for level in found]
            return type(self)(self.comparator, chosen)

        return apply

    using.method("db.tree.version.Version.apply", make)


def replaying(using: Using) -> None:
    """The state that a MANIFEST describes, when a store is opened."""
    reader_class = engine("format.log.LogReader")

    def make(own: Any) -> Callable[..., Any]:
        def read(directory: Any, name: str) -> Any:
            manifest = own(directory, name)
            if not using.in_use():
                return manifest
            with using.guard.inside(), directory.open(name) as file:
                records = [record.payload for record in reader_class(file)]
            found = using.guard.tried(using.part, using.mine.replay_edits, (records,))
            if using.guard.failed(found):
                return manifest
            counters, levels = found
            for tag, counter in _COUNTERS:
                right = getattr(manifest, counter)
                if counters.get(tag, 0) != right:
                    what = f"replay_edits has {counters.get(tag)} for tag {tag}, not {right}"
                    using.guard.fail(using.part, "replay_edits", what)
                    return manifest
            numbers = [sorted(file[0] for file in level) for level in levels]
            if numbers != [sorted(files) for files in manifest.levels[: len(levels)]]:
                what = f"replay_edits has the tables {numbers} on the levels"
                using.guard.fail(using.part, "replay_edits", what)
                return manifest
            for tag, counter in _COUNTERS:
                setattr(manifest, counter, counters.get(tag, 0))
            manifest.levels[: len(levels)] = [
                {file[0]: manifest.levels[level][file[0]] for file in files}
                for level, files in enumerate(levels)
            ]
            using.guard.calls[using.part] += 1
            return manifest

        return read

    using.function("db.tree.manifest.read_manifest", make)


def is_current(directory: Any, name: str) -> bool:
    """True if CURRENT names this MANIFEST."""
    expected = name.encode() + b"\n"
    return bool(directory.exists("CURRENT") and directory.read_file("CURRENT", 64) == expected)


def current(using: Using) -> None:
    """Use the student's change of CURRENT to a new MANIFEST."""
    name_of = engine("format.filenames.manifest_name")

    def make(own: Any) -> Callable[..., None]:
        def set_current(directory: Any, number: int) -> None:
            if using.in_use():
                arguments = (directory, number)
                done = using.guard.tried(using.part, using.mine.set_current, arguments)
                if not using.guard.failed(done):
                    if is_current(directory, name_of(number)):
                        using.guard.calls[using.part] += 1
                        return
                    what = f"set_current({number}) has left another CURRENT"
                    using.guard.fail(using.part, "set_current", what)
            own(directory, number)

        return set_current

    using.function("format.filenames.set_current", make)


def flushing(using: Using) -> None:
    """The commit of a flush: the table, the edit that names it, and the end of the old log.

    The engine has written the table already, and the student's ``flush`` writes it again.
    """
    frame = engine("format.log.frame")
    table_name = engine("format.filenames.table_name")
    log_name = engine("format.filenames.log_name")

    def make(own: Any) -> Callable[..., None]:
        def write(self: Any, edit: Any) -> None:
            file, log = self._manifest, self._manifest_log
            old_log = log_name(self.log_number)
            if (
                not using.in_use()
                or self.unsettled
                or log is None
                or len(edit.new_files) != 1
                or edit.deleted_files
                or edit.log_number == self.log_number
                or not self._directory.exists(old_log)
            ):
                own(self, edit)
                return
            self.unsettled = True
            edit.next_file_number = self.next_file_number
            record = edit.encode()
            table = edit.new_files[0][1]
            name = table_name(table.number)
            content = self._directory.read_file(name, table.size)
            with using.guard.inside():
                framed = frame(record, log.end % 32768)
            self._directory.remove(name)
            arguments = (self._directory, file, name, content, record, old_log)
            using.guard.tried(using.part, using.mine.flush, arguments)
            if using.in_use() and not problem(self, name, content, log.end + len(framed)):
                log.end += len(framed)
                using.guard.calls[using.part] += 1
                return
            restore(self, name, content)
            own(self, edit)  # begins a new MANIFEST

        return write

    def problem(versions: Any, name: str, content: bytes, end: int) -> bool:
        what = ""
        if not versions._directory.exists(name):
            what = f"flush has not made {name}"
        elif versions._manifest.size() != end:
            what = "flush has not appended the edit as one record"
        elif versions._directory.read_file(name, len(content)) != content:
            what = "flush has written another table"
        if what:
            using.guard.fail(using.part, "flush", what)
        return bool(what)

    def restore(versions: Any, name: str, content: bytes) -> None:
        if versions._directory.exists(name):
            versions._directory.remove(name)
        with versions._directory.create(name) as table:
            table.append(content)
            table.sync()
        versions._directory.sync()

    using.method("db.tree.version_set.VersionSet._write", make)
