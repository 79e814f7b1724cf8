"""Predictions of labs 10 to 12: recovery, compaction, measuring."""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterable, Sequence

from lsmkv.course.labs.compacting import engine_compact
from lsmkv.course.labs.compaction import MIB, Levels, engine_pick
from lsmkv.course.labs.experimenting import ratio_interval, summarize
from lsmkv.course.labs.formats import LEVELS, batch_of
from lsmkv.course.labs.recovering import log_of, pieces_of_log
from lsmkv.course.predict.task import Question, Task, answer_of
from lsmkv.files import make_name


def recovery(dice: random.Random, mark: str) -> Task:
    """Lab 10: logs, and the batches of the one that is torn."""
    numbers = sorted(dice.sample(range(10**5, 10**6), 7))
    log_number = numbers[3]
    previous = numbers[dice.randrange(2)]
    names = [make_name("log", number) for number in numbers]
    names += [make_name("table", log_number + 1), make_name("manifest", log_number + 2), "CURRENT"]
    dice.shuffle(names)
    needed = [n for n in numbers if n >= log_number or n == previous]
    start = dice.getrandbits(50) | 1 << 49
    counts = [dice.randrange(2, 6) for _ in range(6)]
    starts = [start + sum(counts[:at]) for at in range(6)]
    batches = [
        batch_of(
            first,
            [
                (f"{mark}{dice.randrange(10)}".encode(), b"%d" % (first + at))
                for at in range(number)
            ],
        )
        for first, number in zip(starts, counts, strict=True)
    ]
    whole = log_of(list(batches))
    cut = len(log_of(list(batches[:5]))) + dice.randrange(8, len(batches[5]))
    torn = whole[:cut]
    pieces, _ = pieces_of_log(torn)
    last = starts[4] + counts[4] - 1

    return Task(
        {
            "names": names,
            "log_number": log_number,
            "previous_log_number": previous,
            "last_sequence_of_the_manifest": start - 1,
            "batches": list(zip(starts, counts, strict=True)),
            "sizes": [len(log_of([batch])) for batch in batches],
            "cut_at": cut,
        },
        (
            Question(
                "A directory has these names. The logs of which numbers are replayed, in order?",
                answer_of(needed),
                lambda code: answer_of(
                    int(name.partition(".")[0])
                    for name in code.logs_to_replay(names, log_number, previous)
                ),
                "Those from the log number on, and the one with the previous log number.",
                {
                    answer_of(needed[1:]): "The log with the previous log number also counts.",
                    answer_of([previous, *needed[2:]]): "The log number itself also counts.",
                    answer_of(needed[::-1]): "The oldest is replayed first.",
                },
            ),
            Question(
                "A log holds these batches (first sequence, number of writes), of these sizes, and"
                " is cut off at a byte. What is the last sequence after its recovery?",
                str(last),
                lambda code: str(code.replay([pieces], start - 1)[1]),
                f"The last whole batch begins at {starts[4]} and has {counts[4]} writes.",
                {
                    str(last + 1): "It is the sequence of the last write, not the next one.",
                    str(starts[4]): "That is the first write of the last whole batch.",
                    str(starts[5] + counts[5] - 1): "The batch that is cut off does not count.",
                },
            ),
        ),
        {"lab10.log": torn},
    )


