"""The check of lab 11 at work: the student compacts the tables of a real store."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from types import ModuleType
from typing import NamedTuple

import lsmkv
from lsmkv.course.failure import CheckFailure, require, shown
from lsmkv.course.given import BLOCK_SIZE, Directory
from lsmkv.course.labs.edits import (
    COMPACT_POINTER,
    DELETED_FILE,
    LAST_SEQUENCE,
    NEW_FILE,
    NEXT_FILE_NUMBER,
    Field,
    encoded,
    levels_of,
    sort_key,
)
from lsmkv.course.labs.formats import (
    KIND_VALUE,
    LEVELS,
    entries_of_table,
    frame,
    manifest_in_force,
    table_of,
    version_key,
    version_of_store,
    write,
)
from lsmkv.course.labs.temporary_stores import require_content, require_content_by_leveldb, scratch
from lsmkv.engine.db.compact.picking import pick_compaction
from lsmkv.engine.db.tree.merge import live_entries, merge
from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.keys import InternalKeyComparator
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.files import make_key, make_name, parse_key

File = tuple[int, int, bytes, bytes]
Entry = tuple[bytes, int, bytes | None]

OPTIONS = lsmkv.Options()
ORDER = InternalKeyComparator(lsmkv.BytewiseComparator())
OUTPUT_BYTES = 5_000
"""The size at which the student's outputs are split."""


