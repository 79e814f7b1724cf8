"""The times of the demo: stores take turns, and disturbances do not count."""

from __future__ import annotations

import gc
import itertools
import time
from collections import Counter
from typing import Any

from lsmkv.tools.demo.timing import BATCH, MOST_TIMED, ROUNDS, time_gets


class SlowStore:
    """Takes a known time for a Get, and notes the keys and the state of the garbage collector."""

    def __init__(self, name: str, calls: list[tuple[str, bytes]], seconds: float) -> None:
        self._name = name
        self._calls = calls
        self._seconds = seconds

    def get(self, key: bytes) -> None:
        assert not gc.isenabled()
        self._calls.append((self._name, key))
        if self._seconds:
            time.sleep(self._seconds)


def test_the_stores_take_turns_while_gets_are_timed() -> None:
    calls: list[tuple[str, bytes]] = []
    stores: Any = [SlowStore("a", calls, 0.0002), SlowStore("b", calls, 0)]
    rounds: list[int] = []
    keys = [b"%d" % n for n in range(BATCH + 1)]
    (present, absent), (fast, _) = time_gets(stores, [keys, [b"no"]], rounds.append)
    assert gc.isenabled()
    assert rounds == [1] * ROUNDS
    assert Counter(calls) == {(name, key): ROUNDS for name in "ab" for key in [*keys, b"no"]}
    batches = [name for name, group in itertools.groupby(calls, key=lambda call: call[0])]
    assert len(batches) >= 4 * ROUNDS  # not one store after the other
    assert batches[0] == "a"
    assert calls[len(calls) // ROUNDS][0] == "b"  # it is the first one in the second round
    for one in (present, absent):
        assert 200 <= one.per_get <= one.slowest
        assert one.fastest <= one.slowest
        assert one.spread >= 1
    assert fast.per_get < present.slowest


def test_a_batch_counts_at_the_fastest_of_its_rounds() -> None:
    calls: list[tuple[str, bytes]] = []

    class Disturbed(SlowStore):
        def get(self, key: bytes) -> None:
            self._seconds = 0.05 if len(calls) != 3 else 0
            super().get(key)

    stores: Any = [Disturbed("a", calls, 0)]
    [[times]] = time_gets(stores, [[b"k"]])
    assert times.per_get == times.fastest < 50_000 <= times.slowest
    assert times.spread > 1


def test_no_more_keys_are_timed_than_are_needed() -> None:
    calls: list[tuple[str, bytes]] = []
    stores: Any = [SlowStore("a", calls, 0)]
    time_gets(stores, [[b"%d" % n for n in range(3 * MOST_TIMED)]])
    assert len(calls) == MOST_TIMED * ROUNDS