def compaction(dice: random.Random, mark: str) -> Task:
    """Lab 11: a choice of tables, versions that go, and bytes written."""
    numbers = sorted(dice.sample(range(10**7, 10**8), 16), reverse=True)
    levels: Levels = [[] for _ in range(LEVELS)]

    def key(at: int) -> bytes:
        return f"{mark}{at:03d}".encode()

    cuts = sorted(dice.sample(range(100, 900), 20))
    sizes = [MIB * dice.randrange(15, 19) // 8 for _ in range(16)]
    for at in range(6):
        file = numbers[at], sizes[at], key(cuts[3 * at]), key(cuts[3 * at + 1])
        levels[1].append(file)
    ends = sorted(dice.sample(range(100, 900), 16))
    for at in range(8):
        levels[2].append((numbers[8 + at], sizes[8 + at], key(ends[2 * at]), key(ends[2 * at + 1])))
    passed = dice.randrange(4)
    pointers: list[bytes | None] = [None] * LEVELS
    pointers[1] = levels[1][passed][3]
    picked = engine_pick(levels, pointers)
    assert picked is not None
    chosen = [file[0] for file in (*picked.inputs, *picked.next_inputs)]

    sequences = sorted(dice.sample(range(10**9, 10**10), 9), reverse=True)
    names = [key(at) for at in (1, 2, 3)]
    entries = [
        (name, number, None if at == 1 and name == names[1] else b"v")
        for name, some in zip(names, (sequences[:3], sequences[3:6], sequences[6:]), strict=True)
        for at, number in enumerate(some)
    ]
    oldest = sequences[4] + dice.randrange(1, sequences[3] - sequences[4])
    kept = [number for _, number, _ in engine_compact([entries], oldest, [])]
    user, flushed, compacted = (dice.randrange(10**8 * n, 10**9 * n) for n in (1, 2, 9))

    return Task(
        {
            "level_1": [_table(file) for file in levels[1]],
            "level_2": [_table(file) for file in levels[2]],
            "largest_key_of_the_last_compaction_of_level_1": (pointers[1] or b"").decode(),
            "versions": [
                (name.decode(), number, "deletion" if value is None else "value")
                for name, number, value in entries
            ],
            "oldest_snapshot": oldest,
            "user_bytes": user,
            "flush_bytes": flushed,
            "compaction_bytes": compacted,
        },
        (
            Question(
                "Level 1 is too large. The tables are given with number, bytes and range. Which"
                " tables does its compaction take, those of level 1 first?",
                answer_of(chosen),
                lambda code: answer_of(
                    file[0] for files in code.pick(levels, pointers)[1:] for file in files
                ),
                "The first table of level 1 that reaches beyond the last compaction, those of level"
                " 2 that overlap it, and then those of level 1 that cost no further table.",
                {
                    answer_of(chosen[:1]): "The tables of level 2 that overlap are also taken.",
                },
            ),
            Question(
                "A compaction merges these versions; no deeper level has the keys. Which sequences"
                " remain, in the order of the output?",
                answer_of(kept),
                lambda code: answer_of(
                    entry[1] for entry in code.compact([entries], oldest, lambda key: False)
                ),
                "A version goes if a newer one of its key is at or below the oldest snapshot. A"
                " deletion that every reader sees also goes, if nothing is deeper.",
                {
                    answer_of((sequences[0], sequences[3], sequences[6])): (
                        "A reader at the oldest snapshot still needs older versions."
                    ),
                    answer_of(sequences): "Nothing was dropped.",
                },
            ),
            Question(
                "What is the write amplification of these bytes, to nine decimals?",
                f"{(flushed + compacted) / user:.9f}",
                lambda code: f"{code.write_amplification(user, flushed, compacted):.9f}",
                "Flushes and compactions together, divided by what the user wrote.",
                {
                    f"{compacted / user:.9f}": "Flushes also count.",
                    f"{(user + flushed + compacted) / user:.9f}": "The log does not count here.",
                },
            ),
        ),
    )


def _table(file: tuple[int, int, bytes, bytes]) -> tuple[int, int, str, str]:
    number, size, smallest, largest = file
    return number, size, smallest.decode(), largest.decode()


def measuring(dice: random.Random, mark: str) -> Task:
    """Lab 12: samples of two variants, and reads to expect."""
    a = [float(dice.randrange(10**6, 2 * 10**6)) for _ in range(7)]
    b = [float(dice.randrange(10**6, 2 * 10**6)) for _ in range(7)]
    tables = dice.randrange(3, 9)
    wrong = dice.randrange(10**5, 10**6)
    gets = 10**8
    reads = gets + tables * wrong * 100
    _, ratio, _ = ratio_interval(a, b, 40, 1)

    def whole(numbers: Iterable[float]) -> list[int]:
        return [round(number) for number in numbers]

    return Task(
        {
            f"{mark}_a": whole(a),
            f"{mark}_b": whole(b),
            "tables": tables,
            "false_positives_of_a_million": wrong,
            "gets": gets,
        },
        (
            Question(
                "What are the median and the two quartiles of a's samples: median, lower, upper?",
                answer_of(whole(summarize(a))),
                lambda code: answer_of(whole(code.summarize(a))),
                "Sorted, the middle one; the quartiles are the medians of the halves, without it.",
                {
                    answer_of(whole(_with_the_middle(a))): "The middle one is in neither half.",
                    answer_of(whole(summarize(a)[at] for at in (1, 0, 2))): "The median is first.",
                },
            ),
            Question(
                "The samples were taken round by round. What is the median of a's cost divided by"
                " b's, to nine decimals?",
                f"{ratio:.9f}",
                lambda code: f"{code.ratio_interval(a, b, 40, 1)[1]:.9f}",
                "Each round is divided first, and then the median is taken.",
                {
                    f"{statistics.median(a) / statistics.median(b):.9f}": (
                        "You divided the medians, and the rounds were lost."
                    ),
                    f"{1 / ratio:.9f}": "You divided b's cost by a's.",
                },
            ),
            Question(
                "A Get goes through this many tables without its key, whose filters err this often,"
                " and finds it in one more. How many blocks do all these Gets read?",
                str(reads),
                lambda code: str(round(gets * code.predict(tables, wrong / 10**6))),
                "Each table without the key is read at its rate of errors; the last one always.",
                {
                    str(reads - gets): "The block that holds the key is also read.",
                    str(gets * (tables + 1)): "That is without filters.",
                },
            ),
        ),
    )


def _with_the_middle(samples: Sequence[float]) -> tuple[float, float, float]:
    ordered = sorted(samples)
    half = len(ordered) // 2 + 1
    median = statistics.median
    return median(ordered), median(ordered[:half]), median(ordered[-half:])
