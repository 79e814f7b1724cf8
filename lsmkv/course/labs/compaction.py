"""Lab 11: compaction: what is merged, what is dropped, and what it costs."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from types import ModuleType

from lsmkv.course.failure import CheckFailure, require, require_equal, shown
from lsmkv.course.lab import Check, Lab
from lsmkv.course.labs.compacting import (
    Choice,
    Entry,
    File,
    are_tables,
    engine_compact,
    engine_held_deeper,
    file_of,
    in_the_engine,
    numbers,
    picked_by_the_engine,
    require_entries,
    require_picked,
    tagged_of,
    version_of,
)
from lsmkv.course.labs.formats import LEVELS
from lsmkv.tools.text import count

MIB = 2**20
Levels = list[list[File]]
LETTERS = b"abcdefghijklmnopqrstuvwxyz"


def levels_of(**tables: Sequence[tuple[int, float, str, str]]) -> Levels:
    """Levels from tables such as ``l1=[(7, 1.5, "a", "f")]``; sizes are in MiB."""
    return [
        [
            (number, int(size * MIB), begin.encode(), end.encode())
            for number, size, begin, end in tables.get(f"l{level}", ())
        ]
        for level in range(LEVELS)
    ]


def engine_scores(levels: Levels) -> list[float]:
    """The score of each level, from an engine's version with only that level."""
    scores: list[float] = []
    for level in range(LEVELS - 1):
        alone = [files if at == level else [] for at, files in enumerate(levels)]
        scores.append(version_of(alone).compaction_score)
    return scores


def scores(code: ModuleType) -> str:
    """Scores of levels, empty ones and full ones."""
    small = [(9 - number, 0.01, "a", "b") for number in range(4)]
    cases = (
        ("an empty store", levels_of(), "An empty level has a score of 0.0."),
        (
            "a store with four small tables on level 0",
            levels_of(l0=small),
            "Level 0 is scored by the number of its tables, whatever their sizes: divide by 4.",
        ),
        (
            "a store with 10 MiB on level 1",
            levels_of(l1=[(5, 10, "a", "b")]),
            "Level 1 may hold 10 MiB, which is 10 * 2**20 bytes.",
        ),
        (
            "a store with 50 MiB on level 2 and 5 on level 1",
            levels_of(l1=[(5, 5, "a", "b")], l2=[(6, 25, "a", "b"), (7, 25, "c", "d")]),
            "Each level may hold ten times as much as the one above: level 2 holds 100 MiB.",
        ),
        (
            "a store with data on all levels",
            levels_of(**{f"l{n}": [(n + 1, 3.0 * 10**n, "a", "b")] for n in range(LEVELS)}),
            "The last level, 6, has no score: nothing moves down from it.",
        ),
    )
    for what, levels, hint in cases:
        expected = engine_scores(levels)
        got = code.level_scores(levels)
        require(
            isinstance(got, list) and len(got) == len(expected),
            f"level_scores of {what} must be a list of {len(expected)} scores, for the levels 0 to"
            f" 5, but your code returned {shown(got)}.\nThe last level, 6, has no score: nothing"
            " moves down from it.",
        )
        for level, (mine, right) in enumerate(zip(got, expected, strict=True)):
            require(
                isinstance(mine, float) and abs(mine - right) < 1e-9,
                f"level_scores of {what}: level {level} must have {right:g}, but yours has"
                f" {shown(mine)}.\n{hint}",
            )
    return f"{len(cases)} stores"


def overlaps(code: ModuleType) -> str:
    """Tables of a range, on sorted levels and on level 0."""
    sorted_level = [(1, 1, "b", "d"), (2, 1, "f", "h"), (3, 1, "k", "m")]
    chain = [
        (9, 1, "p", "q"),
        (8, 1, "g", "k"),
        (7, 1, "a", "c"),
        (6, 1, "e", "h"),
        (5, 1, "c", "e"),
    ]
    levels = levels_of(l0=chain, l1=sorted_level)
    edge = "Both ends of a range belong to it, and so do both ends of a table."
    grow = (
        "On level 0 the range grows with each table that is taken, until no other overlaps it:"
        " a table that was skipped at first may have to be added later."
    )
    cases = (
        (1, "e", "e", "No table is there."),
        (1, "a", "z", "All tables are there."),
        (1, "d", "d", edge),
        (1, "e", "f", edge),
        (1, "g", "g", "The range is within a table."),
        (1, "c", "g", "On a sorted level the range does not grow."),
        (0, "p", "p", "One table is there, and no other overlaps it."),
        (0, "d", "d", grow),
        (0, "a", "a", grow),
        (0, "i", "j", grow),
        (0, "r", "z", "No table is there."),
    )
    for level, begin, end, hint in cases:
        require_tables(code, levels, level, (begin.encode(), end.encode()), hint)
    dice = random.Random(0)
    for _ in range(200):
        levels = random_levels(dice)
        first, last = sorted(dice.choices(LETTERS, k=2))
        require_tables(code, levels, dice.randrange(3), (bytes([first]), bytes([last])), "")
    return f"{len(cases) + 200} ranges"


