"""tests/long.txt and tests/interpreted.txt name tests that are there, and the first one leaves make
test the time that it is to take."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from progress import folder_of

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


INTERPRETED = [
    line
    for line in (ROOT / "tests" / "interpreted.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


def test_what_is_run_interpreted_alone_is_there() -> None:
    assert sorted(INTERPRETED) == INTERPRETED
    for name in INTERPRETED:
        assert (ROOT / name).exists(), name


def test_make_test_takes_at_most_five_minutes() -> None:
    """On two cores, with half a minute for the installation and the start."""
    seconds = dict(
        line.split()
        for line in (ROOT / "tests" / "seconds.txt").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    )
    assert sum(map(float, seconds.values())) <= 2 * (300 - 30)
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if path.parent != ROOT / "tests"]
    missing = {folder_of(path.relative_to(ROOT).as_posix()) for path in files} - set(seconds)
    made = {
        "tests/bench",
        "tests/browser",
        "tests/fuzz",
        "tests/packaging",
        "tests/stress",
        "tests/yardstick",
    }
    assert not {name for name in missing - made if not is_long(name)}, "pytest --record-seconds"


def is_long(folder: str) -> bool:
    return any(line.split()[0] == folder for line in LINES)
