"""Read the figures that ``lsmkv demo --json`` prints."""

from __future__ import annotations

from typing import Any


def measured(figures: dict[str, Any], layout: str) -> dict[str, Any]:
    """The figures of one store before it was compacted."""
    (found,) = [one for one in figures["as_loaded"] if one["layout"] == layout]
    return dict(found)


def per_get(figures: dict[str, Any], layout: str, kind: str) -> float:
    """Data blocks that a Get read from files, on average."""
    return float(measured(figures, layout)[kind]["blocks_per_get"])