def require_tables(
    code: ModuleType, levels: Levels, level: int, ends: tuple[bytes, bytes], hint: str
) -> None:
    """Fail unless the student finds the tables that the engine finds."""
    expected = [file_of(file) for file in version_of(levels).overlapping(level, *ends)]
    got = code.overlapping(levels, level, *ends)
    what = f"overlapping(levels, {level}, {ends[0]!r}, {ends[1]!r})"
    require(are_tables(got), f"{what} must return a list of tables, not {shown(got)}.")
    ranges = ", ".join(f"{file[0]} {ends_of(file)}" for file in levels[level])
    end = f"\n{hint}" if hint else ""
    require(
        got == expected,
        f"{what} must return {numbers(expected)}, but yours returned {numbers(got)}.\nLevel"
        f" {level} has {ranges or 'no tables'}.{end}",
    )


def ends_of(file: File) -> str:
    """The range of a table in a message."""
    return f"{file[2].decode()}..{file[3].decode()}"


def random_levels(dice: random.Random) -> Levels:
    """Level 0 with tables that overlap, and sorted levels."""
    levels: Levels = [[] for _ in range(LEVELS)]
    number = 100
    for _ in range(dice.randrange(7)):
        begin = dice.randrange(26)
        end = min(25, begin + dice.randrange(5))
        number -= 1
        levels[0].append((number, MIB, LETTERS[begin : begin + 1], LETTERS[end : end + 1]))
    for level in (1, 2, 3):
        ends = sorted(dice.sample(LETTERS, 2 * dice.randrange(8)))
        for begin, end in zip(ends[::2], ends[1::2], strict=True):
            number -= 1
            size = dice.randrange(1, 5) * MIB
            levels[level].append((number, size, bytes([begin]), bytes([end])))
    return levels


def choices(code: ModuleType) -> str:
    """Check the choice of the level, of its tables, and of the tables of the next level."""
    four = [(9 - n, 0.1, "abxy"[n], "bcyz"[n]) for n in range(4)]
    three = [(1, 4, "a", "d"), (2, 4, "f", "h"), (3, 4, "k", "m")]
    below = [(11, 9, "c", "e"), (12, 9, "h", "j"), (13, 9, "n", "p")]
    cases: tuple[tuple[str, Levels, dict[int, bytes], str], ...] = (
        ("Three tables on level 0", levels_of(l0=four[:3]), {}, ""),
        (
            "Four tables on level 0",
            levels_of(l0=four),
            {},
            "Begin with the table with the lowest smallest key, and take all that overlap it:"
            " otherwise an older version stays above a newer one.",
        ),
        (
            "Five tables on level 0, and 20 MiB on level 1",
            levels_of(l0=[*four, (1, 0.1, "e", "f")], l1=[(21, 20, "a", "m")]),
            {},
            "The level with the highest score is taken, not the first one above 1.",
        ),
        (
            "Level 1 full, level 2 holding some of its keys",
            levels_of(l1=three, l2=below),
            {},
            "Without a pointer, the level's first table is taken.",
        ),
        (
            "Level 1 full, its last compaction at d",
            levels_of(l1=three),
            {1: b"d"},
            "Take the first table that reaches beyond the pointer, so that compactions go through"
            " all keys in turn.",
        ),
        (
            "Level 1 full, its last compaction at m",
            levels_of(l1=three, l2=below),
            {1: b"m"},
            "No table reaches beyond the pointer: begin again at the first table.",
        ),
        (
            "Level 0 full, its tables in two groups",
            levels_of(
                l0=[(9, 1, "x", "y"), (8, 1, "c", "f"), (7, 1, "a", "d"), (6, 1, "f", "h")],
                l1=[(21, 1, "b", "c"), (22, 1, "g", "j"), (23, 1, "u", "v")],
            ),
            {},
            "Tables of level 0 that overlap are taken together: otherwise an older version stays"
            " above a newer one. The next level's tables are those in the range of all inputs.",
        ),
        (
            "Level 1 full, three of its tables above one of level 2",
            levels_of(l1=three, l2=[(11, 9, "a", "z")]),
            {},
            "The inputs widen if that takes no more tables of the next level: they cost nothing.",
        ),
        (
            "Level 1 full, where widening would take more of level 2",
            levels_of(l1=three, l2=[(11, 9, "c", "g"), (12, 9, "h", "j")]),
            {},
            "The inputs do not widen if that takes more tables of the next level.",
        ),
        (
            "Level 1 full, above large tables",
            levels_of(l1=three, l2=[(11, 45, "a", "z")]),
            {},
            "The inputs do not widen to 50 MiB or more, both levels together.",
        ),
        (
            "Level 1 full, where widening would make exactly 50 MiB",
            levels_of(l1=three, l2=[(11, 38, "a", "z")]),
            {},
            "Exactly 50 MiB is too much: the inputs widen to less than 50 MiB.",
        ),
    )
    for what, levels, pointer, hint in cases:
        require_pick(code, levels, [pointer.get(n) for n in range(LEVELS)], what, hint)
    dice = random.Random(2)
    for number in range(200):
        pointers = [dice.choice((None, bytes([dice.choice(LETTERS)]))) for _ in range(LEVELS)]
        levels = random_levels(dice)
        require_pick(code, levels, pointers, f"Random levels {number}: {described(levels)}", "")
    return f"{len(cases) + 200} stores"


