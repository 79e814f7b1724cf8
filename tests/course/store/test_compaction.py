"""Lab 11 in a store.  A part of it that fails is set aside, and the store answers rightly."""

from __future__ import annotations

from pathlib import Path

import pytest
from course_stores import failed, folder_of_references


@pytest.mark.parametrize(
    ("part", "source", "words"),
    [
        ("scores", "def level_scores(levels):\n    return [9.0] * 6\n", "level_scores("),
        (
            "deletions",
            "def held_deeper(levels, output_level, key):\n    return 1\n",
            "held_deeper(",
        ),
        (
            "compaction",
            "def compact(runs, oldest_snapshot, may_be_deeper):\n    return []\n",
            "compact(",
        ),
        (
            "outputs",
            "def split(entries, limit):\n    return [entries[1:]]\n",
            "split has lost entries",
        ),
    ],
)
def test_a_part_that_fails_is_set_aside(tmp_path: Path, part: str, source: str, words: str) -> None:
    assert words in failed(folder_of_references(tmp_path / "labs"), part, source)
