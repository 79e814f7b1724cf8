"""How much the tests of ``tests/scale`` do: by environment variables, little by default."""

from __future__ import annotations

import os


def size(name: str, default: int) -> int:
    """``LSMKV_SCALE_<name>``, a positive number."""
    value = int(os.environ.get(f"LSMKV_SCALE_{name}", default))
    if value < 1:
        raise ValueError(f"LSMKV_SCALE_{name} is {value}")
    return value


PAIRS = size("PAIRS", 20_000)
"""Pairs of a build, about."""
KILLS = size("KILLS", 3)
"""Workers that are killed, of each kind."""
PUBLISHERS = size("PUBLISHERS", 3)
"""Publishers that are killed."""
RACES = size("RACES", 10)
"""Version numbers that are fought for."""
FAULTS = size("FAULTS", 300)
"""Reads through a network that fails."""
READERS_PAIRS = size("READERS_PAIRS", 200_000)
"""Pairs of the set that a reader's memory is measured with."""