def described(levels: Levels) -> str:
    """Levels in a message."""
    words = [
        f"level {level}: " + ", ".join(f"{file[0]} {ends_of(file)}" for file in files)
        for level, files in enumerate(levels)
        if files
    ]
    return "; ".join(words) or "no tables"


def require_pick(
    code: ModuleType, levels: Levels, pointers: list[bytes | None], what: str, hint: str
) -> None:
    """Fail unless the student picks what the engine picks."""
    require_picked(code.pick(levels, pointers), engine_pick(levels, pointers), what, hint)


def engine_pick(levels: Levels, pointers: Sequence[bytes | None]) -> Choice | None:
    """The engine's own choice."""
    return picked_by_the_engine(version_of(levels), pointers)


def deeper(code: ModuleType) -> str:
    """Check that a deletion is kept if it still hides something below."""
    levels = levels_of(
        l0=[(9, 1, "a", "z")],
        l1=[(8, 1, "b", "c")],
        l2=[(5, 1, "d", "f"), (6, 1, "k", "m")],
        l4=[(2, 1, "p", "r")],
    )
    held = "A table of the level may hold it: the key is in its range, ends included."
    cases = (
        (1, "b", "The level of the outputs is merged: its versions of the key are inputs."),
        (2, "e", "The level of the outputs is merged: its versions of the key are inputs."),
        (1, "e", held),
        (1, "d", held),
        (1, "m", held),
        (1, "q", "Look at all levels below that of the outputs, not only at the next one."),
        (1, "g", "No level below has the key in a table's range."),
        (4, "q", "There is nothing below."),
        (6, "q", "There is nothing below the last level."),
    )
    for level, key, hint in cases:
        expected = engine_held_deeper(levels, level, key.encode())
        call = f"held_deeper(levels, {level}, {key.encode()!r})"
        require_equal(code.held_deeper(levels, level, key.encode()), expected, call, hint)
    return f"{len(cases)} keys"


SAMPLE: tuple[list[Entry], ...] = (
    [(b"ant", 9, b"A"), (b"bee", 8, None), (b"cat", 5, None)],
    [(b"ant", 6, b"B"), (b"bee", 4, b"C"), (b"dog", 3, None)],
    [(b"ant", 2, b"D"), (b"cat", 1, b"E")],
)
"""Runs whose merge the text shows."""
SNAPSHOT = 6
DEEP = (b"dog",)
"""Keys that a deeper level may hold."""


