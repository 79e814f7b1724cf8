"""A damaged store, opened for an export: what a repair of it would keep, and what is skipped.

The repair goes into a temporary directory, where a repair's rules decide what is kept: an entry
that a lost block may have replaced is also skipped.  The store itself is only read.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import lsmkv
from lsmkv.tools.arguments import is_shard_set, open_to_read
from lsmkv.tools.console import say
from lsmkv.tools.drawing import progress
from lsmkv.tools.text import count

SKIPPED = 3
"""The exit status of an export that is not complete, as that of ``verify`` for damage."""
_MOST = 20
"""Lines that are printed of what was skipped."""


class Skipped(NamedTuple):
    """The parts of a store that an export leaves out, and the uncertainties of the rest."""

    ranges: tuple[dict[str, Any], ...] = ()
    """The lost blocks of tables, and the keys around each: those of a plan."""
    stale: int = 0
    """Entries that are left out because what is lost may have replaced them."""
    logs: tuple[str, ...] = ()
    """Lost parts of logs."""
    guessed: bool = False
    """True if no MANIFEST is intact, so that deleted keys may be back."""

    @property
    def is_empty(self) -> bool:
        """True if the export is complete."""
        return self == Skipped()

    def tell(self) -> None:
        """Print what was skipped, on stderr."""
        joined = _joined(self.ranges)
        for lost in joined[:_MOST]:
            first = "the first key" if lost["after"] is None else f"'{lost['after']}'"
            last = "the last key" if lost["to"] is None else f"'{lost['to']}'"
            say(f"skipped: {lost['file']}: {lost['reason']}, keys from {first} to {last}")
        if len(joined) > _MOST:
            say(f"skipped: {count(len(joined) - _MOST, 'more range')}")
        if self.stale:
            say(f"skipped: {count(self.stale, 'entry')} that what is lost may have replaced")
        for damage in self.logs:
            say(f"skipped: {damage}")
        if self.guessed:
            say("no MANIFEST is intact: keys that were deleted may be in the export")

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "ranges": list(self.ranges),
            "stale": self.stale,
            "logs": list(self.logs),
            "guessed": self.guessed,
        }


@contextlib.contextmanager
def open_salvaged(directory: str) -> Iterator[tuple[lsmkv.DB, Skipped]]:
    """Open what can be read of a store, which may be undamaged.

    Undamaged tables are linked into a temporary directory, or copied into one on another file
    system.  Raises what :func:`lsmkv.repair_db` raises, and ``ValueError`` for a shard set.
    """
    if is_shard_set(directory):
        raise ValueError(f"--skip-damaged is for stores, and {directory} is a shard set")
    with tempfile.TemporaryDirectory(prefix="lsmkv-export-") as place:
        sound = os.path.join(place, "store")
        with progress("Reading", "") as bar:
            plan = lsmkv.repair_db(
                directory, into=sound, confirm=lambda plan: plan.needed, progress=bar.report
            )
        with open_to_read(sound if plan.needed else directory) as db:
            yield db, _skipped(plan) if plan.needed else Skipped()


def _joined(ranges: tuple[dict[str, Any], ...]) -> list[dict[str, Any]]:
    """The ranges, with those that begin where the one before ends made one."""
    joined: list[dict[str, Any]] = []
    for one in ranges:
        last = joined[-1] if joined else {}
        if last and last["file"] == one["file"] and last["to"] == one["after"] is not None:
            joined[-1] = last | {"to": one["to"]}
        else:
            joined.append(one)
    return joined


def _skipped(plan: lsmkv.RepairPlan) -> Skipped:
    tables = plan.to_dict()["tables"]
    survey = plan.survey
    return Skipped(
        tuple({"file": table["file"]} | lost for table in tables for lost in table["lost"]),
        plan.stale,
        tuple(
            f"{log.name}: {problem.reason}"
            for log in (*survey.logs, *survey.lost)
            if log.needed
            for problem in log.damage
        ),
        not plan.by_levels,
    )
