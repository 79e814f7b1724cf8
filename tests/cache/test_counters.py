"""Counters, and their bytes."""

from __future__ import annotations

import pytest

from lsmkv.cache.counters import ZERO, Counters
from lsmkv.errors import CorruptionError


def test_exact_bytes() -> None:
    part = Counters(1, -2, 3, 4)
    assert part.encode() == b"".join(n.to_bytes(8, "big", signed=True) for n in (1, -2, 3, 4))
    assert Counters.decode(part.encode()) == part


def test_none_are_zeros() -> None:
    assert Counters.decode(None) == ZERO
    assert ZERO.plus(Counters(1, 2, 3, 4)) == (1, 2, 3, 4)


def test_counters_of_another_size_are_damage() -> None:
    with pytest.raises(CorruptionError):
        Counters.decode(b"123")