def versions(code: ModuleType) -> str:
    """Check that older versions are dropped, except those that a snapshot reads."""
    put: list[list[Entry]] = [
        [(b"ant", 9, b"new"), (b"bee", 8, b"only")],
        [(b"ant", 6, b"middle"), (b"cat", 5, b"only")],
        [(b"ant", 2, b"old")],
    ]
    for snapshot, hint in (
        (9, "No snapshot is older than the newest version, so only that stays."),
        (8, "A reader at 8 does not see version 9, so version 6 stays; no reader needs version 2."),
        (6, "A version at exactly the oldest snapshot is visible to every reader."),
        (5, "A reader at 5 reads version 2, so all three stay."),
        (1, "All three versions are newer than the oldest snapshot: all stay."),
    ):
        require_compacted(code, put, snapshot, (), hint)
    dice = random.Random(20)
    for _ in range(100):
        runs = random_runs(dice, 0.0)
        require_compacted(code, runs, dice.randrange(1, 60), (), "")
    return "105 merges"


def deletions(code: ModuleType) -> str:
    """Check that deletions are dropped when they no longer hide anything."""
    cases: tuple[tuple[list[list[Entry]], int, tuple[bytes, ...], str], ...] = (
        ([[(b"ant", 5, None)]], 9, (), ""),
        ([[(b"ant", 5, None)]], 9, (b"ant",), ""),
        ([[(b"ant", 5, None)]], 5, (), "It is at the oldest snapshot: every reader sees it."),
        ([[(b"ant", 5, None)]], 4, (), ""),
        ([[(b"ant", 5, None)], [(b"ant", 3, b"x")]], 9, (), "Both are dropped together."),
        ([[(b"ant", 5, None)], [(b"ant", 3, b"x")]], 9, (b"ant",), ""),
        ([[(b"ant", 5, None)], [(b"ant", 3, b"x")]], 4, (), ""),
        ([[(b"ant", 7, b"y")], [(b"ant", 5, None)]], 6, (), "The old deletion hides nothing."),
        ([[(b"ant", 7, b"y")], [(b"ant", 5, None)]], 6, (b"ant",), ""),
    )
    for runs, snapshot, deep, hint in cases:
        require_compacted(code, runs, snapshot, deep, hint)
    require_compacted(code, SAMPLE, SNAPSHOT, DEEP, "This is the example of the text.")
    dice = random.Random(21)
    for _ in range(200):
        deep = tuple(bytes([key]) for key in dice.sample(LETTERS[:8], 3))
        require_compacted(code, random_runs(dice, 0.4), dice.randrange(1, 60), deep, "")
    return f"{len(cases) + 201} merges"


def random_runs(dice: random.Random, deletions: float) -> list[list[Entry]]:
    """Runs with many versions of few keys."""
    runs: list[list[Entry]] = [[] for _ in range(4)]
    for sequence in range(1, 51):
        value = None if dice.random() < deletions else b"%d" % sequence
        dice.choice(runs).append((bytes([dice.choice(LETTERS[:8])]), sequence, value))
    return [sorted(run, key=lambda entry: (entry[0], -entry[1])) for run in runs]


def require_compacted(
    code: ModuleType,
    runs: Sequence[list[Entry]],
    snapshot: int,
    deep: Sequence[bytes],
    hint: str,
) -> None:
    """Fail unless the student's merge leaves what the engine's leaves."""
    got = code.compact([list(run) for run in runs], snapshot, lambda key: key in deep)
    what = f"A merge of {count(len(runs), 'run')} with the oldest snapshot at {snapshot}"
    require_entries(got, engine_compact(runs, snapshot, deep), runs, what, hint)


def splits(code: ModuleType) -> str:
    """Outputs of the right size, and all versions of a key in one."""
    dice = random.Random(3)
    done = 0
    for limit in (1, 10, 30, 100, 10_000):
        for _ in range(20):
            runs = random_runs(dice, 0.2)
            entries = sorted(
                (entry for run in runs for entry in run), key=lambda entry: (entry[0], -entry[1])
            )
            require_split(code.split(list(entries), limit), entries, limit)
            done += 1
    whole: list[Entry] = [(b"a", 2, bytes(11)), (b"b", 1, bytes(11)), (b"c", 3, bytes(11))]
    require_split(code.split(whole, 20), whole, 20)
    require_split(code.split([], 20), [], 20)
    return f"{done + 2} lists of entries"


def size_of(entry: Entry) -> int:
    """Bytes of an entry as ``split`` counts them."""
    return len(entry[0]) + 8 + len(entry[2] or b"")


