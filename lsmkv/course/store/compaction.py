"""Lab 11 in the engine: when to compact, which tables, what remains of them, and in how many."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from lsmkv.course.store.seams import Using, engine

File = tuple[int, int, bytes, bytes]
Entry = tuple[bytes, int, bytes | None]


def _files(files: Any) -> list[File]:
    return [(one.number, one.size, one.smallest[:-8], one.largest[:-8]) for one in files]


def _levels(version: Any) -> list[list[File]]:
    return [_files(files) for files in version.levels]


def scoring(using: Using) -> None:
    """Use the student's test of whether a level is over its limit."""

    def make(own: Any) -> Callable[[Any], tuple[int, float]]:
        def score(self: Any) -> tuple[int, float]:
            def best(levels: list[list[File]]) -> tuple[int, float]:
                scores = using.mine.level_scores(levels)
                return max(enumerate(scores), key=lambda one: (one[1], -one[0]))

            best.__name__ = "level_scores"
            found: tuple[int, float] = using.compared(best, (_levels(self),), lambda: own(self))
            return found

        return score

    using.method("db.tree.version.Version._score", make)


def choosing(using: Using) -> None:
    """The tables of a compaction."""

    def make(own: Any) -> Callable[..., Any]:
        def choose(version: Any, pointers: Any, options: Any) -> Any:
            picked = own(version, pointers, options)
            if picked is None or picked.by_seeks or not using.in_use():
                return picked
            keys = [None if key is None else key[:-8] for key in pointers]
            right = (picked.level, _files(picked.inputs), _files(picked.next_inputs))
            found = using.agreed(using.mine.pick, (_levels(version), keys), right)
            files = {one.number: one for level in version.levels for one in level}
            picked.inputs = [files[one[0]] for one in found[1]]
            picked.next_inputs = [files[one[0]] for one in found[2]]
            return picked

        return choose

    using.function("db.compact.picking.pick_compaction", make)


def deeper(using: Using) -> None:
    """Use the student's test of whether a deletion has anything left to hide."""

    def make(own: Any) -> Callable[..., bool]:
        def nothing_deeper(self: Any, user_key: bytes) -> bool:
            compaction = self._compaction
            arguments = (_levels(compaction.version), compaction.output_level, user_key)
            reference = lambda: not own(self, user_key)  # noqa: E731
            return not using.compared(using.mine.held_deeper, arguments, reference)

        return nothing_deeper

    using.method("db.compact.compaction.CompactionJob._nothing_deeper", make)


def merging(using: Using) -> None:
    """The entries that remain of a compaction's tables."""
    merge = engine("db.tree.merge.merge")
    live_entries = engine("db.tree.merge.live_entries")

    def entries_of(self: Any) -> list[Entry]:
        """Return the entries that the engine's own merge leaves."""
        kept: list[Entry] = []
        for some in merge(self._sources(), self._order):
            keys, tagged = live_entries(
                some, self._oldest_pinned, self._order, self._nothing_deeper
            )
            kept += [_entry(key, one) for key, one in zip(keys, tagged, strict=True)]
        return kept

    def make(own: Any) -> Callable[..., Any]:
        def run(self: Any, between: Callable[[], None]) -> Any:
            if not using.in_use():
                return own(self, between)
            runs = [
                [_entry(key, one) for some in source for key, one in some]
                for source in self._sources()
            ]
            may_be_deeper = using.guard.outside(lambda key: not self._nothing_deeper(key))
            arguments = (runs, self._oldest_pinned, may_be_deeper)
            kept = using.compared(using.mine.compact, arguments, lambda: entries_of(self))
            try:
                between()
                self._write([key for key, _, _ in kept], [_tagged(one) for one in kept], between)
                self._finish_output()
                self._directory.sync()
            except BaseException:
                self._abandon()
                raise
            return self._outputs

        return run

    using.method("db.compact.compaction.CompactionJob.run", make)


def _entry(key: bytes, tagged: bytes) -> Entry:
    sequence = int.from_bytes(tagged[:8], "little") >> 8
    return key, sequence, tagged[8:] if tagged[0] else None


def _tagged(entry: Entry) -> bytes:
    _, sequence, value = entry
    return (sequence << 8 | (value is not None)).to_bytes(8, "little") + (value or b"")


def splitting(using: Using) -> None:
    """Use the student's choice of where one output ends and the next begins."""
    output_class = engine("db.compact.compaction.TableOutput")

    def make(own: Any) -> Callable[..., None]:
        def write(self: Any, user_keys: Any, tagged: Any, between: Callable[[], None]) -> None:
            entries = [_entry(*both) for both in zip(user_keys, tagged, strict=True)]
            limit = self._options.max_file_size
            if not using.in_use() or self._output is not None or self._outputs:
                own(self, user_keys, tagged, between)
                return
            outputs = using.guard.tried(using.part, using.mine.split, (entries, limit))
            if using.guard.failed(outputs) or not _is_split(using, entries, outputs):
                own(self, user_keys, tagged, between)
                return
            for some in outputs:
                if self._output is not None:
                    self._finish_output()
                    between()
                number = self._new_file_number()
                self._output = output_class(self._directory, number, self._options)
                keys, values = [one[0] for one in some], [_tagged(one) for one in some]
                at = 0
                while at < len(keys):
                    at = self._output.add_entries(keys, values, at, len(keys), 1 << 62)
            using.guard.calls[using.part] += 1

        return write

    using.method("db.compact.compaction.CompactionJob._write", make)


def _is_split(using: Using, entries: list[Entry], outputs: list[list[Entry]]) -> bool:
    """True if the outputs have all entries, and no key is in two of them."""
    is_whole = [entry for some in outputs for entry in some] == entries and all(outputs)
    ends = pairwise(outputs)
    if is_whole and all(before[-1][0] != after[0][0] for before, after in ends):
        return True
    using.guard.fail(using.part, "split", "split has lost entries, or put one key into two outputs")
    return False
