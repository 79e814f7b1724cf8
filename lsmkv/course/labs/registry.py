"""All labs, in order."""

from __future__ import annotations

from lsmkv.course.lab import Lab
from lsmkv.course.labs import (
    block,
    bloom,
    compaction,
    filter_block,
    keys,
    log,
    manifest,
    measuring,
    merging,
    reading,
    recovery,
    table,
)

LABS = (
    keys.LAB,
    log.LAB,
    block.LAB,
    bloom.LAB,
    filter_block.LAB,
    table.LAB,
    merging.LAB,
    reading.LAB,
    manifest.LAB,
    recovery.LAB,
    compaction.LAB,
    measuring.LAB,
)

CAPSTONE = Lab(13, "store", "Your store", (), (), lambda: "")
"""A lab with a text, but neither a file nor checks: ``lsmkv course run`` is the lab."""
CAPSTONE_NAMES = ("13", "lab13", "store")


def find(name: str) -> Lab:
    """A lab by its number, its short name or its file's name; ``ValueError`` if there is none.

    >>> find("4").slug, find("bloom").number, find("lab4_bloom.py").number
    ('bloom', 4, 4)
    """
    asked = name.removesuffix(".py")
    for lab in LABS:
        file = lab.file_name.removesuffix(".py")
        if asked in (str(lab.number), f"lab{lab.number}", lab.slug, file):
            return lab
    names = ", ".join(f"{lab.number} ({lab.slug})" for lab in LABS)
    raise ValueError(f"there is no lab {name}: the labs are {names}")