def require_split(got: object, entries: list[Entry], limit: int) -> None:
    """Fail unless the outputs are right; there is only one right answer."""
    what = f"split of {len(entries)} entries at {limit:,} bytes"
    require(
        isinstance(got, list) and all(isinstance(output, list) for output in got),
        f"{what} must return a list of lists, not {shown(got)}.",
    )
    assert isinstance(got, list)
    require(
        all(got),
        f"{what}: an output holds no entries.\nBegin an output only when there is an entry for it.",
    )
    together = [entry for output in got for entry in output]
    require(
        together == entries,
        f"{what}: your outputs have {len(together)} entries, or have them in another order.\nIs the"
        " last output, which may be small, returned as well?",
    )
    for one, other in itertools.pairwise(got):
        require(
            one[-1][0] != other[0][0],
            f"{what}: the versions of {one[-1][0]!r} are in two outputs.\nA read looks into one"
            " table of a sorted level only, so all versions of a key must be in one.",
        )
        size = sum(map(size_of, one))
        require(
            size >= limit,
            f"{what}: an output of {size:,} bytes ends before it has reached the limit.\nCount"
            " key, tag (8 bytes) and value, and end an output once it has that many bytes.",
        )
    for output in got:
        before = [entry for entry in output if entry[0] != output[-1][0]]
        size = sum(map(size_of, before))
        require(
            size < limit,
            f"{what}: an output continues after {size:,} bytes.\nCount key, tag (8 bytes) and"
            " value; when an output has reached or passed the limit, the next key begins"
            " another.",
        )


def amplification(code: ModuleType) -> str:
    """Bytes written to tables for each byte put."""
    cases = (
        (
            1000,
            1000,
            0,
            "Flushes count: each byte goes to a table once, even without compactions.",
        ),
        (1000, 1100, 4400, "Add what flushes and compactions wrote, and divide by the bytes put."),
        (1000, 500, 0, "Less than 1 is possible: a memtable may hold many versions of a key."),
        (3, 1, 1, "Divide with /, not with //."),
        (0, 0, 0, "Before anything was put, it is 0.0."),
    )
    for put, flushed, compacted, hint in cases:
        call = f"write_amplification({put}, {flushed}, {compacted})"
        expected = (flushed + compacted) / put if put else 0.0
        try:
            got = code.write_amplification(put, flushed, compacted)
        except ZeroDivisionError:
            raise CheckFailure(f"{call} divides by zero.\n{hint}") from None
        require_equal(got, expected, call, hint)
    return f"{len(cases)} stores"


def drawing() -> str:
    """A merge of three runs, version by version."""
    kept = engine_compact(SAMPLE, SNAPSHOT, DEEP)
    lines = [
        f"three runs; the oldest snapshot is {SNAPSHOT}; a deeper level may hold 'dog' alone",
        "",
        "run  key    tag                      version     what becomes of it",
    ]
    rows = [(entry, run) for run, entries in enumerate(SAMPLE, 1) for entry in entries]
    newer: Entry | None = None
    for entry, run in sorted(rows, key=lambda row: (row[0][0], -row[0][1])):
        key, sequence, value = entry
        kind = "deletion" if value is None else f"value {value.decode()}"
        tag = tagged_of(entry)[:8].hex(" ")
        if newer is not None and newer[0] != key:
            newer = None
        row = f"{run:3}  {key.decode():<5}  {tag}  {sequence} {kind:<8}"
        lines.append(f"{row}  {fate(entry, newer, entry in kept)}")
        newer = entry
    return "\n".join(lines) + "\n"


def fate(entry: Entry, newer: Entry | None, stays: bool) -> str:
    """Say whether a version is kept, and why."""
    _, sequence, value = entry
    if newer is not None:
        if stays:
            return f"kept: read at {SNAPSHOT}"
        return f"dropped: every reader sees {newer[1]}"
    if value is not None:
        return "kept: the newest"
    if not stays:
        return "dropped: it hides nothing"
    return f"kept: newer than {SNAPSHOT}" if sequence > SNAPSHOT else "kept: it hides a key"


LAB = Lab(
    number=11,
    slug="compaction",
    title="Compaction and write amplification",
    functions=(
        "level_scores",
        "overlapping",
        "pick",
        "held_deeper",
        "compact",
        "split",
        "write_amplification",
    ),
    checks=(
        Check("the scores of levels", scores),
        Check("tables that overlap", overlaps),
        Check("choosing tables", choices),
        Check("what lies deeper", deeper),
        Check("versions that go", versions),
        Check("deletions that go", deletions),
        Check("splitting outputs", splits),
        Check("write amplification", amplification),
        Check("in the real engine", in_the_engine),
    ),
    drawing=drawing,
)
