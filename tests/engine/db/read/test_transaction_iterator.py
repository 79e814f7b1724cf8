"""The iterators of transactions against a model: what they return, and what they have consumed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import lsmkv
from lsmkv import DB

Place = tuple[Any, ...]
BEFORE_ALL: Place = ()
AFTER_ALL: Place = (b"\xff" * 9,)

LETTERS = b"abcDefGh"
KEYS = [bytes([one]) for one in LETTERS] + [bytes([one, two]) for one in b"bDf" for two in b"aMz"]


def same(key: bytes) -> bytes:
    return key


def lower(key: bytes) -> bytes:
    return key.lower()


def turned(key: bytes) -> bytes:
    """A key that sorts the other way; all keys are letters and have two at most."""
    return bytes(255 - one for one in key.lower().ljust(2, b"\0"))


def compare_by(of: Callable[[bytes], bytes]) -> Callable[[bytes, bytes], int]:
    return lambda a, b: (of(a) > of(b)) - (of(a) < of(b))


class Model:
    """An iterator over pairs in order, and the hull of its places since it was placed."""

    def __init__(
        self, entries: dict[bytes, tuple[bytes, bytes]], of: Callable[[bytes], bytes], **given: Any
    ) -> None:
        self.of = of
        self.lower, self.upper = BEFORE_ALL, AFTER_ALL
        if given.get("start") is not None:
            self.lower = (of(given["start"]), 0 if given.get("include_start", True) else 1)
        if given.get("stop") is not None:
            self.upper = (of(given["stop"]), 1 if given.get("include_stop") else 0)
        self.pairs = [
            pair
            for key, pair in sorted(entries.items())
            if self.lower <= (key, 0) and (key, 1) <= self.upper
        ]
        self.reverse = given.get("reverse", False)
        self.limit = given.get("limit")
        self.consumed: list[list[Place]] = []
        self.place(self.upper if self.reverse else self.lower)

    def place(self, gap: Place) -> None:
        self.gap = gap
        self.left = 1 << 30 if self.limit is None else self.limit
        self.consumed.append([gap, gap])

    def move(self, up: bool) -> tuple[bytes, bytes] | None:
        hull = self.consumed[-1]
        found = None
        if up:
            after = [pair for pair in self.pairs if (self.of(pair[0]), 0) >= self.gap]
            found = after[0] if after else None
            to = self.upper if found is None else (self.of(found[0]), 1)
        else:
            before = [pair for pair in self.pairs if (self.of(pair[0]), 1) <= self.gap]
            found = before[-1] if before else None
            to = self.lower if found is None else (self.of(found[0]), 0)
        if found is not None:
            self.gap = to
        hull[0] = min(hull[0], to)
        hull[1] = max(hull[1], to)
        return found

    def next(self) -> tuple[bytes, bytes] | None:
        if self.left <= 0:
            return None
        found = self.move(not self.reverse)
        self.left -= found is not None
        return found

    def prev(self) -> tuple[bytes, bytes] | None:
        found = self.move(self.reverse)
        self.left += found is not None
        return found

    def seek(self, target: bytes) -> None:
        self.place(max(self.lower, min(self.upper, (self.of(target), 0))))

    def has_consumed(self, key: bytes) -> bool:
        at = self.of(key)
        return self.lower <= self.upper and any(
            low <= (at, 0) and (at, 1) <= high for low, high in self.consumed
        )


def outcome(step: Callable[[], Any]) -> Any:
    try:
        return step()
    except StopIteration:
        return None


def random_arguments(chance: random.Random) -> dict[str, Any]:
    given: dict[str, Any] = {"reverse": chance.random() < 0.4}
    for name in ("start", "stop"):
        if chance.random() < 0.4:
            given[name] = chance.choice(KEYS)
            given[f"include_{name}"] = chance.random() < 0.5
    if chance.random() < 0.3:
        given["limit"] = chance.randrange(4)
    return given


def shuffle(db: DB, chance: random.Random) -> None:
    """Put some writes into tables of several levels."""
    if chance.random() < 0.3:
        db.flush()
    if chance.random() < 0.1:
        db.compact_range()


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
@pytest.mark.parametrize("of", [same, lower, turned], ids=lambda of: of.__name__)
def test_against_a_model(of: Callable[[bytes], bytes], isolation: Any) -> None:
    """Every commit conflicts if another wrote a key of a range that was consumed, and only then."""
    options: dict[str, Any] = {}
    if of is not same:
        options = {"comparator": compare_by(of), "comparator_name": of.__name__}
    conflicts = commits = 0
    for seed in range(60):
        chance = random.Random(f"{seed} {of.__name__}")
        with DB(":memory:", **options) as db:
            model: dict[bytes, tuple[bytes, bytes]] = {}
            for _ in range(chance.randrange(25)):
                key = chance.choice(KEYS)
                value = b"%d" % chance.randrange(1000)
                if chance.random() < 0.3:
                    db.delete(key)
                    model.pop(of(key), None)
                else:
                    db.put(key, value)
                    model[of(key)] = key, value
                shuffle(db, chance)
            transaction = db.transaction(isolation=isolation)
            written: set[bytes] = set()
            iterators: list[tuple[Any, Model]] = []
            closed: list[Model] = []
            for _ in range(chance.randrange(30)):
                act = chance.random()
                key = chance.choice(KEYS)
                if act < 0.2:
                    transaction.put(key, b"own")
                    model[of(key)] = key, b"own"
                    written.add(of(key))
                elif act < 0.3:
                    transaction.delete(key)
                    model.pop(of(key), None)
                    written.add(of(key))
                elif act < 0.45 or not iterators:
                    given = random_arguments(chance)
                    iterators.append((transaction.iterator(**given), Model(model, of, **given)))
                else:
                    ours, theirs = chance.choice(iterators)
                    if act < 0.8:
                        assert outcome(ours.next) == theirs.next()
                    elif act < 0.9:
                        assert outcome(ours.prev) == theirs.prev()
                    elif act < 0.94:
                        ours.seek(key)
                        theirs.seek(key)
                    elif act < 0.96:
                        ours.seek_to_start()
                        theirs.place(theirs.lower)
                    elif act < 0.98:
                        ours.seek_to_stop()
                        theirs.place(theirs.upper)
                    else:
                        ours.close()
                        iterators.remove((ours, theirs))
                        closed.append(theirs)
            models = closed + [one for _, one in iterators]
            key = chance.choice(KEYS)
            if not written:
                transaction.put(b"zz", b"")
            expected = of(key) in written or (
                isolation == "serializable" and any(one.has_consumed(key) for one in models)
            )
            db.put(key, b"theirs") if chance.random() < 0.6 else db.delete(key)
            shuffle(db, chance)
            try:
                transaction.commit()
                conflict = False
            except lsmkv.ConflictError:
                conflict = True
            assert conflict == expected, (seed, key)
            conflicts += conflict
            commits += not conflict
    assert conflicts > 10
    assert commits > 10


@pytest.fixture
def db() -> Any:
    with DB(":memory:") as db:
        for key in (b"a", b"c", b"e"):
            db.put(key, b"old")
        yield db


def test_an_iterator_sees_the_writes_before_it_was_made_and_none_after(db: DB) -> None:
    with db.transaction() as transaction:
        transaction.put(b"b", b"mine")
        transaction.delete(b"c")
        early = transaction.iterator()
        transaction.put(b"b", b"later")
        transaction.put(b"c", b"later")
        transaction.delete(b"e")
        late = transaction.iterator(reverse=True)
        for key, _ in transaction:  # which would never end if it saw them
            transaction.put(key + b"+", b"")
        assert list(early) == [(b"a", b"old"), (b"b", b"mine"), (b"e", b"old")]
        assert list(late) == [(b"c", b"later"), (b"b", b"later"), (b"a", b"old")]
        early.seek_to_start()
        assert [key for key, _ in early] == [b"a", b"b", b"e"]
        transaction.rollback()


def test_many_own_writes_and_deletions(db: DB) -> None:
    """Runs of deletions, chunks that grow, and a merge of sources of different sizes."""
    for number in range(3000):
        db.put(b"k%04d" % number, b"old")
        if number == 2000:
            db.flush()
    with db.transaction() as transaction:
        expected = {b"k%04d" % number: b"old" for number in range(3000)}
        for number in range(500, 2900):
            transaction.delete(b"k%04d" % number)
            del expected[b"k%04d" % number]
        for number in range(0, 3000, 7):
            transaction.put(b"k%04d" % number, b"new")
            expected[b"k%04d" % number] = b"new"
        pairs = sorted(expected.items())
        assert list(transaction.iterator(prefix=b"k")) == pairs
        assert list(transaction.iterator(prefix=b"k", reverse=True)) == pairs[::-1]
        assert list(transaction.iterator(start=b"k1234", stop=b"k1300")) == [
            pair for pair in pairs if b"k1234" <= pair[0] < b"k1300"
        ]
    assert dict(db.iterator(prefix=b"k")) == expected


def test_the_parts_that_are_asked_for(db: DB) -> None:
    with db.transaction(isolation="snapshot") as transaction:
        transaction.put(b"b", b"mine")
        assert list(transaction.iterator(include_value=False, limit=2)) == [b"a", b"b"]
        assert list(transaction.iterator(include_key=False, start=b"b")) == [
            b"mine",
            b"old",
            b"old",
        ]
        both = transaction.iterator(include_key=False, include_value=False)
        assert list(both) == [None] * 4


def test_wrong_arguments(db: DB) -> None:
    with db.transaction() as transaction:
        wrong: list[tuple[type[Exception], dict[str, Any]]] = [
            (TypeError, {"start": "text"}),
            (TypeError, {"unknown": 1}),
            (TypeError, {"limit": "3"}),
            (ValueError, {"limit": -1}),
        ]
        for error, arguments in wrong:
            with pytest.raises(error):
                transaction.iterator(**arguments)


def test_iterators_end_with_their_transaction(db: DB) -> None:
    transaction = db.transaction()
    keys = transaction.iterator(include_value=False)
    assert next(keys) == b"a"
    transaction.rollback()
    for step in (keys.next, keys.prev):
        with pytest.raises(lsmkv.ClosedError, match="over"):
            step()
    keys.close()
    with pytest.raises(lsmkv.ClosedError):
        transaction.iterator()


def test_a_closed_iterator_raises(db: DB) -> None:
    with db.transaction() as transaction:
        with transaction.iterator() as entries:
            assert next(entries) == (b"a", b"old")
        assert entries.closed
        with pytest.raises(lsmkv.ClosedError):
            next(entries)


def test_a_transaction_of_a_part() -> None:
    with DB(":memory:") as db:
        db.put(b"a", b"")
        part = db.prefixed_db(b"part:")
        part.put(b"k1", b"old")

        def work(transaction: lsmkv.Transaction) -> list[tuple[bytes, bytes]]:
            transaction.put(b"k2", b"mine")
            seen = list(transaction.iterator(start=b"k"))
            keys = transaction.iterator(include_value=False)
            keys.seek(b"k2")
            assert next(keys) == b"k2"
            assert list(transaction) == seen
            return seen

        assert part.run(work) == [(b"k1", b"old"), (b"k2", b"mine")]
        calls = 0

        def phantom(transaction: lsmkv.Transaction) -> None:
            nonlocal calls
            calls += 1
            count = sum(1 for _ in transaction)
            if calls == 1:
                db.put(b"part:k3", b"theirs")
                db.put(b"qart", b"no key of the part")
            transaction.put(b"count", b"%d" % count)

        part.run(phantom)
        assert (calls, part.get(b"count")) == (2, b"3")
        part.run(phantom, isolation="snapshot")
        assert calls == 3


def test_a_transaction_of_a_store_that_is_open_for_reading_only() -> None:
    env = lsmkv.MemoryEnv()
    with DB("/db", create_if_missing=True, env=env) as db:
        db.put(b"a", b"1")
    with DB("/db", env=env, read_only=True) as db:
        transaction = db.transaction()
        transaction.put(b"b", b"2")
        assert list(transaction) == [(b"a", b"1"), (b"b", b"2")]
        with pytest.raises(lsmkv.ReadOnlyError):
            transaction.commit()
