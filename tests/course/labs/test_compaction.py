"""Lab 11: planted mistakes are named."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from labs import Mistake, Planted, assert_caught, mistakes

from lsmkv.course.labs.compacting import (
    Entry,
    File,
    engine_compact,
    engine_held_deeper,
    file_of,
    version_of,
)
from lsmkv.course.labs.compaction import LAB, MIB, Levels, engine_pick, engine_scores

Picked = tuple[int, list[File], list[File]] | None


def found(levels: Levels, level: int, begin: bytes, end: bytes) -> list[File]:
    return [file_of(file) for file in version_of(levels).overlapping(level, begin, end)]


def touching(levels: Levels, level: int, begin: bytes, end: bytes) -> list[File]:
    return [file for file in levels[level] if file[2] <= end and file[3] >= begin]


def without_its_ends(levels: Levels, level: int, begin: bytes, end: bytes) -> list[File]:
    inner = [file for file in levels[level] if file[2] < end and file[3] > begin]
    return found(levels, level, begin, end) if level == 0 else inner


def expanded_once(levels: Levels, level: int, begin: bytes, end: bytes) -> list[File]:
    files = touching(levels, level, begin, end)
    if level > 0 or not files:
        return files
    return touching(
        levels,
        level,
        min(begin, *(file[2] for file in files)),
        max(end, *(file[3] for file in files)),
    )


def expanded_everywhere(levels: Levels, level: int, begin: bytes, end: bytes) -> list[File]:
    files = touching(levels, level, begin, end)
    at = levels[level].index(files[-1]) if files else 0
    return (
        files + levels[level][at + 1 : at + 2]
        if level and files
        else found(levels, level, begin, end)
    )


def picked(levels: Levels, pointers: Sequence[bytes | None]) -> Picked:
    choice = engine_pick(levels, pointers)
    if choice is None:
        return None
    return choice.level, choice.inputs, choice.next_inputs


def picked_above_one(levels: Levels, pointers: Sequence[bytes | None]) -> Picked:
    return picked(levels, pointers) if max(engine_scores(levels)) > 1 else None


def picked_first_over(levels: Levels, pointers: Sequence[bytes | None]) -> Picked:
    over = [level for level, score in enumerate(engine_scores(levels)) if score >= 1]
    if not over:
        return None
    return picked([levels[n] if n != over[-1] or n == over[0] else [] for n in range(7)], pointers)


def picked_without_a_pointer(levels: Levels, pointers: Sequence[bytes | None]) -> Picked:
    return picked(levels, [None] * 7)


def never_begun_again(levels: Levels, pointers: Sequence[bytes | None]) -> Picked:
    choice = picked(levels, pointers)
    if choice is None or choice[0] == 0:
        return choice
    pointer = pointers[choice[0]]
    return None if pointer and pointer >= levels[choice[0]][-1][3] else choice


def one_of_level_0(levels: Levels, pointers: Sequence[bytes | None]) -> Picked:
    choice = picked(levels, pointers)
    if choice is None or choice[0] > 0:
        return choice
    first = levels[0][0]
    return 0, [first], found(levels, 1, first[2], first[3])


def never_widened(levels: Levels, pointers: Sequence[bytes | None]) -> Picked:
    choice = picked(levels, pointers)
    if choice is None or choice[0] == 0:
        return choice
    pointer = pointers[choice[0]]
    files = levels[choice[0]]
    first = next((file for file in files if pointer is None or file[3] > pointer), files[0])
    return choice[0], [first], found(levels, choice[0] + 1, first[2], first[3])


def widened_to_50_mib(levels: Levels, pointers: Sequence[bytes | None]) -> Picked:
    choice = picked(levels, pointers)
    wider = always_widened(levels, pointers)
    if choice is None or wider is None or len(wider[2]) != len(choice[2]):
        return choice
    return wider if sum(file[1] for file in wider[1] + wider[2]) <= 50 * MIB else choice


def always_widened(levels: Levels, pointers: Sequence[bytes | None]) -> Picked:
    choice = picked(levels, pointers)
    if choice is None or choice[0] == 0 or not choice[2]:
        return choice
    level, files, below = choice
    begin = min(file[2] for file in files + below)
    end = max(file[3] for file in files + below)
    wider = found(levels, level, begin, end)
    return level, wider, found(levels, level + 1, wider[0][2], wider[-1][3])


def merged(
    runs: Sequence[Sequence[Entry]], snapshot: int, deeper: Callable[[bytes], bool]
) -> list[Entry]:
    keys = {entry[0] for run in runs for entry in run}
    return engine_compact(runs, snapshot, [key for key in keys if deeper(key)])


def everything(
    runs: Sequence[Sequence[Entry]], snapshot: int, deeper: Callable[[bytes], bool]
) -> list[Entry]:
    return sorted((entry for run in runs for entry in run), key=lambda one: (one[0], -one[1]))


def newest_alone(
    runs: Sequence[Sequence[Entry]], snapshot: int, deeper: Callable[[bytes], bool]
) -> list[Entry]:
    return merged(runs, 1 << 40, deeper)


def one_of_each_key(
    runs: Sequence[Sequence[Entry]], snapshot: int, deeper: Callable[[bytes], bool]
) -> list[Entry]:
    kept = merged(runs, snapshot, deeper)
    return [entry for at, entry in enumerate(kept) if at == 0 or kept[at - 1][0] != entry[0]]


def oldest_first(
    runs: Sequence[Sequence[Entry]], snapshot: int, deeper: Callable[[bytes], bool]
) -> list[Entry]:
    return sorted(merged(runs, snapshot, deeper), key=lambda one: one[:2])


def without_young_deletions(
    runs: Sequence[Sequence[Entry]], snapshot: int, deeper: Callable[[bytes], bool]
) -> list[Entry]:
    kept = merged(runs, snapshot, deeper)
    return [entry for entry in kept if entry[2] is not None or deeper(entry[0])]


def cut(entries: Sequence[Entry], limit: int) -> list[list[Entry]]:
    outputs: list[list[Entry]] = [[]]
    size = 0
    for entry in entries:
        if size >= limit:
            outputs.append([])
            size = 0
        outputs[-1].append(entry)
        size += len(entry[0]) + 8 + len(entry[2] or b"")
    return outputs if entries else []


def by_number(entries: Sequence[Entry], limit: int) -> list[list[Entry]]:
    outputs: list[list[Entry]] = []
    for entry in entries:
        if outputs and outputs[-1][-1][0] == entry[0]:
            outputs[-1].append(entry)
        else:
            outputs.append([entry])
    return outputs


MISTAKES: Planted = {
    ("level_scores", "the scores of levels"): [
        (
            "level 0 by bytes",
            lambda levels: [sum(f[1] for f in levels[0]) / (4 * MIB), *engine_scores(levels)[1:]],
            "by the number of its tables",
        ),
        (
            "a million for a MiB",
            lambda levels: [
                score if n == 0 else score * MIB / 1e6
                for n, score in enumerate(engine_scores(levels))
            ],
            "10 * 2**20 bytes",
        ),
        (
            "all levels alike",
            lambda levels: [
                score if n == 0 else score * 10.0 ** (n - 1)
                for n, score in enumerate(engine_scores(levels))
            ],
            "ten times as much",
        ),
        (
            "a score for level 6",
            lambda levels: [*engine_scores(levels), 0.0],
            "nothing moves down from it",
        ),
    ],
    ("overlapping", "tables that overlap"): [
        ("ends left out", without_its_ends, "Both ends of a range belong to it"),
        ("level 0 not expanded", touching, "On level 0 the range grows"),
        ("level 0 expanded once", expanded_once, "until no other overlaps it"),
        ("expanded on a sorted level", expanded_everywhere, "must return"),
    ],
    ("pick", "choosing tables"): [
        ("only above 1", picked_above_one, "From exactly 1.0 on, a level"),
        (
            "the first level over 1",
            picked_first_over,
            "The level with the highest score is taken",
        ),
        ("exactly 50 MiB", widened_to_50_mib, "Exactly 50 MiB is too much"),
        ("no pointer", picked_without_a_pointer, "the first table that reaches beyond the pointer"),
        ("no turn", never_begun_again, "begin again"),
        ("one table of level 0", one_of_level_0, "an older version stays above a newer one"),
        ("never widened", never_widened, "they cost nothing"),
        ("always widened", always_widened, "do not widen if"),
    ],
    ("held_deeper", "what lies deeper"): [
        (
            "the next level alone",
            lambda levels, level, key: level < 6 and bool(touching(levels, level + 1, key, key)),
            "not only at the next one",
        ),
        (
            "the outputs' level, too",
            lambda levels, level, key: engine_held_deeper(levels, level - 1, key),
            "its versions of the key are inputs",
        ),
        (
            "ends of a table left out",
            lambda levels, level, key: any(
                file[2] < key < file[3] for files in levels[level + 1 :] for file in files
            ),
            "ends included",
        ),
    ],
    ("compact", "versions that go"): [
        ("nothing dropped", everything, "none can see this one"),
        ("a version that a snapshot needs", newest_alone, "A snapshot needs it"),
        (
            "one sequence off",
            lambda runs, snapshot, deeper: merged(runs, snapshot - 1, deeper),
            "A newer version of the key is visible to every reader",
        ),
        ("oldest first", oldest_first, "in the wrong order"),
    ],
    ("compact", "deletions that go"): [
        (
            "a deletion dropped too early",
            lambda runs, snapshot, deeper: merged(runs, snapshot, lambda key: False),
            "the dead key comes back",
        ),
        (
            "a deletion that a snapshot does not see dropped",
            without_young_deletions,
            "newer than the oldest snapshot",
        ),
        (
            "deletions for ever",
            lambda runs, snapshot, deeper: merged(runs, snapshot, lambda key: True),
            "nothing left to hide",
        ),
    ],
    ("split", "splitting outputs"): [
        ("a key in two outputs", cut, "are in two outputs"),
        ("an output for each key", by_number, "before it has reached"),
        (
            "one output",
            lambda entries, limit: [list(entries)] if entries else [],
            "an output continues after",
        ),
        (
            "the last output lost",
            lambda entries, limit: by_number(entries, limit)[:-1],
            "which may be small, returned",
        ),
        (
            "an empty output",
            lambda entries, limit: [*by_number(entries, limit), []],
            "holds no entries",
        ),
    ],
    ("write_amplification", "write amplification"): [
        (
            "compactions alone",
            lambda put, flushed, compacted: compacted / put if put else 0.0,
            "Flushes count",
        ),
        (
            "a division by zero",
            lambda put, flushed, compacted: (flushed + compacted) / put,
            "divides by zero",
        ),
        (
            "whole numbers",
            lambda put, flushed, compacted: (flushed + compacted) // put if put else 0.0,
            "must be 1.0, but your code returned 1",
        ),
    ],
    ("held_deeper", "in the real engine"): [
        (
            "a dead key comes back in the store",
            lambda levels, level, key: False,
            "the dead key comes back",
        ),
    ],
    ("compact", "in the real engine"): [
        ("a snapshot's version lost in the store", one_of_each_key, "A snapshot needs it"),
    ],
    ("pick", "in the real engine"): [
        ("one table of the store's level 0", one_of_level_0, "from level 0, pick must take"),
    ],
    ("level_scores", "in the real engine"): [
        (
            "other scores than the engine's",
            lambda levels: [score * 0.5 for score in engine_scores(levels)],
            "The engine finds that level 0 of the store needs a compaction most",
        ),
    ],
    ("split", "in the real engine"): [
        (
            "entries of the store lost",
            lambda entries, limit: by_number(entries, limit)[:-1],
            "the store would lose or change entries",
        ),
    ],
}


@pytest.mark.parametrize("mistake", mistakes(MISTAKES), ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake) -> None:
    assert_caught(LAB, mistake)


def test_each_check_catches_a_mistake() -> None:
    assert {check for _, check in MISTAKES} == {check.name for check in LAB.checks}
