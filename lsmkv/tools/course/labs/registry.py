"""The labs there are, in their order."""

from __future__ import annotations

from lsmkv.tools.course.lab import Lab
from lsmkv.tools.course.labs import block, bloom, keys, log, measuring

LABS = (keys.LAB, log.LAB, block.LAB, bloom.LAB, measuring.LAB)


def find(name: str) -> Lab:
    """A lab by its number or its short name; ``ValueError`` if there is none.

    >>> find("4").slug, find("bloom").number
    ('bloom', 4)
    """
    for lab in LABS:
        if name in (str(lab.number), lab.slug):
            return lab
    names = ", ".join(f"{lab.number} ({lab.slug})" for lab in LABS)
    raise ValueError(f"there is no lab {name}: the labs are {names}")
