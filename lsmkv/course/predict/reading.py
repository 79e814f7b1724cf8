"""Predictions of labs 7 to 9: a reader's view, a Get's search, a MANIFEST's content."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from lsmkv.course.labs.asked_tables import Levels, MadeTable, Step, candidates
from lsmkv.course.labs.edits import (
    DELETED_FILE,
    LAST_SEQUENCE,
    LOG_NUMBER,
    NEW_FILE,
    NEXT_FILE_NUMBER,
    Field,
    encoded,
    replayed,
)
from lsmkv.course.labs.formats import frame
from lsmkv.course.labs.merging import Write, in_order, seen
from lsmkv.course.predict.task import Question, Task, answer_of
from lsmkv.files import make_key, parse_key


def merging(dice: random.Random, mark: str) -> Task:
    """Lab 7: three runs, and a snapshot."""
    names = [f"{mark}{letter}".encode() for letter in "abcde"]
    numbers = sorted(dice.sample(range(10**9, 10**10), 15))
    writes = [
        Write(number, names[at % 5], None if dice.random() < 0.3 else b"%d" % number)
        for at, number in zip(dice.sample(range(15), 15), numbers, strict=True)
    ]
    snapshot = numbers[9] + dice.randrange(1, numbers[10] - numbers[9])
    runs = [in_order(writes[at::3]) for at in range(3)]
    ordered = in_order(writes)
    visible = [int(value) for _, value in seen(writes, snapshot)]
    backwards = [parse_key(key)[1] for key, _ in ordered[::-1][:4]]
    shown = [[_shown(write) for write in sorted(writes[at::3])] for at in range(3)]

    return Task(
        {"runs": shown, "snapshot": snapshot},
        (
            Question(
                "Three runs hold these versions: sequence, user key, and whether it is a deletion."
                " A reader at the snapshot goes through all keys. Which sequences have the versions"
                " that it returns, in order?",
                answer_of(visible),
                lambda code: answer_of(
                    int(value) for _, value in code.visible(code.merge(runs, False), snapshot)
                ),
                "Of each key, the newest version at or below the snapshot; if that is a deletion,"
                " nothing.",
                {
                    answer_of(int(value) for _, value in seen(writes, numbers[-1])): (
                        "You took the newest versions, regardless of the snapshot."
                    ),
                    answer_of(int(value) for _, value in _through_deletions(writes, snapshot)): (
                        "You looked past deletions."
                    ),
                },
            ),
            Question(
                "A merge of all three runs goes backwards. Which sequences have the first four"
                " entries that it returns?",
                answer_of(backwards),
                lambda code: answer_of(_first(code, [run[::-1] for run in runs], 4)),
                "The order of internal keys is reversed: the greatest user key first, and of one"
                " key the oldest version first.",
                {
                    answer_of(parse_key(key)[1] for key, _ in _newest_first(ordered)[:4]): (
                        "Backwards, the oldest version of a key comes first."
                    ),
                },
            ),
        ),
    )


def _shown(write: Write) -> tuple[int, str, str]:
    what = "deletion" if write.value is None else "value"
    return write.sequence, write.key.decode(), what


def _through_deletions(writes: Sequence[Write], sequence: int) -> list[tuple[bytes, bytes]]:
    return seen([write for write in writes if write.value is not None], sequence)


def _newest_first(ordered: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return sorted(ordered, key=lambda entry: entry[0][:-8], reverse=True)


def _first(code: Any, runs: list[list[tuple[bytes, bytes]]], number: int) -> list[int]:
    merged = iter(code.merge(runs, True))
    return [parse_key(next(merged)[0])[1] or 0 for _ in range(number)]


def reading(dice: random.Random, mark: str) -> Task:
    """Lab 8: three tables on level 0, and three levels below."""
    numbers = sorted(dice.sample(range(10**5, 10**6), 12))
    dice.shuffle(deep := numbers[:9])
    wanted = dice.randrange(400, 600)
    key = f"{mark}{wanted}".encode()
    steps: list[Step] = []

    def made(level: int, number: int, low: int, high: int, has_it: bool, errs: bool) -> MadeTable:
        inside = {low, high, *dice.sample(range(low + 1, high), 12)} - {wanted}
        content: dict[bytes, bytes | None] = {
            f"{mark}{one}".encode(): b"v" for one in sorted(inside)
        }
        if has_it:
            content[key] = b"found"
        return MadeTable(steps, level, number, content, [key] if errs else [])

    levels: Levels = [[] for _ in range(7)]
    errs = dice.sample([True, True, False], 3)
    for at, number in enumerate(reversed(numbers[9:])):
        levels[0].append(
            made(0, number, 100 + dice.randrange(200), 700 + dice.randrange(200), False, errs[at])
        )
    for level in (1, 2, 3):
        some = deep[3 * level - 3 : 3 * level]
        cuts = (100 + dice.randrange(90), 390 - dice.randrange(9), 610 + dice.randrange(9))
        for at, number in enumerate(some):
            low, high = cuts[at], (*cuts, 990)[at + 1] - 2
            has_it = level == 2 and at == 1
            levels[level].append(
                made(level, number, low, high, has_it, at == 1 and (level == 1 or has_it))
            )
    asked = candidates(levels, key)
    read = [
        (table.number, sum(one < key for one in table.index_keys))
        for table in asked
        if table.key_may_match(sum(one < key for one in table.index_keys), key)
    ]
    upto = next(at for at, (number, _) in enumerate(read) if number == levels[2][1].number)
    read = read[: upto + 1]
    ranges = {
        f"level_{at}": [(t.number, t.smallest.decode(), t.largest.decode()) for t in level]
        for at, level in enumerate(levels[:4])
    }
    maybe = sorted(number for number, _ in read)

    return Task(
        {
            "key": key.decode(),
            **ranges,
            "index_keys": {
                table.number: [one.decode() for one in table.index_keys] for table in asked
            },
            "filters_that_say_maybe": maybe,
            "table_that_holds_the_key": levels[2][1].number,
        },
        (
            Question(
                "The tables have these numbers and ranges. Which tables may a Get of the key ask,"
                " in order?",
                answer_of(table.number for table in asked),
                lambda code: answer_of(table.number for table in code.tables_to_ask(levels, key)),
                "All tables of level 0 whose range has the key, the newest (the highest number)"
                " first; then one of each deeper level.",
                {
                    answer_of(
                        table.number for table in [*asked[: len(asked) - 3][::-1], *asked[-3:]]
                    ): "On level 0 the newest table comes first.",
                },
            ),
            Question(
                "Each table has a block for each index key, numbered from 0. Which blocks does the"
                " Get read, as pairs of table and block, in order?",
                answer_of(number for pair in read for number in pair),
                lambda code: _read_by(code, levels, steps, key),
                "A block is read where the filter says maybe: the first one whose index key is not"
                " below the key. The Get ends where it finds the key.",
                {
                    answer_of(number for number, _ in read): "These are the tables alone.",
                    answer_of(n for number, block in read for n in (number, block + 1)): (
                        "Blocks are numbered from 0."
                    ),
                },
            ),
        ),
    )


def _read_by(code: Any, levels: Levels, steps: list[Step], key: bytes) -> str:
    steps.clear()
    code.get(levels, key)
    return answer_of(n for step in steps if step.said is None for n in (step.table, step.block))


def manifest(dice: random.Random, mark: str) -> Task:
    """Lab 9: a MANIFEST of five edits."""
    numbers = sorted(dice.sample(range(10**5, 10**6), 12))
    keys = sorted(dice.sample(range(1000, 10_000), 24))

    def new(level: int, at: int) -> Field:
        first, last = (
            make_key(f"{mark}{keys[2 * at + end]}".encode(), dice.getrandbits(40), 1)
            for end in (0, 1)
        )
        return (NEW_FILE, level, numbers[at], dice.randrange(10**6), first, last)

    deep = dice.sample(range(6), 6)
    counters = [
        [(LAST_SEQUENCE, dice.getrandbits(48)), (NEXT_FILE_NUMBER, dice.getrandbits(44))]
        for _ in range(4)
    ]
    moved = dice.choice(deep[:3])
    edits: list[list[Field]] = [
        [(LOG_NUMBER, dice.getrandbits(40)), *counters[0], *(new(2, at) for at in deep[:4])],
        [*counters[1], new(0, 6), new(0, 7)],
        [counters[2][0], (DELETED_FILE, 2, numbers[moved]), new(1, 8)],
        [
            (DELETED_FILE, 0, numbers[6]),
            (DELETED_FILE, 1, numbers[deep[3]]),
            *(new(2, at) for at in deep[4:]),
        ],
        [counters[3][dice.randrange(2)], (DELETED_FILE, 0, numbers[7]), new(2, 9)],
    ]
    records = [encoded(edit) for edit in edits]
    state, levels = replayed(records)
    data = b""
    for record in records:
        data += frame(record, len(data))
    alive = [file[0] for file in levels[2]]

    return Task(
        {"edits": [[_field(one) for one in edit] for edit in edits]},
        (
            Question(
                "A MANIFEST has these edits. Which tables are on level 2 in the end, the one with"
                " the smallest key first?",
                answer_of(alive),
                lambda code: answer_of(file[0] for file in code.replay_edits(records)[1][2]),
                "A table is deleted on the level that the edit names, and nowhere else. Level 2 is"
                " sorted by smallest keys, not by numbers.",
                {
                    answer_of(sorted(alive)): "You sorted them by their numbers.",
                    answer_of(n for n in alive if n != numbers[deep[3]]): (
                        "You deleted a table that was deleted on another level."
                    ),
                },
            ),
            Question(
                "What are the last sequence and the next file number in the end?",
                answer_of((state[LAST_SEQUENCE], state[NEXT_FILE_NUMBER])),
                lambda code: _counters(code, records),
                "The last edit that names a counter counts, also if its number is lower.",
                {
                    answer_of(
                        max(dict(counters[n])[tag] for n in range(3))
                        for tag in (LAST_SEQUENCE, NEXT_FILE_NUMBER)
                    ): "The last value counts, not the highest.",
                },
            ),
        ),
        {"MANIFEST-000009": data},
    )


def _counters(code: Any, records: list[bytes]) -> str:
    found = code.replay_edits(records)[0]
    return answer_of((found[LAST_SEQUENCE], found[NEXT_FILE_NUMBER]))


_NAMES = {
    LOG_NUMBER: "log number",
    LAST_SEQUENCE: "last sequence",
    NEXT_FILE_NUMBER: "next file number",
    DELETED_FILE: "delete",
    NEW_FILE: "add",
}


def _field(one: Field) -> tuple[Any, ...]:
    tag, *content = one
    parts = [parse_key(part)[0].decode() if isinstance(part, bytes) else part for part in content]
    return (_NAMES[tag], *parts)
