"""Tells when threads have begun to wait for another's request."""

from __future__ import annotations

import threading

import pytest

from lsmkv.shards.remote import flights


class Waiters:
    """Counts the waits in :mod:`lsmkv.shards.remote.flights`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        begun = self._begun = threading.Semaphore(0)

        class Event(threading.Event):
            def wait(self, timeout: float | None = None) -> bool:
                begun.release()
                return super().wait(timeout)

        monkeypatch.setattr(flights, "Event", Event)

    def expect(self, count: int) -> None:
        """Return once that many more waits have begun."""
        for _ in range(count):
            assert self._begun.acquire(timeout=60)
