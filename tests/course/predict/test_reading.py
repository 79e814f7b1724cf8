"""Labs 7 to 9: the answers follow from a student's own files alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_data import STUDENTS, answers_of, data_of, spelled

every_student = pytest.mark.parametrize("student", STUDENTS)


@every_student
def test_merging(tmp_path: Path, student: str) -> None:
    data = data_of(tmp_path, "merging", student)
    versions = [version for run in data["runs"] for version in run]
    newest: dict[str, tuple[int, str]] = {}
    for sequence, key, what in sorted(versions):
        if sequence <= data["snapshot"]:
            newest[key] = sequence, what
    seen = [newest[key][0] for key in sorted(newest) if newest[key][1] == "value"]
    backwards = sorted(versions, key=lambda one: (one[1], -one[0]), reverse=True)[:4]
    assert answers_of("merging", student) == [
        spelled(*seen) or "none",
        spelled(*(one[0] for one in backwards)),
    ]


@every_student
def test_reading(tmp_path: Path, student: str) -> None:
    data = data_of(tmp_path, "reading", student)
    key = data["key"]
    asked = [
        number
        for level in range(4)
        for number, low, high in sorted(data[f"level_{level}"], reverse=True)
        if low <= key <= high
    ]
    read: list[int] = []
    for number in asked:
        if number in data["filters_that_say_maybe"]:
            read += [number, sum(one < key for one in data["index_keys"][number])]
        if number == data["table_that_holds_the_key"]:
            break
    assert answers_of("reading", student) == [spelled(*asked), spelled(*read)]


@every_student
def test_manifest(tmp_path: Path, student: str) -> None:
    data = data_of(tmp_path, "manifest", student)
    tables: dict[tuple[int, int], str] = {}
    counters: dict[str, int] = {}
    for edit in data["edits"]:
        for name, *content in edit:
            if name == "delete":
                tables.pop((content[0], content[1]), None)
            elif name != "add":
                counters[name] = content[0]
        tables |= {(one[1], one[2]): one[4] for one in edit if one[0] == "add"}
    alive = sorted((first, number) for (level, number), first in tables.items() if level == 2)
    assert answers_of("manifest", student) == [
        spelled(*(number for _, number in alive)),
        spelled(counters["last sequence"], counters["next file number"]),
    ]
