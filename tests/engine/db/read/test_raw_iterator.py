"""lsmkv.engine.db.read.raw_iterator: it stands on an entry or nowhere, and goes both ways."""

from __future__ import annotations

import gc
import random
from bisect import bisect_left
from collections.abc import Callable, Iterator

import pytest
from drawn_stores import drawn_store
from states import Case, Drawing, states
from trees import key_of, key_text, words_text

import lsmkv
from lsmkv.engine.db.read.raw_iterator import RawIterator
from lsmkv.errors import ClosedError, IOError, IteratorInvalidError
from lsmkv.testing.faulty import FaultyEnv

READERS = ("key", "value", "item")


@pytest.fixture
def db() -> Iterator[lsmkv.DB]:
    with lsmkv.DB(":memory:") as store:
        yield store


def filled(db: lsmkv.DB, keys: bytes = b"abcde") -> RawIterator:
    for key in keys:
        db.put(bytes([key]), bytes([key]).upper())
    return db.raw_iterator()


def assert_nowhere(it: RawIterator) -> None:
    assert it.valid() is False
    for name in (*READERS, "next", "prev"):
        with pytest.raises(IteratorInvalidError):
            getattr(it, name)()
    assert it.valid() is False


def where(it: RawIterator) -> str:
    if not it.valid():
        assert_nowhere(it)
        return "nowhere"
    assert it.item() == (it.key(), it.value())
    return f"{key_text(it.key())}={it.value().decode()}"


def answer(drawing: Drawing, words: list[str]) -> str:
    """Of the store that is drawn."""
    command, *moves = " ".join(words).split(", ")
    match command.split():
        case ["raw"]:
            prefix = None
        case ["raw", "prefix", key]:
            prefix = key_of(key)
        case _:
            raise NotImplementedError
    with drawn_store(drawing) as store, store.raw_iterator(prefix=prefix) as it:
        stands = [where(it)]
        for name, *target in map(str.split, moves):
            getattr(it, name)(*map(key_of, target))
            stands.append(where(it))
        return words_text(stands)


@states("raw_iterator.txt")
def test_states_of_raw_iterators(case: Case) -> None:
    case.check(answer, draws="memtable|L[0-6]|order")


def test_targets_are_bytes(db: lsmkv.DB) -> None:
    it = filled(db, b"bdf")
    it.seek(bytearray(b"d"))
    assert it.value() == b"D"
    for wrong in ("d", 1, None):
        with pytest.raises(TypeError):
            it.seek(wrong)  # type: ignore[arg-type]
    assert it.value() == b"D"


@pytest.mark.parametrize("flushed", [False, True])
def test_any_sequence_of_moves_against_a_model(db: lsmkv.DB, flushed: bool) -> None:
    """Against a list and a place in it, over many blocks, deletions and versions included."""
    rng = random.Random(7)
    model: dict[bytes, bytes] = {}
    for number in range(6000):
        key = b"%04d" % rng.randrange(2500)
        if rng.random() < 0.25:
            db.delete(key)
            model.pop(key, None)
        else:
            model[key] = b"%d" % number * 8
            db.put(key, model[key])
        if flushed and number % 2000 == 1999:
            db.flush()
    keys = sorted(model)
    it = db.raw_iterator()
    db.delete(keys[0])  # not seen by the iterator
    at = -1  # nowhere

    def seek(place: int) -> int:
        return place if 0 <= place < len(keys) else -1

    for _ in range(1500):
        action = rng.random()
        if action < 0.01:
            it.seek_to_first()
            at = 0
        elif action < 0.02:
            it.seek_to_last()
            at = len(keys) - 1
        elif action < 0.05 or at < 0:
            target = b"%04d" % rng.randrange(2600)
            it.seek(target)
            at = seek(bisect_left(keys, target))
        else:  # long runs, so that windows are left on both sides
            run = rng.randrange(200)
            step = rng.choice((1, -1))
            for _ in range(run):
                (it.next if step > 0 else it.prev)()
                at = seek(at + step)
                if at < 0:
                    break
        assert it.valid() is (at >= 0)
        if at >= 0:
            assert it.item() == (keys[at], model[keys[at]])


