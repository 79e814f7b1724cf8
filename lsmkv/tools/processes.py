"""The processes of a shared store as rows and as JSON: for ``lsmkv stats`` and ``lsmkv top``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from lsmkv.shared.owner import Histogram, ProcessFigures
from lsmkv.tools.text import duration

_PERCENTILES = (50, 90, 99, 99.9)


class ProcessRow(NamedTuple):
    """One process, or all members together that have gone."""

    name: str
    """Its process id."""
    role: str
    gets: int
    writes: int
    taken: Histogram
    """Latencies of its writes; empty for an owner's own."""
    without_owner: Histogram

    def percentile(self, percent: float) -> str:
        """A percentile of the times of its writes; "-" if it has written nothing."""
        return duration(self.taken.percentile(percent)) if self.taken.count else "-"

    @property
    def longest_without_owner(self) -> str:
        """The longest time that it was without an owner before it had this one."""
        found = self.without_owner
        return duration(found.percentile(100)) if found.count else "-"


def process_rows(processes: Sequence[ProcessFigures], writes: int) -> list[ProcessRow]:
    """All processes; of all ``writes`` the owner's own are those that no member has made."""
    members = sum(one.writes.count for one in processes)
    return [
        ProcessRow(
            f"{one.pid}" if one.pid else "-",
            one.role,
            one.counters["gets"],
            max(0, writes - members) if one.role == "owner" else one.writes.count,
            one.writes,
            one.without_owner,
        )
        for one in processes
    ]


def processes_as_dicts(processes: Sequence[ProcessFigures]) -> list[dict[str, Any]]:
    """All processes, for JSON; times are in nanoseconds."""
    return [
        {
            "pid": one.pid,
            "role": one.role,
            "counters": dict(one.counters),
            "writes": times_as_dict(one.writes),
            "without_owner": times_as_dict(one.without_owner),
        }
        for one in processes
    ]


def times_as_dict(histogram: Histogram) -> dict[str, Any]:
    """A histogram's count, mean and percentiles."""
    plain: dict[str, Any] = {"count": histogram.count, "mean": round(histogram.mean)}
    plain |= {f"p{percent:g}": histogram.percentile(percent) for percent in _PERCENTILES}
    plain["max"] = histogram.percentile(100)
    return plain
