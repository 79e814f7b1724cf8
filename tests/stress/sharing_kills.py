"""Counts kills of owners without a violation, over many sittings: ``sharing_kills.py``.

A sitting runs ``sharing_study.py`` on one store after the other, with seeds that no sitting before
it has used, and adds to its line of ``sharing_kills.txt`` after each store.  A violation ends it.
``docs/reliability.md`` has the sums; ``--page`` only writes them there.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
import time
from pathlib import Path
from typing import NamedTuple

import sharing_study
from result_rows import RELIABILITY, quoted, read_rows, write_rows

RESULTS = Path(__file__).with_name("sharing_kills.txt")
PAGE = RELIABILITY
TARGET = 10_000
"""How many owners are to be killed in all sittings together."""
LARGE = 2_000
"""How many of them in one sitting."""
_FIRST = 10**9
"""The first seed of the first sitting; the suite uses smaller ones."""
_WIDTH = 120
_HEAD = """\
# Kills of processes that share a store, a line for each sitting: written by sharing_kills.py.
# First seed, stores, kills of owners, kills in all, stops, writes, reads, violations.
"""


class Sitting(NamedTuple):
    """What was done in one."""

    first: int
    """The seed of its first store; the others follow."""
    stores: int
    owners: int
    """How many owners were killed."""
    kills: int
    """Of owners and members."""
    stops: int
    writes: int
    """How many were checked."""
    reads: int
    violations: int


def read_sittings(path: Path = RESULTS) -> list[Sitting]:
    """From the first one to the last."""
    return [Sitting(*map(int, row)) for row in read_rows(path)]


def write_sittings(sittings: list[Sitting], path: Path = RESULTS) -> None:
    """Replace the file."""
    write_rows(path, _HEAD, sittings)


def after_store(before: Sitting, figures: dict[str, int], violations: int) -> Sitting:
    """The sitting with one more store."""
    return Sitting(
        before.first,
        before.stores + 1,
        before.owners + figures.get("kills of owners", 0),
        before.kills + figures.get("kills", 0),
        before.stops + figures.get("stops", 0),
        before.writes + figures.get("writes", 0),
        before.reads + figures.get("reads", 0),
        before.violations + violations,
    )


def next_seed(sittings: list[Sitting]) -> int:
    """One that no sitting has used."""
    return max([_FIRST, *(one.first + one.stores for one in sittings)])


def page(text: str) -> str:
    """The text of ``docs/reliability.md`` with the sums of now."""
    sittings = read_sittings()
    _, _, owners, kills, stops, writes, reads, violations = map(sum, zip(*sittings, strict=True))
    most = max(one.owners for one in sittings)
    said = (
        f"Real processes: {owners:,} owners were killed so far, in {len(sittings)} sittings; in the"
        f" longest one {most:,}. There were {kills:,} kills and {stops:,} stops in all."
        f" {writes:,} writes and {reads:,} reads were checked, with {violations} violations."
        " Each sitting of `tests/stress/sharing_kills.py` has new seeds."
    )
    said = textwrap.fill(said, _WIDTH, break_on_hyphens=False) + "\n"
    return quoted(text, "sharing kills", said)


def main() -> int:
    """One sitting; 1 after a violation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0, help="how long it takes")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file with the sums")
    parser.add_argument("--page", action="store_true", help="only write the page")
    arguments = parser.parse_args()
    failed = 0
    if not arguments.page:
        sittings = read_sittings(arguments.results)
        now = Sitting(next_seed(sittings), *[0] * 7)
        end = time.monotonic() + 60 * arguments.minutes
        while time.monotonic() < end and not failed:
            seed = now.first + now.stores
            outcome = sharing_study.run(sharing_study.STORE, seed, lambda line: None)
            failed = len(outcome.violations)
            now = after_store(now, outcome.figures, failed)
            write_sittings([*sittings, now], arguments.results)
            print(f"seed {seed}: {now.owners:,} kills of owners, {failed} violations", flush=True)
            print("".join(f"    {one}\n" for one in outcome.violations), end="", flush=True)
        owners = sum(one.owners for one in [*sittings, now])
        print(f"{now.owners:,} of {LARGE:,} in a sitting; {owners:,} of {TARGET:,} in all")
    if arguments.results == RESULTS:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