def step_until_a_read_fails(it: RawIterator, step: Callable[[], None]) -> bytes:
    """The key at which it failed."""
    while True:
        before = it.key()
        try:
            step()
        except IOError:
            return before


def test_it_stays_where_it_is_when_a_read_fails() -> None:
    env = FaultyEnv()
    with lsmkv.DB("db", env=env, create_if_missing=True, compression=None, lru_cache_size=0) as db:
        for number in range(2000):
            db.put(b"%04d" % number, b"v" * 100)
        db.flush()
        it = db.raw_iterator()
        it.seek(b"1000")
        for step, change in ((it.next, 1), (it.prev, -1)):
            env.fail_at(1, calls={"read"}, sticky=True)
            before = step_until_a_read_fails(it, step)
            env.heal()
            assert it.key() == before
            step()
            assert int(it.key()) == int(before) + change


def test_closing(db: lsmkv.DB) -> None:
    it = filled(db)
    it.seek_to_first()
    with it as same:
        assert same is it
    assert it.closed
    it.close()
    for name in ("valid", *READERS, "next", "prev", "seek_to_first", "seek_to_last"):
        with pytest.raises(ClosedError):
            getattr(it, name)()
    with pytest.raises(ClosedError):
        it.seek(b"a")


def test_the_store_is_closed(db: lsmkv.DB) -> None:
    it = filled(db)
    it.seek_to_first()
    db.close()
    assert it.closed
    for name in ("valid", *READERS, "next", "prev"):
        with pytest.raises(ClosedError):
            getattr(it, name)()
    it.close()
    with pytest.raises(ClosedError):
        db.raw_iterator()


def test_closing_lets_go_of_the_versions(db: lsmkv.DB) -> None:
    it = filled(db)
    store = db._store
    assert store is not None
    assert len(store.pinned) == 1
    it.close()
    it.close()
    assert len(store.pinned) == 0
    it = db.raw_iterator()
    assert len(store.pinned) == 1
    del it
    gc.collect()
    assert len(store.pinned) == 0
    with pytest.raises(TypeError):
        db.raw_iterator(prefix="a")  # type: ignore[arg-type]
    assert len(store.pinned) == 0


def test_a_snapshot_has_one_too(db: lsmkv.DB) -> None:
    filled(db, b"ab")
    with db.snapshot() as snapshot:
        db.put(b"c", b"")
        it = snapshot.raw_iterator(verify_checksums=False, fill_cache=False)
        it.seek_to_last()
        assert it.item() == (b"b", b"B")
    it.prev()  # outlives its snapshot
    assert it.key() == b"a"
    with pytest.raises(ClosedError):
        snapshot.raw_iterator()
    prefixed = db.snapshot().raw_iterator(prefix=b"b")
    prefixed.seek_to_first()
    assert prefixed.key() == b"b"


def test_it_keeps_its_store_open() -> None:
    """Nobody else holds the store: it is closed when the iterator is, with the usual warning."""
    store = lsmkv.DB(":memory:")
    store.put(b"k", b"v")
    it = store.raw_iterator()
    del store
    gc.collect()
    it.seek_to_first()
    assert it.key() == b"k"
    with pytest.warns(ResourceWarning):
        it.close()


def test_a_raw_iterator_is_no_python_iterator(db: lsmkv.DB) -> None:
    with pytest.raises(TypeError):
        iter(db.raw_iterator())  # type: ignore[call-overload]


def test_subclasses_are_welcome(db: lsmkv.DB) -> None:
    filled(db, b"ab")

    class Counting(RawIterator):
        steps = 0

        def next(self) -> None:
            self.steps += 1
            super().next()

    store = db._store
    assert store is not None
    with Counting(store, store.read_view(), db, None, True) as it:
        it.seek_to_first()
        it.next()
        assert (it.key(), it.steps) == (b"b", 1)
