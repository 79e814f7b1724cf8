"""The check of lab 11 at work: the student compacts the tables of a real store."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from types import ModuleType

import lsmkv
from lsmkv.counters import NUM_LEVELS, Counters, ReadCounters
from lsmkv.course.failure import CheckFailure, require, shown
from lsmkv.course.labs.scratch import require_content, require_content_by_leveldb, scratch
from lsmkv.db.compact.compaction import CompactionJob
from lsmkv.db.compact.picking import Compaction, pick_compaction
from lsmkv.db.tree.manifest import Manifest, read_manifest
from lsmkv.db.tree.table_cache import TableCache
from lsmkv.db.tree.table_output import write_entries
from lsmkv.db.tree.version import Version
from lsmkv.env.base import Directory
from lsmkv.env.local import LocalEnv
from lsmkv.env.memory import MemoryEnv
from lsmkv.format.filenames import read_current
from lsmkv.format.keys import InternalKeyComparator, pack, unpack
from lsmkv.format.log import BLOCK_SIZE, frame
from lsmkv.format.version_edit import FileMetaData, VersionEdit
from lsmkv.options import Options
from lsmkv.util.comparator import BYTEWISE

File = tuple[int, int, bytes, bytes]
Entry = tuple[bytes, int, bytes | None]

OPTIONS = Options()
ORDER = InternalKeyComparator(BYTEWISE)
OUTPUT_BYTES = 5_000
"""Where the student's outputs are split."""


def version_of(levels: Sequence[Sequence[File]]) -> Version:
    """The engine's version with these tables."""
    return Version(
        ORDER,
        [
            [
                FileMetaData(number, size, pack(smallest, 2, 1), pack(largest, 1, 1))
                for number, size, smallest, largest in files
            ]
            for files in levels
        ],
    )


def files_of_version(version: Version) -> list[list[File]]:
    """The tables of a version, as a student gets them."""
    return [[file_of(file) for file in files] for files in version.levels]


def file_of(file: FileMetaData) -> File:
    """A table, as a student gets it."""
    return file.number, file.size, file.smallest[:-8], file.largest[:-8]


def entry_of(user_key: bytes, tagged: bytes) -> Entry:
    """A version in a table, as a student gets it."""
    _, sequence, kind = unpack(user_key + tagged[:8])
    return user_key, sequence, tagged[8:] if kind else None


def tagged_of(entry: Entry) -> bytes:
    """The tagged value of a student's version."""
    _, sequence, value = entry
    return pack(b"", sequence, int(value is not None)) + (value or b"")


def history() -> list[list[list[Entry]]]:
    """The tables of a store, by level and in the order of their numbers: old data on level 2,
    newer on level 1, and five tables on level 0, which overlap."""
    dice = random.Random(11)
    keys = [b"key%03d" % number for number in range(500)]
    sequence = 0

    def run(chosen: list[bytes], deletions: float) -> list[Entry]:
        nonlocal sequence
        entries: list[Entry] = []
        for key in chosen:
            sequence += 1
            gone = dice.random() < deletions
            entries.append((key, sequence, None if gone else dice.randbytes(60)))
        return sorted(entries, key=lambda entry: (entry[0], -entry[1]))

    old = run(keys[100:300:2], 0)
    middle = run(keys[::3], 0)
    deep = [old[:50], old[50:]]
    level_1 = [middle[at : at + 45] for at in range(0, len(middle), 45)]
    # The third table of level 0 reaches over the others; the last is apart from all of them.
    ranges = ((0, 120), (150, 290), (100, 200), (20, 110), (460, 490))
    level_0 = [run(sorted(dice.choices(keys[low:high], k=90)), 0.3) for low, high in ranges]
    return [level_0, level_1, deep]


def lay_out(directory: Directory, tables: list[list[list[Entry]]]) -> Manifest:
    """Make the tables of a store that is empty, and tell its MANIFEST."""
    name = read_current(directory)
    state = read_manifest(directory, name)
    number = state.next_file_number + 1
    edit = VersionEdit()
    for level in reversed(range(len(tables))):
        for entries in tables[level]:
            edit.add_file(level, write_table(directory, number, entries))
            number += 1
    edit.next_file_number = number
    edit.last_sequence = max(entry[1] for level in tables for run in level for entry in run)
    commit(directory, edit)
    return read_manifest(directory, name)


def write_table(directory: Directory, number: int, entries: Sequence[Entry]) -> FileMetaData:
    """A table of a student's entries."""
    columns = [entry[0] for entry in entries], [tagged_of(entry) for entry in entries]
    return write_entries([columns], directory, number, OPTIONS)


def commit(directory: Directory, edit: VersionEdit) -> None:
    """Append an edit to the MANIFEST."""
    name = read_current(directory)
    offset = directory.size(name) % BLOCK_SIZE
    with directory.append_to(name) as file:
        file.append(frame(edit.encode(), offset))
        file.sync()


