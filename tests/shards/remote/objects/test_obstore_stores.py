"""How long requests may take, by the bytes that they move."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from lsmkv.shards.remote.objects.obstore_stores import SLOWEST, ObstoreStores, Timeouts


def made(timeout: float) -> tuple[list[Timeouts], ObstoreStores]:
    asked: list[Timeouts] = []

    def make(timeouts: Timeouts) -> Timeouts:
        asked.append(timeouts)
        return timeouts

    return asked, ObstoreStores(make, timeout)


@pytest.mark.parametrize(
    ("length", "seconds"),
    [
        (0, 10),
        (4096, 10),
        (SLOWEST - 1, 10),
        (SLOWEST, 20),
        (10 * SLOWEST, 20),
        (11 * SLOWEST, 40),
        (100 * SLOWEST, 160),
        (5000 * SLOWEST, 5120),
    ],
)
def test_a_request_may_take_as_long_as_its_bytes_need(length: int, seconds: float) -> None:
    _, stores = made(10.0)
    assert stores.sized(length) == Timeouts(seconds, None)


def test_a_reply_of_unknown_length_may_take_long_but_not_stall() -> None:
    _, stores = made(2.0)
    assert stores.unsized() == Timeouts(128.0, 2.0)


def test_a_store_is_made_once() -> None:
    asked, stores = made(10.0)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda at: stores.sized(at % 3 * 50 * SLOWEST), range(100)))
        list(pool.map(lambda _: stores.unsized(), range(100)))
    assert sorted(one.whole for one in asked) == [10, 80, 160, 640]
