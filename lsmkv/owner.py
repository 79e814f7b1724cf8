"""A door for readers and type checkers: when it runs, ``lsmkv.owner`` is ``lsmkv.shared.owner``."""

from __future__ import annotations

from lsmkv.shared.owner import (
    OPERATIONS,
    CompactionUnderWay,
    Histogram,
    Owner,
    ProcessFigures,
    Published,
    read_owner,
)

__all__ = [
    "OPERATIONS",
    "CompactionUnderWay",
    "Histogram",
    "Owner",
    "ProcessFigures",
    "Published",
    "read_owner",
]
