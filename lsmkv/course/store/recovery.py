"""Lab 10 in the engine: what an opening finds, and what a commit leaves."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from lsmkv.course.store.manifest import is_current
from lsmkv.course.store.seams import Using, engine

_MOST_LOG = 1 << 30


def choosing(using: Using) -> None:
    """The logs that an opening replays."""
    log_name = engine("format.filenames.log_name")

    def make(own: Any) -> Callable[..., list[int]]:
        def needed(self: Any, names: list[str]) -> list[int]:
            numbers: list[int] = own(self, names)
            versions = self._versions
            arguments = (list(names), versions.log_number, versions.prev_log_number)
            right = [log_name(number) for number in numbers]
            if using.in_use():
                using.agreed(using.mine.logs_to_replay, arguments, right)
            return numbers

        return needed

    using.method("db.opening.recovery.Recovery._needed_logs", make)


def tails(using: Using) -> None:
    """Use the student's test of whether the end of the newest log is torn or damaged."""
    log_name = engine("format.filenames.log_name")

    def make(own: Any) -> Callable[[Any], None]:
        def judge(self: Any) -> None:
            if self._unjudged is not None and using.in_use():
                number, tail = self._unjudged
                log = self._directory.read_file(log_name(number), _MOST_LOG)
                torn = using.agreed(using.mine.is_torn_tail, (log, tail.offset), tail.torn)
                self._unjudged = number, tail._replace(torn=torn)
            own(self)

        return judge

    using.method("db.opening.recovery.Recovery._judge_tail", make)


def replaying(using: Using) -> None:
    """The writes of the logs: the memtable of an opened store is what ``replay`` returns."""
    reader_class = engine("format.log.LogReader")
    log_name = engine("format.filenames.log_name")
    recovery = engine("db.opening.recovery.Recovery")
    memtable_class = engine("db.tree.memtable.MemTable")

    def pieces(directory: Any, number: int) -> list[bytes | None]:
        found: list[bytes | None] = []
        with using.guard.inside(), directory.open(log_name(number)) as file:
            reader = reader_class(file, reserved=True)
            for record in reader:
                found += [None] * (record.damage is not None) + [record.payload]
            found += [None] * (reader.tail is not None)
        return found

    def make(own: Any) -> Callable[..., list[int]]:
        def replay(self: Any, names: list[str]) -> list[int]:
            before = self._versions.last_sequence
            numbers: list[int] = own(self, names)
            flushed = self.report.dropped or self._edit.new_files
            if type(self) is not recovery or flushed or not using.in_use():
                return numbers
            with using.guard.inside():
                newest = {
                    key: None if one[0] == 0 else one[8:]
                    for some in self._memtable.entries()
                    for key, one in reversed(some)
                }
            logs = [pieces(self._directory, number) for number in numbers]
            right = (newest, self._versions.last_sequence)
            entries, last = using.agreed(using.mine.replay, (logs, before), right)
            if using.in_use() and entries:
                memtable = memtable_class(self._comparator.user_comparator, self._lock)
                memtable.add(last - len(entries) + 1, list(entries.items()), -1)
                memtable.applying = None
                self._memtable = memtable
            return numbers

        return replay

    using.method("db.opening.recovery.Recovery._replay_logs", make)


def removing(using: Using) -> None:
    """The files that are removed after each commit."""
    parse = engine("format.filenames.parse_filename")

    def make(own: Any) -> Callable[..., None]:
        def remove(store: Any, pending: Any) -> None:
            versions = store.versions
            if not using.in_use() or store.log_holds.oldest() is not None:
                own(store, pending)
                return
            names = store.directory.names()
            planned = _Planned(store)
            with using.guard.inside():
                own(planned, pending)
            numbers = {parsed[0] for name in names if (parsed := parse(name)) is not None}
            tables = versions.live_numbers() | {one for one in numbers if one in pending}
            arguments = (
                *(names, tables, versions.log_number, versions.prev_log_number),
                versions.manifest_number,
            )

            def obsolete_files(*arguments: Any) -> list[str]:
                return sorted(using.mine.obsolete_files(*arguments))

            # Before the first commit there is no MANIFEST's number, and the lab has no counters.
            right = sorted(planned.removed)
            chosen = right
            if versions.manifest_number > 0 and "STATS.json" not in right:
                chosen = using.agreed(obsolete_files, arguments, right)
            for name in chosen:
                with contextlib.suppress(OSError):  # it is tried again after the next commit
                    store.directory.remove(name)

        return remove

    using.function("db.compact.obsolete.remove_obsolete_files", make)


class _Planned:
    """A store whose files are not removed, but noted."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.directory = self
        self.removed: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def names(self) -> list[str]:
        found: list[str] = self._store.directory.names()
        return found

    def remove(self, name: str) -> None:
        self.removed.append(name)


def committing(using: Using) -> None:
    """Use the student's replacement of the MANIFEST: after an opening, and when it has grown."""
    writer_class = engine("format.log.LogWriter")
    frame = engine("format.log.frame")
    manifest_name = engine("format.filenames.manifest_name")

    def make(own: Any) -> Callable[..., None]:
        def begin(self: Any, edit: Any) -> None:
            if not using.in_use():
                own(self, edit)
                return
            number = self.new_file_number()
            edit.next_file_number = self.next_file_number
            snapshot = frame(self._snapshot().encode(), 0)
            content = snapshot + frame(edit.encode(), len(snapshot) % 32768)
            name = manifest_name(number)
            obsolete: list[str] = []
            arguments = (self._directory, {name: content}, number, obsolete)
            using.guard.tried(using.part, using.mine.commit, arguments)
            directory = self._directory
            right = directory.exists(name) and directory.read_file(name, len(content)) == content
            if using.in_use() and not (right and is_current(directory, name)):
                what = f"commit has not made {name} the MANIFEST in force"
                using.guard.fail(using.part, "commit", what)
            if not using.in_use():
                own(self, edit)
                return
            file = directory.append_to(name)
            self.close()
            self._manifest = file
            self._manifest_log = writer_class(file, len(content))
            self._snapshot_size = len(snapshot)
            self.manifest_number = number
            using.guard.calls[using.part] += 1

        return begin

    using.method("db.tree.version_set.VersionSet._begin_manifest", make)
