"""What is known of a live store as plain data, for JSON."""

from __future__ import annotations

from typing import Any

from lsmkv.shared.owner import Histogram, Owner

_PERCENTILES = (50, 90, 99, 99.9)


def owner_as_dict(owner: Owner) -> dict[str, Any]:
    """Process id, whether it publishes, and what; latencies are in nanoseconds."""
    published = owner.published
    plain: dict[str, Any] = {"pid": owner.pid, "publishes": owner.publishes, "published": None}
    if published is not None and owner.publishes:
        compaction = published.compaction
        plain["published"] = published._asdict() | {
            "stats": published.stats.to_dict(),
            "compaction": None if compaction is None else compaction._asdict(),
            "latencies": {name: _latencies(found) for name, found in published.latencies.items()},
        }
    return plain


def _latencies(histogram: Histogram) -> dict[str, Any]:
    plain: dict[str, Any] = {"count": histogram.count, "mean": round(histogram.mean)}
    plain |= {f"p{percent:g}": histogram.percentile(percent) for percent in _PERCENTILES}
    plain["max"] = histogram.percentile(100)
    return plain
