"""Lab 7 in a store.  A part of it that fails is set aside, and the store answers rightly."""

from __future__ import annotations

from pathlib import Path

import pytest
from course_stores import failed, folder_of_references


@pytest.mark.parametrize(
    ("part", "source", "words"),
    [
        (
            "memtable",
            "def insert(memtable, internal_key, value):\n"
            "    memtable.append((internal_key, value))\n",
            "look_up(",
        ),
        ("memtable", "def look_up(memtable, user_key, sequence):\n    return None\n", "look_up("),
        ("merge", "def merge(runs, backwards):\n    return iter(())\n", "merge"),
        (
            "scans",
            "def visible(entries, sequence):\n    return iter(())\n",
            "entry 1 of a scan is None",
        ),
        (
            "scans",
            "def visible_backwards(entries, sequence):\n    yield 1 / 0\n",
            "ZeroDivisionError",
        ),
    ],
)
def test_a_part_that_fails_is_set_aside(tmp_path: Path, part: str, source: str, words: str) -> None:
    assert words in failed(folder_of_references(tmp_path / "labs"), part, source)
