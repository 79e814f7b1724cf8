"""Lab 2 in a store.  A part of it that fails is set aside, and the store answers rightly."""

from __future__ import annotations

from pathlib import Path

import pytest
from course_stores import failed, folder_of_references


@pytest.mark.parametrize(
    ("part", "source", "words"),
    [
        ("checksums", "def masked_checksum(kind, data):\n    return 0\n", "masked_checksum("),
        ("records", "def frame(payload, block_offset):\n    return payload\n", "frame("),
        ("log reader", "def read_log(data):\n    return []\n", "lacks record 1"),
        (
            "log reader",
            'own = read_log\ndef read_log(data):\n    return [*own(data), b"more"]\n',
            "has a record",
        ),
        (
            "log reader",
            'own = read_log\ndef read_log(data):\n    return [b"?" for _ in own(data)]\n',
            "has other bytes in record 1",
        ),
    ],
)
def test_a_part_that_fails_is_set_aside(tmp_path: Path, part: str, source: str, words: str) -> None:
    assert words in failed(folder_of_references(tmp_path / "labs"), part, source)
