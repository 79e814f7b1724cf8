"""Counts schedules without a violation, over many sittings: ``schedules.py [--minutes 30]``.

A sitting tries seeds that no sitting before it has tried, in the modes of ``simulation_study.py``,
and adds to ``schedules.txt`` after every few of them.  A violation ends it.  The sums are quoted in
``docs/reliability.md``.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import NamedTuple

from result_rows import RELIABILITY, quoted, read_rows, write_rows
from simulation_study import MODES, try_mode

RESULTS = Path(__file__).with_name("schedules.txt")
PAGE = RELIABILITY
LOCKS, LINES = "locks and calls", "every line"
TARGETS = {LOCKS: 190_000, LINES: 10_000}
"""How many schedules there are to be, by what is a switch point."""
FIXED = {1004000001298: "a checkpoint contained a write whose sync had failed"}
"""Seeds of runs that have failed, and the fault of the engine that each found."""
_AT_ONCE = {LOCKS: 40, LINES: 5}
_FIRST = 10**12
"""The first seed of the first mode; other programs of this folder use smaller ones."""
_MODES = {name: options for name, _, options in MODES}


class Tried(NamedTuple):
    """What was tried in a mode."""

    first: int
    """The first seed."""
    runs: int
    """That one and those after it."""
    violations: int


def kind_of(mode: str) -> str:
    """What is a switch point in a mode."""
    return LINES if "lines" in _MODES[mode] else LOCKS


def read_tried(path: Path = RESULTS) -> dict[str, Tried]:
    """By mode."""
    tried = {name: Tried(_FIRST + at * 10**9, 0, 0) for at, name in enumerate(_MODES)}
    for name, *numbers in read_rows(path):
        tried[name] = Tried(*map(int, numbers))
    return tried


def totals(tried: dict[str, Tried]) -> dict[str, tuple[int, int]]:
    """Schedules and violations, by what is a switch point."""
    sums = dict.fromkeys(TARGETS, (0, 0))
    for name, one in tried.items():
        runs, violations = sums[kind_of(name)]
        sums[kind_of(name)] = runs + one.runs, violations + one.violations
    return sums


def write_tried(tried: dict[str, Tried], path: Path = RESULTS) -> None:
    """Replace the file."""
    sums = ", ".join(
        f"{runs:,} at {kind} with {violations} violations"
        for kind, (runs, violations) in totals(tried).items()
    )
    head = (
        "# Schedules that were simulated, summed over all sittings: written by schedules.py.\n"
        f"# {sums}.\n"
        "# Mode, first seed, runs, violations.\n"
    )
    write_rows(path, head, ((name, *one) for name, one in tried.items()))


def next_mode(tried: dict[str, Tried]) -> str:
    """The one that is furthest behind: each kind to its target, each mode to its share of that."""
    shares = dict.fromkeys(TARGETS, 0)
    for name, share, _ in MODES:
        shares[kind_of(name)] += share

    def progress(mode: tuple[str, int, object]) -> float:
        name, share, _ = mode
        return tried[name].runs / (TARGETS[kind_of(name)] * share / shares[kind_of(name)])

    return min(MODES, key=progress)[0]


def page(text: str) -> str:
    """The text of ``docs/reliability.md`` with the sums of now."""
    sums = totals(read_tried())
    schedules = " and ".join(f"{runs:,} at {kind}" for kind, (runs, _) in sums.items())
    violations = sum(number for _, number in sums.values())
    said = (
        f"Schedules without a planted mistake so far: {schedules}.\n"
        f"{violations} of them failed: {', '.join(FIXED.values())}. That is fixed.\n"
        "Each sitting of `tests/stress/schedules.py` continues with new seeds.\n"
    )
    return quoted(text, "schedules", said)


def main() -> int:
    """One sitting; 1 after a violation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0, help="how long it takes")
    arguments = parser.parse_args()
    end = time.monotonic() + 60 * arguments.minutes
    while time.monotonic() < end:
        tried = read_tried()
        mode = next_mode(tried)
        before = tried[mode]
        start = before.first + before.runs
        report = try_mode(0, _AT_ONCE[kind_of(mode)], _MODES[mode], first=start)
        failed = report.failure is not None
        after = Tried(before.first, before.runs + report.runs, before.violations + failed)
        write_tried({**tried, mode: after})
        if failed:
            print(f"{mode}: {report}")
            return 1
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    for kind, (runs, violations) in totals(read_tried()).items():
        print(f"{runs:,} at {kind}, {violations} violations")
    return 0


if __name__ == "__main__":
    sys.exit(main())
