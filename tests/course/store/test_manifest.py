"""Lab 9 in a store.  A part of it that fails is set aside, and the store answers rightly."""

from __future__ import annotations

from pathlib import Path

import pytest
from course_stores import failed, folder_of_references


@pytest.mark.parametrize(
    ("part", "source", "words"),
    [
        ("edits", 'def encode_edit(fields):\n    return b""\n', "encode_edit("),
        ("edits", "def decode_edit(record):\n    return []\n", "decode_edit("),
        ("levels", "def apply_edit(levels, fields):\n    return levels\n", "apply_edit("),
        (
            "MANIFEST",
            "def replay_edits(records):\n    return {}, [[]] * 7\n",
            "replay_edits has None for tag 2",
        ),
        ("CURRENT", "def set_current(directory, number):\n    pass\n", "set_current("),
        (
            "flush",
            "def flush(directory, manifest, table_name, table, edit, old_log):\n    pass\n",
            "flush has not made",
        ),
        (
            "flush",
            "own = flush\ndef flush(directory, manifest, table_name, table, edit, old_log):\n"
            "    own(directory, manifest, table_name, table[:-1], edit, old_log)\n",
            "flush has written another table",
        ),
    ],
)
def test_a_part_that_fails_is_set_aside(tmp_path: Path, part: str, source: str, words: str) -> None:
    assert words in failed(folder_of_references(tmp_path / "labs"), part, source)
