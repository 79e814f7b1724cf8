"""tests/long.txt names tests that are there, and leaves make test the time that it is to take."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINES = [
    line
    for line in (ROOT / "tests" / "long.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize("line", LINES)
def test_a_line_names_tests_and_their_seconds(line: str) -> None:
    name, seconds = line.split(" ")
    assert int(seconds) > 0
    path, _, function = name.partition("::")
    assert (ROOT / path).exists()
    if function:
        source = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"^(?:async )?def {function}\(", source, re.MULTILINE)


def test_the_lines_are_sorted_and_none_is_within_another() -> None:
    names = [line.split()[0] for line in LINES]
    assert names == sorted(names)
    for name in names:
        assert not any(name.startswith((f"{other}/", f"{other}::")) for other in names)