def version_of(levels: Sequence[Sequence[File]]) -> Version:
    """The engine's version with these tables."""
    return Version(
        ORDER,
        [
            [
                FileMetaData(number, size, make_key(smallest, 2), make_key(largest, 1))
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


class Choice(NamedTuple):
    """The compaction that the engine picks, with tables as a student gets them."""

    level: int
    score: float
    inputs: list[File]
    next_inputs: list[File]


def picked_by_the_engine(version: Version, pointers: Sequence[bytes | None]) -> Choice | None:
    """The engine's own choice; ``pointers`` are user keys, one for each level."""
    keys = [None if key is None else make_key(key, 1) for key in pointers]
    picked = pick_compaction(version, keys, OPTIONS)
    if picked is None:
        return None
    tables = ([file_of(file) for file in files] for files in (picked.inputs, picked.next_inputs))
    return Choice(picked.level, version.compaction_score, *tables)


def engine_held_deeper(levels: Sequence[Sequence[File]], output_level: int, key: bytes) -> bool:
    """The engine's own answer."""
    version = version_of(levels)
    return any(version.overlaps(level, key, key) for level in range(output_level + 1, LEVELS))


def engine_compact(
    runs: Sequence[Sequence[Entry]], oldest_snapshot: int, deep: Sequence[bytes]
) -> list[Entry]:
    """The entries that the engine's own merge leaves."""
    order = KeyOrder(lsmkv.BytewiseComparator())
    sources = [iter([[(entry[0], tagged_of(entry)) for entry in run]]) for run in runs]
    kept: list[Entry] = []
    for some in merge(sources, order):
        keys, tagged = live_entries(some, oldest_snapshot, order, lambda key: key not in deep)
        kept += [entry_of(*one) for one in zip(keys, tagged, strict=True)]
    return kept


def entry_of(user_key: bytes, tagged: bytes) -> Entry:
    """A version in a table, as a student gets it."""
    _, sequence, kind = parse_key(tagged[:8])
    assert sequence is not None
    return user_key, sequence, tagged[8:] if kind else None


def tagged_of(entry: Entry) -> bytes:
    """The tagged value of a student's version."""
    _, sequence, value = entry
    return version_key(b"", sequence, value) + (value or b"")


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
    # The third table of level 0 overlaps the others; the last one overlaps none of them.
    ranges = ((0, 120), (150, 290), (100, 200), (20, 110), (460, 490))
    level_0 = [run(sorted(dice.choices(keys[low:high], k=90)), 0.3) for low, high in ranges]
    return [level_0, level_1, deep]


def lay_out(directory: Directory, tables: list[list[list[Entry]]]) -> Version:
    """Make the tables of an empty store, and record them in its MANIFEST."""
    number = version_of_store(directory).next_file_number + 1
    files: list[Field] = []
    for level in reversed(range(len(tables))):
        for entries in tables[level]:
            files.append((NEW_FILE, level, *write_table(directory, number, entries)))
            number += 1
    last = max(entry[1] for level in tables for run in level for entry in run)
    commit(directory, [(NEXT_FILE_NUMBER, number), (LAST_SEQUENCE, last), *files])
    return version_on_disk(directory)


def version_on_disk(directory: Directory) -> Version:
    """The engine's version of a store, from its MANIFEST.

    ``CorruptionError`` if the tables of a level overlap.
    """
    levels = levels_of(version_of_store(directory))
    version = Version(ORDER, [[FileMetaData(*file) for file in files] for files in levels])
    try:
        version.check()
    except lsmkv.CorruptionError as error:
        path = f"{directory.path}/{manifest_in_force(directory)}"
        raise lsmkv.CorruptionError(error.reason, path) from None
    return version


def write_table(directory: Directory, number: int, entries: Sequence[Entry]) -> File:
    """A table of a student's entries; its first and last key are internal keys."""
    versions = [(version_key(*entry), entry[2] or b"") for entry in entries]
    table = table_of(versions)
    write(directory, make_name("table", number), table)
    return number, len(table), versions[0][0], versions[-1][0]


def commit(directory: Directory, fields: Sequence[Field]) -> None:
    """Append an edit to the MANIFEST."""
    name = manifest_in_force(directory)
    offset = directory.size(name) % BLOCK_SIZE
    with directory.append_to(name) as file:
        file.append(frame(encoded(fields), offset))
        file.sync()


def entries_in(directory: Directory, files: Sequence[File]) -> list[Entry]:
    """The entries of these tables, one table after the other."""
    return [
        (entry.user_key, entry.sequence, entry.value if entry.kind == KIND_VALUE else None)
        for file in files
        for entry in entries_of_table(directory, file[0])
    ]


def runs_of(directory: Directory, choice: Choice) -> list[list[Entry]]:
    """The runs that a compaction merges: as in the engine, one for each table of level 0, and one
    for those of the next level."""
    runs = [entries_in(directory, [file]) for file in choice.inputs]
    return [*runs, entries_in(directory, choice.next_inputs)]


def compacted_by_the_engine(tables: list[list[list[Entry]]], snapshot: int) -> list[Entry]:
    """Return the entries that the engine's own merge leaves of the same tables, in memory."""
    env = lsmkv.MemoryEnv()
    lsmkv.DB("store", create_if_missing=True, env=env).close()
    with env.open_directory("store") as directory:
        version = lay_out(directory, tables)
        choice = picked_by_the_engine(version, [None] * LEVELS)
        assert choice is not None
        runs = runs_of(directory, choice)
    levels = files_of_version(version)
    keys = {entry[0] for run in runs for entry in run}
    deep = [key for key in keys if engine_held_deeper(levels, choice.level + 1, key)]
    return engine_compact(runs, snapshot, deep)


def in_the_engine(code: ModuleType) -> str:
    """Check that a store reads as before, after the student picks and merges its tables."""
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
            with lsmkv.LocalEnv().open_directory(store) as opened:
                words = compact_store(code, opened, tables, snapshot, expected)
            what = "A store that your code compacted"
            require_content(store, content, what)
            by_leveldb = require_content_by_leveldb(store, content, what)
    return f"{words}; a store of {len(content)} keys reads as before{by_leveldb}; " + counted(code)


def compact_store(
    code: ModuleType,
    directory: Directory,
    tables: list[list[list[Entry]]],
    snapshot: int,
    expected: list[Entry],
) -> str:
    """Have the student carry out the compaction that a store needs."""
    version = lay_out(directory, tables)
    levels = files_of_version(version)
    require_urgent(code.level_scores(levels), version)
    choice = picked_by_the_engine(version, [None] * LEVELS)
    assert choice is not None
    require_picked(code.pick(levels, [None] * LEVELS), choice, "The store's tables")
    runs = runs_of(directory, choice)
    kept = code.compact(runs, snapshot, lambda key: code.held_deeper(levels, choice.level + 1, key))
    require_entries(
        kept, expected, runs, f"The store's compaction with the oldest snapshot at {snapshot}"
    )
    outputs = code.split(kept, OUTPUT_BYTES)
    together = [entry for output in outputs for entry in output]
    require(
        together == expected,
        f"The outputs of your split hold {len(together):,} entries, not the"
        f" {len(expected):,} that it got: the store would lose or change entries.",
    )
    number = max(version.numbers) + 1
    made = [write_table(directory, number + at, output) for at, output in enumerate(outputs)]
    inputs = [file for file in version.levels[choice.level] if file_of(file) in choice.inputs]
    pointer = max((file.largest for file in inputs), key=sort_key)
    fields: list[Field] = [
        (NEXT_FILE_NUMBER, number + len(made)),
        (COMPACT_POINTER, choice.level, pointer),
    ]
    fields += [(DELETED_FILE, choice.level, file[0]) for file in choice.inputs]
    fields += [(DELETED_FILE, choice.level + 1, file[0]) for file in choice.next_inputs]
    fields += [(NEW_FILE, choice.level + 1, *file) for file in made]
    commit(directory, fields)
    try:
        version_on_disk(directory)
    except lsmkv.CorruptionError as error:
        raise CheckFailure(f"The outputs of your split do not form a level. {error}") from None
    return (
        f"{sum(map(len, runs)):,} entries of {len(choice.inputs)} +"
        f" {len(choice.next_inputs)} tables became {len(kept):,} in {len(made)}"
    )


def require_urgent(got: object, version: Version) -> None:
    """Fail unless the highest of the student's scores is the one that the engine uses."""
    require(
        isinstance(got, list) and len(got) == LEVELS - 1,
        f"level_scores must return a list of {LEVELS - 1} scores, not {shown(got)}.",
    )
    assert isinstance(got, list)
    level = max(range(len(got)), key=got.__getitem__)
    require(
        level == version.compaction_level and abs(got[level] - version.compaction_score) < 1e-9,
        f"The engine finds that level {version.compaction_level} of the store needs a compaction"
        f" most, with a score of {version.compaction_score:g}; by your scores it is level {level},"
        f" with {got[level]:g}.",
    )


def require_picked(got: object, expected: Choice | None, what: str, hint: str = "") -> None:
    """Fail unless the student picked what the engine picks; the tables may be in any order."""
    end = f"\n{hint}" if hint else ""
    if expected is None:
        require(
            got is None,
            f"{what}: no level has a score of 1.0 or more, so pick must return None, but your code"
            f" returned {shown(got)}.{end}",
        )
        return
    require(
        got is not None,
        f"{what}: level {expected.level} has a score of {expected.score:g}, but"
        f" your pick returned None.\nFrom exactly 1.0 on, a level needs a compaction.{end}",
    )
    require(
        isinstance(got, tuple) and len(got) == 3 and all(map(are_tables, got[1:])),
        f"{what}: pick must return a level and two lists of tables, not {shown(got)}.",
    )
    assert isinstance(got, tuple)
    require(
        got[0] == expected.level,
        f"{what}: pick must take level {expected.level}, which has the highest score, but yours"
        f" took level {got[0]}.{end}",
    )
    for place, files in ((1, expected.inputs), (2, expected.next_inputs)):
        wanted = sorted(files)
        level = expected.level + place - 1
        require(
            sorted(got[place]) == wanted,
            f"{what}: from level {level}, pick must take {numbers(wanted)}, but yours took"
            f" {numbers(sorted(got[place]))}.{end}",
        )


def are_tables(got: object) -> bool:
    """True if a student's result is a list of tables."""
    return isinstance(got, list) and all(isinstance(one, tuple) and len(one) == 4 for one in got)


def numbers(files: Sequence[File]) -> str:
    """Tables in a message."""
    if not files:
        return "no tables"
    words = ", ".join(str(file[0]) for file in files)
    return f"table {words}" if len(files) == 1 else f"the tables {words}"


def require_entries(
    got: object, expected: list[Entry], runs: Sequence[Sequence[Entry]], what: str, hint: str = ""
) -> None:
    """Fail unless the student's compaction kept what the engine's keeps."""
    require(
        isinstance(got, list) and all(isinstance(one, tuple) and len(one) == 3 for one in got),
        f"{what}: compact must return a list of entries, not {shown(got)}.",
    )
    assert isinstance(got, list)
    end = f"\n{hint}" if hint else ""
    for entry in expected:
        if entry not in got:
            raise CheckFailure(
                f"{what}: your code dropped {words(entry)}, which must be kept.\n"
                f"{why_kept(entry, expected)}{end}"
            )
    for entry in got:
        if entry not in expected:
            raise CheckFailure(
                f"{what}: your code kept {words(entry)}, which must be dropped.\n"
                f"{why_dropped(entry, runs)}{end}"
            )
    require(
        got == expected,
        f"{what}: the entries are right, but in the wrong order.\nSort them by key and, for each"
        " key, the newest first.",
    )


def words(entry: Entry) -> str:
    """A version in a message."""
    key, sequence, value = entry
    what = "the deletion" if value is None else "the version"
    return f"{what} of {key!r} with sequence {sequence}"


def why_kept(entry: Entry, expected: list[Entry]) -> str:
    """Explain why a compaction has to keep an entry."""
    newer = [other for other in expected if other[0] == entry[0] and other[1] > entry[1]]
    if newer:
        return (
            f"A snapshot needs it: a reader below sequence {newer[-1][1]} does not see the newer"
            " version, and reads this one."
        )
    if entry[2] is None:
        return (
            "A deletion is dropped too early if a deeper level may hold an older version of the"
            " key, or if it is newer than the oldest snapshot: the dead key comes back."
        )
    return "It is the newest version of its key."


def why_dropped(entry: Entry, runs: Sequence[Sequence[Entry]]) -> str:
    """Explain why a compaction has to drop an entry."""
    if not any(entry in run for run in runs):
        return "It is in none of the runs."
    if any(other[0] == entry[0] and other[1] > entry[1] for run in runs for other in run):
        return (
            "A newer version of the key is visible to every reader, at or below the oldest"
            " snapshot, so none can see this one."
        )
    return (
        "No deeper level holds the key, and every reader sees the deletion: it has nothing left"
        " to hide."
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
