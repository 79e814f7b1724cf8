"""Lab 6 in a store.  A part of it that fails is set aside, and the store answers rightly."""

from __future__ import annotations

from pathlib import Path

import pytest
from course_stores import failed, folder_of_references


@pytest.mark.parametrize(
    ("part", "source", "words"),
    [
        ("sealed blocks", "def seal_block(contents):\n    return contents\n", "seal_block("),
        ("sealed blocks", 'def unseal_block(stored):\n    return b""\n', "unseal_block("),
        ("handles", 'def block_handle(offset, size):\n    return b"\\0\\0"\n', "block_handle("),
        ("index keys", "def separator(last, first):\n    return last + first\n", "separator("),
        ("footer", "def footer(metaindex, index):\n    return bytes(48)\n", "footer("),
        (
            "tables",
            "def build_table(entries, block_size):\n    return bytes(1000)\n",
            "has other bytes",
        ),
    ],
)
def test_a_part_that_fails_is_set_aside(tmp_path: Path, part: str, source: str, words: str) -> None:
    assert words in failed(folder_of_references(tmp_path / "labs"), part, source)
