"""Lab 7 in the engine: the memtable, scans, and the merge of a compaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from lsmkv.course.store.seams import Using

Entry = tuple[bytes, bytes]

_CHUNK = 512
"""Keys in a list that a flush gets."""
_MOST = (1 << 56) - 1
"""The largest sequence."""


def memtable(using: Using) -> None:
    """Use the student's sorted list for every write, for Gets, and for a flush."""

    def add(own: Any) -> Callable[..., int]:
        def call(self: Any, sequence: int, operations: Any, *pins: Any) -> int:
            total = int(own(self, sequence, operations, *pins))
            entries = entries_of(self)
            if entries is not None and using.in_use():
                for at, (key, value) in enumerate(operations, sequence):
                    kind = 0 if value is None else 1
                    internal = key + (at << 8 | kind).to_bytes(8, "little")
                    arguments = (entries, internal, value or b"")
                    using.guard.tried(using.part, using.mine.insert, arguments)
                    using.guard.calls[using.part] += 1
            else:
                self.mine_entries = None  # it lacks a write from now on
            return total

        return call

    def get(own: Any) -> Callable[..., bytes | None]:
        def call(self: Any, key: bytes, sequence: int) -> bytes | None:
            entries = entries_of(self)
            if entries is None:
                return own(self, key, sequence)  # type: ignore[no-any-return]

            def look_up(key: bytes, sequence: int) -> bytes | None:
                found = using.mine.look_up(entries, key, sequence)
                return None if found is None else found[0][-8:] + found[1]

            arguments = (key, min(sequence, _MOST))
            return using.compared(  # type: ignore[no-any-return]
                look_up, arguments, lambda: own(self, key, sequence)
            )

        return call

    def columns(own: Any) -> Callable[[Any], Iterator[tuple[list[bytes], list[bytes]]]]:
        def call(self: Any) -> Iterator[tuple[list[bytes], list[bytes]]]:
            entries = entries_of(self)
            if entries is None or self.keeps_older or not using.in_use():
                yield from own(self)
                return
            newest: list[Entry] = []
            for internal, value in entries:
                if not newest or newest[-1][0] != internal[:-8]:
                    newest.append((internal[:-8], internal[-8:] + value))
            chunks = list(own(self))
            right = [pair for chunk in chunks for pair in zip(*chunk, strict=True)]
            if newest != right:
                what = f"the list of {len(entries)} entries does not hold the memtable in order"
                using.guard.fail(using.part, "insert", what)
                yield from chunks
                return
            for at in range(0, len(newest), _CHUNK):
                some = newest[at : at + _CHUNK]
                yield [key for key, _ in some], [tagged for _, tagged in some]

        return call

    for name, make in (("add", add), ("get", get), ("columns", columns)):
        using.method(f"db.tree.memtable.MemTable.{name}", make)


def entries_of(memtable: Any) -> list[Entry] | None:
    """The student's list beside a memtable; None once a write is missing in it."""
    if not hasattr(memtable, "mine_entries"):
        memtable.mine_entries = [] if memtable.empty else None
    found: list[Entry] | None = memtable.mine_entries
    return found


def merging(using: Using) -> None:
    """Use the student's merge for the inputs of a compaction, unless lab 11's part takes them."""

    def make(own: Any) -> Callable[..., Iterator[list[Entry]]]:
        def merge(lists: Any, order: Any) -> Iterator[list[Entry]]:
            if not using.in_use() or not order.is_bytewise:
                yield from own(lists, order)
                return
            runs = [[entry for some in source for entry in some] for source in lists]

            def merged(runs: list[list[Entry]]) -> list[Entry]:
                internal = [[(key + one[:8], one[8:]) for key, one in run] for run in runs]
                found = using.mine.merge(internal, False)
                return [(key[:-8], key[-8:] + value) for key, value in found]

            def reference() -> list[Entry]:
                return [one for some in own([iter([run]) for run in runs], order) for one in some]

            entries = using.compared(merged, (runs,), reference)
            if entries:
                yield entries

        return merge

    using.function("db.tree.merge.merge", make)


def scans(using: Using) -> None:
    """Use the student's merge of all runs for a scan of the shell: see :func:`scanned`."""
    SCANS.append(using)


SCANS: list[Using] = []
"""The part that scans use, once it is installed."""


def scanned(db: Any, start: bytes, stop: bytes | None, backwards: bool) -> Iterator[Entry]:
    """Keys and values of a range, by the student's merge, a step at a time, beside the engine's."""
    own = db.iterator(start=start, stop=stop, reverse=backwards)
    if not SCANS or not SCANS[0].in_use():
        yield from own
        return
    using = SCANS[0]
    reader, view = db._reader.snapshot_view()
    try:
        yield from _beside(using, own, _runs(reader.store, view, backwards), start, stop, backwards)
    finally:
        view.release()


def _beside(
    using: Using,
    own: Iterable[Entry],
    runs: list[Iterator[Entry]],
    start: bytes,
    stop: bytes | None,
    backwards: bool,
) -> Iterator[Entry]:
    guard, mine = using.guard, using.mine

    def is_within(key: bytes) -> bool:
        return start <= key and (stop is None or key < stop)

    within = [(entry for entry in run if is_within(entry[0][:-8])) for run in runs]
    merged = guard.steps(using.part, mine.merge, ([guard.supply(run) for run in within], backwards))
    seen = mine.visible_backwards if backwards else mine.visible
    pairs = guard.steps(using.part, seen, (merged, _MOST))
    for number, right in enumerate(own, 1):
        if using.in_use():
            got = next(pairs, None)
            if got != right and using.in_use():
                what = f"entry {number} of a scan is {got!r}, not {right!r}"
                guard.fail(using.part, seen.__name__, what)
            elif got == right:
                guard.calls[using.part] += 1
        yield right
    if using.in_use() and (more := next(pairs, None)) is not None:
        guard.fail(using.part, seen.__name__, f"a scan continues after its end, with {more!r}")


def _runs(store: Any, view: Any, backwards: bool) -> list[Iterator[Entry]]:
    """The runs of a view, the newest first: memtables, tables of level 0, and each other level."""
    lists: list[list[list[Entry]]] = [list(view.view.memtable.entries())]
    if view.view.immutable is not None:
        lists.append(list(view.view.immutable.entries()))
    counters = type(store.counters.levels[0])()

    def table(file: Any) -> list[list[Entry]]:
        return list(store.tables.entries(file, counters, 1 << 16, 1 << 15))

    first, *deeper = view.view.version.levels
    lists += [table(file) for file in first]
    lists += [[some for file in level for some in table(file)] for level in deeper]
    runs: list[Iterator[Entry]] = []
    for some in lists:
        entries = [(key + one[:8], one[8:]) for chunk in some for key, one in chunk]
        runs.append(iter(reversed(entries) if backwards else entries))
    return runs
