"""Lab 8 in a store.  A part of it that fails is set aside, and the store answers rightly."""

from __future__ import annotations

from pathlib import Path

import pytest
from course_stores import failed, folder_of_references


@pytest.mark.parametrize(
    ("part", "source", "words"),
    [
        ("Get", "def get(levels, key):\n    return None\n", "get("),
        (
            "Get",
            "def get(levels, key):\n    return levels[9]\n",
            "raised IndexError: list index out of range lab8_reading.py, line",
        ),
    ],
)
def test_a_part_that_fails_is_set_aside(tmp_path: Path, part: str, source: str, words: str) -> None:
    assert words in failed(folder_of_references(tmp_path / "labs"), part, source)
