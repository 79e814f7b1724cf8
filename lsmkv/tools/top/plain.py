"""The figures of a live store as plain data, for JSON."""

from __future__ import annotations

from typing import Any

from lsmkv.shared.owner import Owner
from lsmkv.tools.processes import processes_as_dicts, times_as_dict


def owner_as_dict(owner: Owner) -> dict[str, Any]:
    """Process id, whether it publishes, and what; latencies are in nanoseconds."""
    published = owner.published
    plain: dict[str, Any] = {"pid": owner.pid, "publishes": owner.publishes, "published": None}
    if published is not None and owner.publishes:
        compaction = published.compaction
        plain["published"] = published._asdict() | {
            "stats": published.stats.to_dict(),
            "compaction": None if compaction is None else compaction._asdict(),
            "latencies": {
                name: times_as_dict(found) for name, found in published.latencies.items()
            },
            "processes": processes_as_dicts(published.processes),
            "leased_names": [one._asdict() for one in published.leased_names],
        }
    return plain
