"""Lab 11: planted mistakes are named."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from labs import Mistake, assert_caught

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


MISTAKES = (
    Mistake(
        "level 0 by bytes",
        "level_scores",
        lambda levels: [sum(f[1] for f in levels[0]) / (4 * MIB), *engine_scores(levels)[1:]],
        "the scores of levels",
        "by the number of its tables",
    ),
    Mistake(
        "a million for a MiB",
        "level_scores",
        lambda levels: [
            score if n == 0 else score * MIB / 1e6 for n, score in enumerate(engine_scores(levels))
        ],
        "the scores of levels",
        "10 * 2**20 bytes",
    ),
    Mistake(
        "all levels alike",
        "level_scores",
        lambda levels: [
            score if n == 0 else score * 10.0 ** (n - 1)
            for n, score in enumerate(engine_scores(levels))
        ],
        "the scores of levels",
        "ten times as much",
    ),
    Mistake(
        "a score for level 6",
        "level_scores",
        lambda levels: [*engine_scores(levels), 0.0],
        "the scores of levels",
        "nothing moves down from it",
    ),
    Mistake(
        "ends left out",
        "overlapping",
        without_its_ends,
        "tables that overlap",
        "Both ends of a range belong to it",
    ),
    Mistake(
        "level 0 not expanded",
        "overlapping",
        touching,
        "tables that overlap",
        "On level 0 the range grows",
    ),
    Mistake(
        "level 0 expanded once",
        "overlapping",
        expanded_once,
        "tables that overlap",
        "until no other overlaps it",
    ),
    Mistake(
        "expanded on a sorted level",
        "overlapping",
        expanded_everywhere,
        "tables that overlap",
        "must return",
    ),
    Mistake(
        "only above 1", "pick", picked_above_one, "choosing tables", "From exactly 1.0 on, a level"
    ),
    Mistake(
        "the first level over 1",
        "pick",
        picked_first_over,
        "choosing tables",
        "The level with the highest score is taken",
    ),
    Mistake(
        "no pointer",
        "pick",
        picked_without_a_pointer,
        "choosing tables",
        "the first table that reaches beyond the pointer",
    ),
    Mistake("no turn", "pick", never_begun_again, "choosing tables", "begin again"),
    Mistake(
        "one table of level 0",
        "pick",
        one_of_level_0,
        "choosing tables",
        "an older version stays above a newer one",
    ),
    Mistake("never widened", "pick", never_widened, "choosing tables", "they cost nothing"),
    Mistake("always widened", "pick", always_widened, "choosing tables", "do not widen if"),
    Mistake(
        "the next level alone",
        "held_deeper",
        lambda levels, level, key: level < 6 and bool(touching(levels, level + 1, key, key)),
        "what lies deeper",
        "not only at the next one",
    ),
    Mistake(
        "the outputs' level, too",
        "held_deeper",
        lambda levels, level, key: engine_held_deeper(levels, level - 1, key),
        "what lies deeper",
        "its versions of the key are inputs",
    ),
    Mistake(
        "ends of a table left out",
        "held_deeper",
        lambda levels, level, key: any(
            file[2] < key < file[3] for files in levels[level + 1 :] for file in files
        ),
        "what lies deeper",
        "ends included",
    ),
    Mistake("nothing dropped", "compact", everything, "versions that go", "none can see this one"),
    Mistake(
        "a version that a snapshot needs",
        "compact",
        newest_alone,
        "versions that go",
        "A snapshot needs it",
    ),
    Mistake(
        "one sequence off",
        "compact",
        lambda runs, snapshot, deeper: merged(runs, snapshot - 1, deeper),
        "versions that go",
        "A newer version of the key is visible to every reader",
    ),
    Mistake("oldest first", "compact", oldest_first, "versions that go", "in the wrong order"),
    Mistake(
        "a deletion dropped too early",
        "compact",
        lambda runs, snapshot, deeper: merged(runs, snapshot, lambda key: False),
        "deletions that go",
        "the dead key comes back",
    ),
    Mistake(
        "a deletion that a snapshot does not see dropped",
        "compact",
        without_young_deletions,
        "deletions that go",
        "newer than the oldest snapshot",
    ),
    Mistake(
        "deletions for ever",
        "compact",
        lambda runs, snapshot, deeper: merged(runs, snapshot, lambda key: True),
        "deletions that go",
        "nothing left to hide",
    ),
    Mistake("a key in two outputs", "split", cut, "splitting outputs", "are in two outputs"),
    Mistake(
        "an output for each key", "split", by_number, "splitting outputs", "before it has reached"
    ),
    Mistake(
        "one output",
        "split",
        lambda entries, limit: [list(entries)] if entries else [],
        "splitting outputs",
        "an output continues after",
    ),
    Mistake(
        "the last output lost",
        "split",
        lambda entries, limit: by_number(entries, limit)[:-1],
        "splitting outputs",
        "which may be small, returned",
    ),
    Mistake(
        "an empty output",
        "split",
        lambda entries, limit: [*by_number(entries, limit), []],
        "splitting outputs",
        "holds no entries",
    ),
    Mistake(
        "compactions alone",
        "write_amplification",
        lambda put, flushed, compacted: compacted / put if put else 0.0,
        "write amplification",
        "Flushes count",
    ),
    Mistake(
        "a division by zero",
        "write_amplification",
        lambda put, flushed, compacted: (flushed + compacted) / put,
        "write amplification",
        "divides by zero",
    ),
    Mistake(
        "whole numbers",
        "write_amplification",
        lambda put, flushed, compacted: (flushed + compacted) // put if put else 0.0,
        "write amplification",
        "must be 1.0, but your code returned 1",
    ),
    Mistake(
        "a dead key comes back in the store",
        "held_deeper",
        lambda levels, level, key: False,
        "in the real engine",
        "the dead key comes back",
    ),
    Mistake(
        "a snapshot's version lost in the store",
        "compact",
        one_of_each_key,
        "in the real engine",
        "A snapshot needs it",
    ),
    Mistake(
        "one table of the store's level 0",
        "pick",
        one_of_level_0,
        "in the real engine",
        "from level 0, pick must take",
    ),
    Mistake(
        "other scores than the engine's",
        "level_scores",
        lambda levels: [score * 0.5 for score in engine_scores(levels)],
        "in the real engine",
        "The engine finds that level 0 of the store needs a compaction most",
    ),
    Mistake(
        "entries of the store lost",
        "split",
        lambda entries, limit: by_number(entries, limit)[:-1],
        "in the real engine",
        "the store would lose or change entries",
    ),
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake) -> None:
    assert_caught(LAB, mistake)


def test_each_check_catches_a_mistake() -> None:
    assert {mistake.check for mistake in MISTAKES} == {check.name for check in LAB.checks}
