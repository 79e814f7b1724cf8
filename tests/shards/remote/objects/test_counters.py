"""Counting requests by kind."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from lsmkv.shards.remote.objects.counters import RequestCounters, RequestCounts, Requests


def test_counts_are_kept_by_kind() -> None:
    counters = RequestCounters()
    assert counters.snapshot() == RequestCounts()
    counters.add("get", requests=2, retries=1, bytes_read=7)
    counters.add("put", requests=1, bytes_written=5)
    counters.add("get", requests=1)
    counts = counters.snapshot()
    assert counts.get == Requests(requests=3, retries=1, bytes_read=7)
    assert counts.put == Requests(requests=1, bytes_written=5)
    assert counts.list == counts.delete == Requests()
    assert counts.total == Requests(requests=4, retries=1, bytes_read=7, bytes_written=5)


@pytest.mark.usefixtures("quick_switches")
def test_no_count_is_lost_between_threads() -> None:
    counters = RequestCounters()

    def work(_: int) -> None:
        for _ in range(500):
            counters.add("list", requests=1)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert counters.snapshot().list.requests == 4000
