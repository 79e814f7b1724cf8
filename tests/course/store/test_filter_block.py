"""Lab 5 in a store.  A part of it that fails is set aside, and the store answers rightly."""

from __future__ import annotations

from pathlib import Path

import pytest
from course_stores import failed, folder_of_references


@pytest.mark.parametrize(
    ("part", "source", "words"),
    [
        (
            "filter blocks",
            'def build_filter_block(blocks, create_filter):\n    return b""\n',
            "build_filter_block(",
        ),
        (
            "finding filters",
            "def key_may_match(data, block_offset, key, may_match):\n    return False\n",
            "key_may_match(",
        ),
    ],
)
def test_a_part_that_fails_is_set_aside(tmp_path: Path, part: str, source: str, words: str) -> None:
    assert words in failed(folder_of_references(tmp_path / "labs"), part, source)
