"""How many changes are durable."""

from __future__ import annotations

import time

import pytest

from lsmkv.server.saves import Saves


def test_a_sync_covers_what_was_written_when_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.5]
    monkeypatch.setattr(time, "time", lambda: now[0])
    saves = Saves()
    assert (saves.time, saves.durable) == (1000, 0)
    saves.written = 5
    now[0] += 10
    saves.end(5)
    saves.end(3)  # one that began earlier
    assert (saves.time, saves.durable) == (1010, 5)