def entries_in(tables: TableCache, files: Sequence[FileMetaData]) -> list[Entry]:
    """What these tables hold, one after the other."""
    return [
        entry_of(*entry)
        for file in files
        for some in tables.entries(file, ReadCounters(), 0, 1 << 20)
        for entry in some
    ]


def compacted_by_the_engine(tables: list[list[list[Entry]]], snapshot: int) -> list[Entry]:
    """What the engine's own compaction leaves of the same tables, in a store in memory."""
    env = MemoryEnv()
    lsmkv.DB("store", create_if_missing=True, env=env).close()
    with env.open_directory("store") as directory:
        state = lay_out(directory, tables)
        compaction = pick_compaction(state.version(ORDER), [None] * NUM_LEVELS, OPTIONS)
        assert compaction is not None
        numbers = iter(range(state.next_file_number, state.next_file_number + 100))
        cache = TableCache(directory, OPTIONS, Counters())
        job = CompactionJob(
            compaction, directory, cache, OPTIONS, lambda: next(numbers), oldest_pinned=snapshot
        )
        return entries_in(cache, job.run(lambda: None))


def in_the_engine(code: ModuleType) -> str:
    """The student picks and merges the tables of a store, which reads as before."""
    tables = history()
    last = max(entry[1] for level in tables for run in level for entry in run)
    content: dict[bytes, bytes | None] = {}
    for key, _, value in sorted(
        (entry for level in tables for run in level for entry in run), key=lambda entry: entry[1]
    ):
        content[key] = value
    for snapshot in (last - 200, last):
        expected = compacted_by_the_engine(tables, snapshot)
        with scratch() as directory:
            store = os.path.join(directory, "store")
            lsmkv.DB(store, create_if_missing=True).close()
            with LocalEnv().open_directory(store) as opened:
                told = compact_store(code, opened, tables, snapshot, expected)
            what = "A store that your code compacted"
            require_content(store, content, what)
            by_leveldb = require_content_by_leveldb(store, content, what)
    return f"{told}; a store of {len(content)} keys reads as before{by_leveldb}; " + counted(code)


def compact_store(
    code: ModuleType,
    directory: Directory,
    tables: list[list[list[Entry]]],
    snapshot: int,
    expected: list[Entry],
) -> str:
    """Let the student carry out the compaction that a store needs."""
    version = lay_out(directory, tables).version(ORDER)
    cache = TableCache(directory, OPTIONS, Counters())
    levels = files_of_version(version)
    require_urgent(code.level_scores(levels), version)
    compaction = pick_compaction(version, [None] * NUM_LEVELS, OPTIONS)
    assert compaction is not None
    require_picked(code.pick(levels, [None] * NUM_LEVELS), compaction, "The store's tables")
    # As the engine does: a run for each table of level 0, and one for those of the next level.
    runs = [entries_in(cache, [file]) for file in compaction.inputs]
    runs.append(entries_in(cache, compaction.next_inputs))
    kept = code.compact(
        runs, snapshot, lambda key: code.held_deeper(levels, compaction.output_level, key)
    )
    require_entries(
        kept, expected, runs, f"The store's compaction with the oldest snapshot at {snapshot}"
    )
    outputs = code.split(kept, OUTPUT_BYTES)
    together = [entry for output in outputs for entry in output]
    require(
        together == expected,
        f"The outputs of your split hold {len(together):,} entries, not the"
        f" {len(expected):,} that were to be split: the store would lose some, or change them.",
    )
    number = max(version.numbers) + 1
    made = [write_table(directory, number + at, output) for at, output in enumerate(outputs)]
    edit = compaction.edit(made)
    edit.next_file_number = number + len(made)
    commit(directory, edit)
    try:
        read_manifest(directory, read_current(directory)).version(ORDER)
    except lsmkv.CorruptionError as error:
        raise CheckFailure(f"The outputs of your split make no level. {error}") from None
    return (
        f"{sum(map(len, runs)):,} entries of {len(compaction.inputs)} +"
        f" {len(compaction.next_inputs)} tables became {len(kept):,} in {len(made)}"
    )


def require_urgent(got: object, version: Version) -> None:
    """The highest of the student's scores is the one that the engine goes by."""
    require(
        isinstance(got, list) and len(got) == NUM_LEVELS - 1,
        f"level_scores must return a list of {NUM_LEVELS - 1} scores, not {shown(got)}.",
    )
    assert isinstance(got, list)
    level = max(range(len(got)), key=got.__getitem__)
    require(
        level == version.compaction_level and abs(got[level] - version.compaction_score) < 1e-9,
        f"The engine finds that level {version.compaction_level} of the store needs a compaction"
        f" most, with a score of {version.compaction_score:g}; by your scores it is level {level},"
        f" with {got[level]:g}.",
    )


