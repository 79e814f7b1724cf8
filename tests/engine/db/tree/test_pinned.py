"""lsmkv.engine.db.tree.pinned: the pinned sequences, and the pins that hold them."""

from __future__ import annotations

import dis
import gc
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lsmkv
from lsmkv import DB
from lsmkv.engine.db import db as db_module
from lsmkv.engine.db.admin import verify as verify_module
from lsmkv.engine.db.handles import snapshot
from lsmkv.engine.db.read import base_iterator, iterator, raw_iterator, reader
from lsmkv.engine.db.tree import pinned as pinned_module
from lsmkv.engine.db.tree import store as store_module
from lsmkv.engine.db.tree.pinned import Pin, PinnedSequences


def test_nothing_is_pinned_at_first() -> None:
    pinned = PinnedSequences()
    assert pinned.newest() == -1
    assert pinned.oldest(17) == 17
    assert len(pinned) == 0


def test_newest_and_oldest() -> None:
    pinned = PinnedSequences()
    for sequence in (3, 5, 5, 9):
        pinned.register(sequence)
    assert (pinned.oldest(100), pinned.newest(), len(pinned)) == (3, 9, 4)
    assert pinned.all() == [3, 5, 9]
    pinned.release(9)
    pinned.release(3)
    assert pinned.all() == [5]
    assert (pinned.oldest(100), pinned.newest(), len(pinned)) == (5, 5, 2)
    pinned.release(5)
    assert (pinned.oldest(100), pinned.newest(), len(pinned)) == (5, 5, 1)  # registered twice
    pinned.release(5)
    assert (pinned.oldest(100), pinned.newest(), len(pinned)) == (100, -1, 0)


def test_an_older_sequence_may_come_later() -> None:
    """An iterator over a snapshot registers the snapshot's sequence again."""
    pinned = PinnedSequences()
    for sequence in (10, 20, 10, 15, 20, 1):
        pinned.register(sequence)
    assert (pinned.oldest(0), pinned.newest()) == (1, 20)
    for sequence in (20, 1, 10, 20):
        pinned.release(sequence)
    assert (pinned.oldest(0), pinned.newest()) == (10, 15)


@given(data=st.data())
def test_against_a_plain_list(data: st.DataObject) -> None:
    pinned = PinnedSequences()
    model: list[int] = []
    for _ in range(data.draw(st.integers(0, 40))):
        leave = data.draw(st.booleans())
        if model and leave:
            sequence = data.draw(st.sampled_from(model))
            model.remove(sequence)
            pinned.release(sequence)
        else:
            sequence = data.draw(st.integers(0, 10) | st.integers(2**55, 2**56 - 1))
            model.append(sequence)
            pinned.register(sequence)
        assert len(pinned) == len(model)
        if data.draw(st.booleans()):
            assert pinned.newest() == max(model, default=-1)
            assert pinned.oldest(5) == min(model, default=5)
    assert pinned.newest() == max(model, default=-1)
    assert pinned.oldest(5) == min(model, default=5)


def test_release_takes_no_lock() -> None:
    """Finalizers run anywhere, in a thread that holds the store's lock too."""
    pinned = PinnedSequences()
    for sequence in range(4000):
        pinned.register(sequence)

    def release(first: int) -> None:
        for sequence in range(first, 4000, 2):
            pinned.release(sequence)

    threads = [threading.Thread(target=release, args=(first,)) for first in (0, 1)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        oldest = pinned.oldest(4000)
        assert oldest <= pinned.newest() or pinned.newest() == -1
    for thread in threads:
        thread.join()
    assert pinned.oldest(-7) == -7
    assert len(pinned) == 0


# Pins


def test_a_pin_releases_once() -> None:
    pinned = PinnedSequences()
    other = Pin(pinned, 7)
    pin = Pin(pinned, 7)
    assert (pin.sequence, len(pinned)) == (7, 2)
    pin.release()
    pin.release()
    del pin
    gc.collect()
    assert (pinned.newest(), len(pinned)) == (7, 1)
    other.release()
    assert (pinned.newest(), len(pinned)) == (-1, 0)


def test_a_forgotten_pin_releases() -> None:
    pinned = PinnedSequences()
    pin = Pin(pinned, 7)
    assert pinned.newest() == 7
    del pin
    gc.collect()
    assert (pinned.newest(), len(pinned)) == (-1, 0)


def test_a_pin_that_was_never_made_releases_nothing() -> None:
    pinned = PinnedSequences()
    other = Pin(pinned, 7)
    with pytest.raises(TypeError):
        Pin(pinned, "7")  # type: ignore[arg-type]
    gc.collect()
    assert (pinned.newest(), len(pinned)) == (7, 1)
    other.release()


HOLDERS = {
    str(module.__file__)
    for module in (
        *(base_iterator, db_module, iterator, pinned_module, raw_iterator, reader, snapshot),
        *(store_module, verify_module),
    )
}
"""The modules that hold a pin or pass it on."""


class Interrupt:
    """Ctrl-C at the ``at``-th place in ``HOLDERS`` where the interpreter checks for signals.

    It does so after each call, at the start of each function, and when it jumps back.
    """

    def __init__(self, at: int) -> None:
        self.left = at
        self.place: str | None = None
        """The file that was interrupted, if one was."""
        self._checked: set[FrameType] = set()  # checked before their next instruction

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in HOLDERS:
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        checked = frame in self._checked
        self._checked.discard(frame)
        if event == "call":
            self._checked.add(frame)
        elif event == "opcode":
            if checked:
                self._interrupt(frame)
            name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if name.startswith(("CALL", "JUMP_BACK")):
                self._checked.add(frame)
        return self.trace

    def _interrupt(self, frame: FrameType) -> None:
        self.left -= 1
        if self.left < 0 and self.place is None:
            self.place = frame.f_code.co_filename
            self._checked.clear()
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
    with db.snapshot() as view:
        view.iterator().close()
        view.raw_iterator()


def get_many(db: DB) -> None:
    db.multi_get([b"a", b"b"])


def verify_all(db: DB) -> None:
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
        verify_all,
    ],
)
def test_an_interrupt_anywhere_releases_nothing_twice(
    use: Callable[[DB], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sequence stays registered only if the interrupt comes within registering or releasing."""
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # finalizers are interrupted too
    # CPython 3.12 reads this only when tracing begins, not when a frame asks for it later.
    sys._getframe().f_trace_opcodes = True
    gc.collect()
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
            other = Pin(store.pinned, sequence)  # a second release would unpin it
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
            assert left == 0 or (left == 1 and interrupt.place == pinned_module.__file__), at
            assert store.pinned.newest() == sequence
            other.release()
            if interrupt.place is None:
                break
        assert interrupt.place is None
        assert at > 5


def test_a_nested_pin_that_was_released_leaves_nothing_pinned() -> None:
    """It may be released before anything under the lock has seen it."""
    pinned = PinnedSequences()
    Pin(pinned, 7, nested=True).release()
    other = Pin(pinned, 9)
    assert pinned.all() == [9]
    other.release()
    assert pinned.all() == []
    assert len(pinned) == 0
