"""Lab 10 in a store.  A part of it that fails is set aside, and the store answers rightly."""

from __future__ import annotations

from pathlib import Path

import pytest
from course_stores import failed, folder_of_references


@pytest.mark.parametrize(
    ("part", "source", "words"),
    [
        (
            "logs",
            "def logs_to_replay(names, log_number, prev_log_number):\n    return []\n",
            "logs_to_replay(",
        ),
        ("recovery", "def replay(logs, last_sequence):\n    return {}, 0\n", "replay("),
        (
            "obsolete files",
            'def obsolete_files(*arguments):\n    return ["CURRENT"]\n',
            "obsolete_files(",
        ),
        (
            "commit",
            "def commit(directory, files, manifest_number, obsolete):\n    pass\n",
            "commit has not made MANIFEST-",
        ),
    ],
)
def test_a_part_that_fails_is_set_aside(tmp_path: Path, part: str, source: str, words: str) -> None:
    assert words in failed(folder_of_references(tmp_path / "labs"), part, source)
