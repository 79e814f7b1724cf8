"""lsmkv.db.pinned: the sequences that someone still looks at, and what holds each of them."""

from __future__ import annotations

import dis
import gc
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lsmkv
from lsmkv import DB
from lsmkv.db import pinned as live_module
from lsmkv.db.pinned import Pin, PinnedSequences


def test_nothing_is_live_at_first() -> None:
    live = PinnedSequences()
    assert live.newest() == -1
    assert live.oldest(17) == 17
    assert len(live) == 0


def test_newest_and_oldest() -> None:
    live = PinnedSequences()
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
    live = PinnedSequences()
    for sequence in (10, 20, 10, 15, 20, 1):
        live.register(sequence)
    assert (live.oldest(0), live.newest()) == (1, 20)
    for sequence in (20, 1, 10, 20):
        live.release(sequence)
    assert (live.oldest(0), live.newest()) == (10, 15)


@given(data=st.data())
def test_against_a_plain_list(data: st.DataObject) -> None:
    live = PinnedSequences()
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
    live = PinnedSequences()
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


# Pins


def test_a_pin_releases_once() -> None:
    live = PinnedSequences()
    other = Pin(live, 7)
    pin = Pin(live, 7)
    assert (pin.sequence, len(live)) == (7, 2)
    pin.release()
    pin.release()
    del pin
    gc.collect()
    assert (live.newest(), len(live)) == (7, 1)
    other.release()
    assert (live.newest(), len(live)) == (-1, 0)


def test_a_forgotten_pin_releases() -> None:
    live = PinnedSequences()
    pin = Pin(live, 7)
    assert live.newest() == 7
    del pin
    gc.collect()
    assert (live.newest(), len(live)) == (-1, 0)


def test_a_pin_that_was_never_made_releases_nothing() -> None:
    live = PinnedSequences()
    other = Pin(live, 7)
    with pytest.raises(TypeError):
        Pin(live, "7")  # type: ignore[arg-type]
    gc.collect()
    assert (live.newest(), len(live)) == (7, 1)
    other.release()


HOLDERS = {
    str(Path(lsmkv.__path__[0], "db", f"{name}.py"))
    for name in (
        *("base_iterator", "db", "iterator", "live", "raw_iterator", "reader", "snapshot"),
        *("store", "verify"),
    )
}
"""The modules through which a pin goes."""


class Interrupt:
    """Ctrl-C at the ``at``-th place in ``HOLDERS`` where the interpreter looks for signals.

    It does so behind each call, at the start of each function, and when it jumps back.
    """

    def __init__(self, at: int) -> None:
        self.left = at
        self.place: str | None = None
        """The file that was interrupted, if one was."""
        self._looking: set[FrameType] = set()  # those that look before their next instruction

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in HOLDERS:
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        looks = frame in self._looking
        self._looking.discard(frame)
        if event == "call":
            self._looking.add(frame)
        elif event == "opcode":
            if looks:
                self._strike(frame)
            name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if name.startswith(("CALL", "JUMP_BACK")):
                self._looking.add(frame)
        return self.trace

    def _strike(self, frame: FrameType) -> None:
        self.left -= 1
        if self.left < 0 and self.place is None:
            self.place = frame.f_code.co_filename
            self._looking.clear()
            raise KeyboardInterrupt


def make_and_forget(db: DB) -> None:
    db.iterator(start=b"a", stop=b"b")


def make_and_close(db: DB) -> None:
    db.iterator().close()


def read_in_a_block(db: DB) -> None:
    with db.iterator() as it:
        list(it)


def make_raw(db: DB) -> None:
    db.raw_iterator(prefix=b"a").close()


def refuse(db: DB) -> None:
    with pytest.raises(TypeError):
        db.iterator(start="a")  # type: ignore[arg-type]


def refuse_raw(db: DB) -> None:
    with pytest.raises(TypeError):
        db.raw_iterator(prefix="a")  # type: ignore[arg-type]


def take_a_snapshot(db: DB) -> None:
    with db.snapshot() as snapshot:
        snapshot.iterator().close()
        snapshot.raw_iterator()


def get_many(db: DB) -> None:
    db.multi_get([b"a", b"b"])


def verify(db: DB) -> None:
    db.verify()


@pytest.mark.untraced  # a tracer of its own
@pytest.mark.skipif(lsmkv.COMPILED, reason="compiled code is not interrupted between two steps")
@pytest.mark.parametrize(
    "use",
    [
        make_and_forget,
        make_and_close,
        read_in_a_block,
        make_raw,
        refuse,
        refuse_raw,
        take_a_snapshot,
        get_many,
        verify,
    ],
)
def test_an_interrupt_anywhere_releases_nothing_twice(
    use: Callable[[DB], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it leave anything registered, but from within the few steps of doing that."""
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # it strikes in finalizers too
    # CPython 3.12 looks for this only when tracing begins, not when a frame asks for it later.
    sys._getframe().f_trace_opcodes = True
    with DB(":memory:") as db:
        db.put(b"a", b"1")
        db.flush()
        store = db._store
        assert store is not None
        sequence = store.versions.last_sequence
        sys.settrace(Interrupt(10_000_000).trace)  # CPython 3.13 does so from the second time on
        use(db)
        sys.settrace(None)
        for at in range(10_000):
            store.pinned = PinnedSequences()
            other = Pin(store.pinned, sequence)  # from which a second release would take it
            interrupt = Interrupt(at)
            sys.settrace(interrupt.trace)
            try:
                use(db)
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(None)
            gc.collect()
            left = len(store.pinned) - 1
            assert left == 0 or (left == 1 and interrupt.place == live_module.__file__), at
            assert store.pinned.newest() == sequence
            other.release()
            if interrupt.place is None:
                break
        assert interrupt.place is None
        assert at > 10
