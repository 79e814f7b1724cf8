"""Labs 10 to 12: the answers follow from a student's own files alone."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
from own_data import STUDENTS, answers_of, data_of, spelled

every_student = pytest.mark.parametrize("student", STUDENTS)


@every_student
def test_recovery(tmp_path: Path, student: str) -> None:
    data = data_of(tmp_path, "recovery", student)
    logs = sorted(int(name[:-4]) for name in data["names"] if name.endswith(".log"))
    replayed = [n for n in logs if n >= data["log_number"] or n == data["previous_log_number"]]
    last, at = 0, 0
    for (sequence, number), size in zip(data["batches"], data["sizes"], strict=True):
        at += size
        if at <= data["cut_at"]:
            last = sequence + number - 1
    assert answers_of("recovery", student) == [spelled(*replayed), str(last)]
    assert len((tmp_path / "data" / "lab10.log").read_bytes()) == data["cut_at"]


def grown(tables: list[tuple[int, int, str, str]], low: str, high: str) -> list[int]:
    return [number for number, _, first, last in tables if first <= high and last >= low]


@every_student
def test_compaction(tmp_path: Path, student: str) -> None:
    data = data_of(tmp_path, "compaction", student)
    one, two = data["level_1"], data["level_2"]
    after = data["largest_key_of_the_last_compaction_of_level_1"]
    first = next(table for table in one if table[3] > after)
    below = grown(two, first[2], first[3])
    wide = [table for table in two if table[0] in below]
    ends = [first, *wide]
    low, high = min(table[2] for table in ends), max(table[3] for table in ends)
    more = grown(one, low, high)
    ranges = [table for table in one if table[0] in more]
    widened = grown(two, min(t[2] for t in ranges), max(t[3] for t in ranges))
    chosen = [*more, *below] if below and widened == below else [first[0], *below]
    kept: list[int] = []
    hidden: set[str] = set()
    for key, sequence, what in data["versions"]:
        is_seen_by_all = sequence <= data["oldest_snapshot"]
        if key not in hidden and not (what == "deletion" and is_seen_by_all):
            kept.append(sequence)
        if is_seen_by_all:
            hidden.add(key)
    written = data["flush_bytes"] + data["compaction_bytes"]
    assert answers_of("compaction", student) == [
        spelled(*chosen),
        spelled(*kept),
        f"{written / data['user_bytes']:.9f}",
    ]


@every_student
def test_measuring(tmp_path: Path, student: str) -> None:
    data = data_of(tmp_path, "measuring", student)
    a, b = (data[name] for name in data if name.endswith(("_a", "_b")))
    ordered = sorted(a)
    ratio = statistics.median(x / y for x, y in zip(a, b, strict=True))
    reads = data["gets"] * data["tables"] * data["false_positives_of_a_million"] // 10**6
    assert answers_of("measuring", student) == [
        spelled(ordered[3], ordered[1], ordered[5]),
        f"{ratio:.9f}",
        str(reads + data["gets"]),
    ]
