"""Lab 1 in a store.  A part of it that fails is set aside, and the store answers rightly."""

from __future__ import annotations

from pathlib import Path

import pytest
from course_stores import failed, folder_of_references


@pytest.mark.parametrize(
    ("part", "source", "words"),
    [
        ("varints", 'def encode_varint(value):\n    return b""\n', "encode_varint("),
        (
            "varints",
            'def decode_varint(data, position):\n    raise IndexError("oh")\n',
            "raised IndexError: oh lab1_keys.py, line",
        ),
        ("internal keys", 'def unpack_key(internal_key):\n    return b"", 0, 0\n', "unpack_key("),
        ("order", "def compare_keys(a, b):\n    return 0\n", "compare_keys("),
    ],
)
def test_a_part_that_fails_is_set_aside(tmp_path: Path, part: str, source: str, words: str) -> None:
    assert words in failed(folder_of_references(tmp_path / "labs"), part, source)