def require_picked(got: object, expected: Compaction | None, what: str, hint: str = "") -> None:
    """The student picked what the engine picks; the tables may be in any order."""
    end = f"\n{hint}" if hint else ""
    if expected is None:
        require(
            got is None,
            f"{what}: no level has a score of 1.0 or more, so pick must return None, and your code"
            f" returned {shown(got)}.{end}",
        )
        return
    require(
        got is not None,
        f"{what}: level {expected.level} has a score of {expected.version.compaction_score:g}, and"
        f" your pick returned None.\nFrom exactly 1.0 on, a level needs a compaction.{end}",
    )
    require(
        isinstance(got, tuple) and len(got) == 3 and all(map(are_tables, got[1:])),
        f"{what}: pick must return a level and two lists of tables, not {shown(got)}.",
    )
    assert isinstance(got, tuple)
    require(
        got[0] == expected.level,
        f"{what}: pick must take level {expected.level}, which has the highest score, and yours"
        f" took level {got[0]}.{end}",
    )
    for place, files in ((1, expected.inputs), (2, expected.next_inputs)):
        wanted = sorted(map(file_of, files))
        level = expected.level + place - 1
        require(
            sorted(got[place]) == wanted,
            f"{what}: of level {level}, pick must take {numbers(wanted)}, and yours took"
            f" {numbers(sorted(got[place]))}.{end}",
        )


def are_tables(got: object) -> bool:
    """Whether a student's result is a list of tables."""
    return isinstance(got, list) and all(isinstance(one, tuple) and len(one) == 4 for one in got)


def numbers(files: Sequence[File]) -> str:
    """Tables in a message."""
    if not files:
        return "no tables"
    told = ", ".join(str(file[0]) for file in files)
    return f"table {told}" if len(files) == 1 else f"the tables {told}"


def require_entries(
    got: object, expected: list[Entry], runs: Sequence[Sequence[Entry]], what: str, hint: str = ""
) -> None:
    """The student's compaction kept what the engine's keeps."""
    require(
        isinstance(got, list) and all(isinstance(one, tuple) and len(one) == 3 for one in got),
        f"{what}: compact must return a list of entries, not {shown(got)}.",
    )
    assert isinstance(got, list)
    end = f"\n{hint}" if hint else ""
    for entry in expected:
        if entry not in got:
            raise CheckFailure(
                f"{what}: your code dropped {told(entry)}, which must stay.\n"
                f"{why_kept(entry, expected)}{end}"
            )
    for entry in got:
        if entry not in expected:
            raise CheckFailure(
                f"{what}: your code kept {told(entry)}, which must go.\n"
                f"{why_dropped(entry, runs)}{end}"
            )
    require(
        got == expected,
        f"{what}: the entries are the right ones, in a wrong order.\nThey go by key and, of one"
        " key, the newest first.",
    )


def told(entry: Entry) -> str:
    """A version in a message."""
    key, sequence, value = entry
    what = "the deletion" if value is None else "the version"
    return f"{what} of {key!r} with sequence {sequence}"


def why_kept(entry: Entry, expected: list[Entry]) -> str:
    """Why a compaction has to keep an entry."""
    newer = [other for other in expected if other[0] == entry[0] and other[1] > entry[1]]
    if newer:
        return (
            f"A snapshot needs it: a reader below sequence {newer[-1][1]} does not see the newer"
            " version, and this one is what it reads."
        )
    if entry[2] is None:
        return (
            "A deletion is dropped too early if a deeper level may hold an older version of the"
            " key, or if it is newer than the oldest snapshot: the dead key comes back."
        )
    return "It is the newest version of its key."


def why_dropped(entry: Entry, runs: Sequence[Sequence[Entry]]) -> str:
    """Why a compaction has to drop an entry."""
    if not any(entry in run for run in runs):
        return "It is in none of the runs."
    if any(other[0] == entry[0] and other[1] > entry[1] for run in runs for other in run):
        return (
            "A newer version of the key is visible to every reader, at or below the oldest"
            " snapshot, so none can see this one."
        )
    return (
        "No deeper level holds the key, and every reader sees the deletion: there is nothing left"
        " that it hides."
    )


def counted(code: ModuleType) -> str:
    """The write amplification of a store, from its counters."""
    dice = random.Random(12)
    with scratch() as directory:
        store = os.path.join(directory, "store")
        with lsmkv.DB(store, create_if_missing=True, compression=None) as db:
            for _ in range(5):
                for _ in range(400):
                    db.put(b"key%04d" % dice.randrange(1000), dice.randbytes(100))
                db.flush()
            db.compact_range()
            stats = db.stats()
    got = code.write_amplification(
        stats.user_bytes, stats.flush_bytes, stats.compaction_bytes_written
    )
    expected = stats.write_amplification - stats.log_bytes / stats.user_bytes
    require(
        isinstance(got, float) and abs(got - expected) < 1e-9,
        f"A store wrote {expected:.4f} bytes to tables for each byte put, by db.stats(), and by"
        f" your write_amplification {shown(got)}.\nFlushes wrote {stats.flush_bytes:,} bytes,"
        f" compactions {stats.compaction_bytes_written:,}; the user put {stats.user_bytes:,}.",
    )
    return f"another one wrote {got:.2f} bytes to tables for each byte put"
