"""lsmkv.db.live: the sequences that someone still looks at."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from lsmkv.db.live import LiveSequences


def test_nothing_is_live_at_first() -> None:
    live = LiveSequences()
    assert live.newest() == -1
    assert live.oldest(17) == 17
    assert len(live) == 0


def test_newest_and_oldest() -> None:
    live = LiveSequences()
    for sequence in (3, 5, 5, 9):
        live.register(sequence)
    assert (live.oldest(100), live.newest(), len(live)) == (3, 9, 4)
    assert live.all() == [3, 5, 9]
    live.release(9)
    live.release(3)
    assert live.all() == [5]
    assert (live.oldest(100), live.newest(), len(live)) == (5, 5, 2)
    live.release(5)
    assert (live.oldest(100), live.newest(), len(live)) == (5, 5, 1)  # registered twice
    live.release(5)
    assert (live.oldest(100), live.newest(), len(live)) == (100, -1, 0)


def test_an_older_sequence_may_come_later() -> None:
    """An iterator over a snapshot registers the snapshot's sequence again."""
    live = LiveSequences()
    for sequence in (10, 20, 10, 15, 20, 1):
        live.register(sequence)
    assert (live.oldest(0), live.newest()) == (1, 20)
    for sequence in (20, 1, 10, 20):
        live.release(sequence)
    assert (live.oldest(0), live.newest()) == (10, 15)


@given(data=st.data())
def test_against_a_plain_list(data: st.DataObject) -> None:
    live = LiveSequences()
    model: list[int] = []
    for _ in range(data.draw(st.integers(0, 40))):
        leave = data.draw(st.booleans())
        if model and leave:
            sequence = data.draw(st.sampled_from(model))
            model.remove(sequence)
            live.release(sequence)
        else:
            sequence = data.draw(st.integers(0, 10) | st.integers(2**55, 2**56 - 1))
            model.append(sequence)
            live.register(sequence)
        assert len(live) == len(model)
        if data.draw(st.booleans()):
            assert live.newest() == max(model, default=-1)
            assert live.oldest(5) == min(model, default=5)
    assert live.newest() == max(model, default=-1)
    assert live.oldest(5) == min(model, default=5)


def test_release_takes_no_lock() -> None:
    """Finalizers run anywhere, in a thread that holds the store's lock too."""
    live = LiveSequences()
    for sequence in range(4000):
        live.register(sequence)

    def release(first: int) -> None:
        for sequence in range(first, 4000, 2):
            live.release(sequence)

    threads = [threading.Thread(target=release, args=(first,)) for first in (0, 1)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        oldest = live.oldest(4000)
        assert oldest <= live.newest() or live.newest() == -1
    for thread in threads:
        thread.join()
    assert live.oldest(-7) == -7
    assert len(live) == 0
