"""Scans that ask prefix filters, against a dict: whatever is skipped, no key is missing."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from stores import TINY

from lsmkv import (
    DB,
    BinaryFusePolicy,
    Bloom64Policy,
    BloomFilterPolicy,
    DelimitedPrefix,
    Error,
    FixedPrefix,
    MemoryEnv,
    PrefixExtractor,
    Snapshot,
)
from lsmkv import Iterator as StoreIterator
from lsmkv.filter.prefix import CallablePrefix

Model = dict[bytes, bytes]
Pairs = list[tuple[bytes, bytes]]

STEMS = [b"", b"a", b"a:", b"ab", b"ab:", b"a::", b"b:", b"c", b"\xff", b"\xff\xff", b"a\xff"]
TAILS = [b"", b"\0", b"1", b"2", b":", b"\xff", b"\xff\xff"]
AFTER = [b"b", b"ac", b"a;", b"b;"]
"""What follows directly behind all keys of a prefix."""
KEYS = sorted({stem + tail for stem in STEMS for tail in TAILS} | set(AFTER))
keys_ = st.sampled_from(KEYS)
bounds_ = st.one_of(st.none(), keys_)
prefixes_ = st.sampled_from([stem for stem in STEMS if stem] + [b"a:1", b"zz", b"ab:\xff"])


def _first_letter(key: bytes) -> bytes | None:
    """Keys that begin with ``a`` or ``b``; the others have no prefix."""
    return key[:1] if key[:1] in (b"a", b"b") else None


def _up_to_colon(key: bytes) -> bytes | None:
    """Without the colon, so that it goes by what follows the prefix: no scan may go by it."""
    return key.partition(b":")[0] if b":" in key else None


EXTRACTORS: list[PrefixExtractor | None] = [
    None,
    *(FixedPrefix(1), FixedPrefix(2), FixedPrefix(3)),
    *(DelimitedPrefix(b":"), DelimitedPrefix(b"::"), DelimitedPrefix(b"\xff")),
    CallablePrefix(_first_letter, "test.FirstLetter"),
    CallablePrefix(_up_to_colon, "test.UpToColon"),
    CallablePrefix(lambda key: b"", "test.Nothing"),
]
options_ = st.fixed_dictionaries(
    {
        "prefix_extractor": st.sampled_from(EXTRACTORS),
        "filter_policy": st.sampled_from(
            [None, BloomFilterPolicy(10), Bloom64Policy(10), BinaryFusePolicy()]
        ),
        "max_file_size": st.sampled_from([1024, 1 << 20]),
        "block_size": st.sampled_from([64, 300]),
        "lru_cache_size": st.sampled_from([0, 1 << 20]),
        "filter_last_level": st.booleans(),
    }
)
ranges_ = st.one_of(
    st.fixed_dictionaries({"prefix": prefixes_}),
    st.fixed_dictionaries(
        {
            "start": bounds_,
            "stop": bounds_,
            "include_start": st.booleans(),
            "include_stop": st.booleans(),
        }
    ),
    # Both bounds within one stem, or at its end.
    st.builds(
        lambda stem, low, high, first, last: {
            "start": stem + low, "stop": stem + high, "include_start": first, "include_stop": last,
        },
        *(st.sampled_from(STEMS), st.sampled_from(TAILS), st.sampled_from(TAILS)),
        *(st.booleans(), st.booleans()),
    ),
)  # fmt: skip


def cut(model: Model, bounds: dict[str, Any]) -> Pairs:
    """The pairs of a range, in rising order."""
    keys = sorted(model)
    prefix = bounds.get("prefix")
    if prefix is not None:
        return [(key, model[key]) for key in keys if key.startswith(prefix)]
    start, stop = bounds.get("start"), bounds.get("stop")
    low, high = 0, len(keys)
    if start is not None:
        low = (bisect_left if bounds["include_start"] else bisect_right)(keys, start)
    if stop is not None:
        high = (bisect_right if bounds["include_stop"] else bisect_left)(keys, stop)
    return [(key, model[key]) for key in keys[low:high]]


class ScanMachine(RuleBasedStateMachine):
    """Drives a store of many small tables and a dict with the same operations."""

    skipped = 0
    """Tables that were not read, in all runs."""

    def __init__(self) -> None:
        super().__init__()
        self.env = MemoryEnv()
        self.model: Model = {}
        self.writes = 0
        self.snapshots: list[tuple[Snapshot, Model]] = []
        self.iterators: list[tuple[StoreIterator, Pairs, int]] = []
        """With the pairs of the range, and where in them the iterator stands."""

    @initialize(options=options_, keys=st.lists(keys_, min_size=20, max_size=60))
    def begin(self, options: dict[str, Any], keys: list[bytes]) -> None:
        self.open(options)
        self.put_some(keys, 200)

    def open(self, options: dict[str, Any]) -> None:
        self.db = DB("/db", create_if_missing=True, env=self.env, **{**TINY, **options})

    def teardown(self) -> None:
        if hasattr(self, "db"):
            self.close()

    def close(self) -> None:
        self.let_go()
        ScanMachine.skipped += self.db.stats().filter_negatives
        self.db.close()

    def let_go(self) -> None:
        for holder in [*self.snapshots, *self.iterators]:
            holder[0].close()
        self.snapshots = []
        self.iterators = []

    @rule(keys=st.lists(keys_, max_size=8), size=st.sampled_from([0, 100, 300]))
    def put_some(self, keys: list[bytes], size: int) -> None:
        for key in keys:
            self.writes += 1
            self.model[key] = b"%d" % self.writes + bytes(size)
            self.db.put(key, self.model[key])

    @rule(stem=st.sampled_from(STEMS), tails=st.sets(st.sampled_from(TAILS)))
    def put_of_one_stem(self, stem: bytes, tails: set[bytes]) -> None:
        """A table that most prefixes are not in, but for its edges."""
        self.put_some([stem + tail for tail in sorted(tails)] + [KEYS[0], KEYS[-1]], 100)
        self.db.flush()

    @rule(keys=st.lists(keys_, max_size=6))
    def delete_some(self, keys: list[bytes]) -> None:
        for key in keys:
            self.db.delete(key)
            self.model.pop(key, None)

    @rule(prefix=prefixes_)
    def delete_prefix(self, prefix: bytes) -> None:
        """A table of deletions alone hides the pairs of older ones."""
        for key in [key for key in self.model if key.startswith(prefix)]:
            self.db.delete(key)
            del self.model[key]
        self.db.flush()

    @rule()
    def flush(self) -> None:
        self.db.flush()

    @rule(start=bounds_, stop=bounds_)
    def compact(self, start: bytes | None, stop: bytes | None) -> None:
        self.db.compact_range(start, stop)

    @rule(options=options_)
    def reopen(self, options: dict[str, Any]) -> None:
        """Under another extractor: the filters of the one before are passed over."""
        self.close()
        self.open(options)

    @rule(stem=st.sampled_from(STEMS), flags=st.tuples(st.booleans(), st.booleans()))
    def scan(self, stem: bytes, flags: tuple[bool, bool]) -> None:
        """Many ranges within one stem and at its end, both ways."""
        ends = [stem + tail for tail in TAILS] + AFTER
        for start, stop in itertools.product(ends, ends):
            bounds = {
                "start": start, "stop": stop, "include_start": flags[0], "include_stop": flags[1],
            }  # fmt: skip
            self.compare(self.db, self.model, bounds)
        self.compare(self.db, self.model, {"prefix": stem})

    @rule(bounds=ranges_)
    def scan_a_range(self, bounds: dict[str, Any]) -> None:
        self.compare(self.db, self.model, bounds)

    def compare(self, db: Any, model: Model, bounds: dict[str, Any]) -> None:
        """A scan in each direction."""
        expected = cut(model, bounds)
        assert list(db.iterator(**bounds)) == expected
        assert list(db.iterator(reverse=True, **bounds)) == expected[::-1]

    @rule(bounds=ranges_, prefix=prefixes_)
    def scan_part(self, bounds: dict[str, Any], prefix: bytes) -> None:
        """As ``prefixed_db`` shows it."""
        size = len(prefix)
        part = {k[size:]: value for k, value in self.model.items() if k.startswith(prefix)}
        self.compare(self.db.prefixed_db(prefix), part, bounds)

    @rule(prefix=st.one_of(st.none(), prefixes_), sought=keys_, steps=st.lists(st.booleans()))
    def scan_raw(self, prefix: bytes | None, sought: bytes, steps: list[bool]) -> None:
        pairs = cut(self.model, {"prefix": prefix or b""})
        with self.db.raw_iterator(prefix=prefix) as raw:
            raw.seek(sought)
            at = bisect_left([key for key, _ in pairs], sought)
            for forward in steps:
                assert raw.valid() == (0 <= at < len(pairs))
                if not raw.valid():
                    break
                assert raw.item() == pairs[at]
                (raw.next if forward else raw.prev)()
                at += 1 if forward else -1

    @rule(bounds=ranges_, reverse=st.booleans())
    def begin_iterator(self, bounds: dict[str, Any], reverse: bool) -> None:
        pairs = cut(self.model, bounds)
        iterator = self.db.iterator(reverse=reverse, **bounds)
        self.iterators.append((iterator, pairs[::-1] if reverse else pairs, 0))

    @precondition(lambda self: self.iterators)
    @rule(
        number=st.integers(0, 9),
        steps=st.lists(st.one_of(st.sampled_from("nnnppp<>"), keys_), max_size=20),
    )
    def walk(self, number: int, steps: list[str | bytes]) -> None:
        """Forth, back and to any place, in what was there when the iterator was made."""
        number %= len(self.iterators)
        iterator, pairs, at = self.iterators[number]
        reverse = len(pairs) > 1 and pairs[0] > pairs[1]
        for step in steps:
            if step == "n":
                assert next(iterator, None) == (pairs[at] if at < len(pairs) else None)
                at = min(at + 1, len(pairs))
            elif step == "p":
                if at == 0:
                    with pytest.raises(StopIteration):
                        iterator.prev()
                else:
                    at -= 1
                    assert iterator.prev() == pairs[at]
            elif len(pairs) > 1:  # else its direction is not known here
                if isinstance(step, bytes):
                    iterator.seek(step)
                    before = sum(key < step for key, _ in pairs)
                else:
                    (iterator.seek_to_start if step == "<" else iterator.seek_to_stop)()
                    before = 0 if step == "<" else len(pairs)
                at = len(pairs) - before if reverse else before
        self.iterators[number] = iterator, pairs, at

    @rule()
    def take_snapshot(self) -> None:
        self.snapshots.append((self.db.snapshot(), dict(self.model)))

    @precondition(lambda self: self.snapshots)
    @rule(number=st.integers(0, 9), prefix=prefixes_, bounds=ranges_)
    def scan_snapshot(self, number: int, prefix: bytes, bounds: dict[str, Any]) -> None:
        snapshot, model = self.snapshots[number % len(self.snapshots)]
        self.compare(snapshot, model, bounds)
        self.compare(snapshot, model, {"prefix": prefix})

    @rule()
    def check(self) -> None:
        self.db.check()
        assert dict(self.db) == self.model


@pytest.mark.long
def test_scans_miss_nothing() -> None:
    run_state_machine_as_test(
        ScanMachine,
        settings=settings(
            deadline=None,
            max_examples=60,
            stateful_step_count=40,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert ScanMachine.skipped > 100


# What it saves, and when nothing is skipped

PEOPLE = 200
CITIES = {"prefix_extractor": b"/"}


def fill(db: DB, odd: int = 0) -> None:
    """Keys of every other person, in many tables over each other."""
    for n in range(odd, 2 * PEOPLE, 2):
        for part in (b"age", b"city", b"name"):
            db.put(b"%06d/" % (n * 7919 % (2 * PEOPLE) // 2 * 2 + odd) + part, bytes(100))


def scanned(db: DB, numbers: range) -> tuple[int, int, int, int]:
    """What scans of these persons ask and read: keys found, filters asked, negatives, blocks."""
    before = db.stats()
    found = sum(
        len(list(db.iterator(prefix=b"%06d/" % n, reverse=reverse)))
        for n in numbers
        for reverse in (False, True)
    )
    after = db.stats()
    return (
        found,
        after.filters_asked - before.filters_asked,
        after.filter_negatives - before.filter_negatives,
        after.blocks_read - before.blocks_read,
    )


ABSENT = range(1, 2 * PEOPLE, 2)
PRESENT = range(0, 2 * PEOPLE, 2)


@pytest.mark.parametrize("policy", [None, Bloom64Policy(10), BinaryFusePolicy()], ids=repr)
def test_a_scan_of_an_absent_prefix_reads_no_block(policy: Any) -> None:
    with DB(":memory:", **TINY, **CITIES, filter_policy=policy, lru_cache_size=0) as db:
        fill(db)
        scans = 2 * len(ABSENT)
        found, asked, negatives, blocks = scanned(db, ABSENT)
        assert found == 0
        assert asked >= scans  # one table each, or several: compactions run meanwhile
        assert negatives > 0.97 * asked
        assert blocks <= 0.1 * scans
        assert asked - negatives >= 0.3 * blocks  # a table may have a block or two of a range
        found, asked, negatives, blocks = scanned(db, PRESENT)
        assert found == 3 * 2 * len(PRESENT)
        assert asked - negatives >= 2 * len(PRESENT)
        assert blocks >= 2 * len(PRESENT)


@pytest.mark.parametrize(
    "other",
    [None, 6, b"a", (_first_letter, "test.First")],
    ids=["none", "fixed", "delimited", "callable"],
)
def test_filters_of_another_extractor_are_not_asked(other: Any) -> None:
    """An extractor of another name may have cut the keys elsewhere."""
    env = MemoryEnv()
    with DB("/db", create_if_missing=True, env=env, **TINY, **CITIES) as db:
        fill(db)
        db.compact_range()
    options: dict[str, Any] = {"prefix_extractor": other}
    if isinstance(other, tuple):
        options = {"prefix_extractor": other[0], "prefix_extractor_name": other[1]}
    with DB("/db", env=env, **TINY, **options) as db:
        assert scanned(db, PRESENT)[:3] == (3 * 2 * len(PRESENT), 0, 0)
        assert scanned(db, ABSENT)[:3] == (0, 0, 0)
        assert db.verify() == []


def test_ranges_beyond_one_prefix_ask_no_filter() -> None:
    with DB(":memory:", **TINY, **CITIES) as db:
        fill(db)
        db.flush()
        for bounds in (
            {"prefix": b"00000"},
            {"start": b"000001/", "stop": b"000003/"},
            {"start": b"000001/"},
            {"stop": b"000001/"},
            {"start": b"000001/", "stop": b"0000010", "include_stop": True},
            {},
        ):
            for reverse in (False, True):
                list(db.iterator(reverse=reverse, **bounds))
        with db.raw_iterator() as raw:
            raw.seek(b"000001/")
            assert raw.key() == b"000002/age"
        assert db.stats().filters_asked == 0
        list(db.iterator(start=b"000001/", stop=b"0000010"))
        assert db.stats().filters_asked > 0


# Extractors that fail


class Failing:
    """Cuts keys at a slash, until a test makes it fail."""

    name = "test.Failing"

    def __init__(self, how: Callable[[bytes], bytes | None]) -> None:
        self.how = how
        self.fails = False

    def extract(self, key: bytes, /) -> bytes | None:
        return self.how(key) if self.fails else DelimitedPrefix(b"/").extract(key)


def _divides(key: bytes) -> bytes | None:
    return bytes([1 // (len(key) - len(key))])


WAYS = [_divides, lambda key: b"other", lambda key: key + b"x", lambda key: "text"]


@pytest.mark.parametrize("how", WAYS, ids=["raises", "other", "longer", "text"])
def test_an_extractor_that_fails_fails_the_scan_alone(how: Any) -> None:
    extractor = Failing(how)
    with DB(":memory:", **TINY, prefix_extractor=extractor) as db:
        fill(db)
        db.compact_range()
        with db.snapshot() as snapshot:
            extractor.fails = True
            for reader in (db, snapshot, db.prefixed_db(b"0000")):
                with pytest.raises(Error, match=r"extractor test\.Failing"):
                    reader.iterator(prefix=b"000001/")
                with pytest.raises(Error, match=r"extractor test\.Failing"):
                    reader.iterator(start=b"000001/a", stop=b"000001/b", reverse=True)
                with pytest.raises(Error, match=r"extractor test\.Failing"):
                    reader.raw_iterator(prefix=b"000001/")
            assert len(list(db)) == 3 * PEOPLE
            with pytest.raises(Error, match=r"extractor test\.Failing"):
                db.verify()
            extractor.fails = False
        assert db.verify() == []
        assert len(list(db.iterator(prefix=b"000002/"))) == 3
        assert db._store is not None
        assert len(db._store.pinned) == 0
        db.put(b"after", b"1")


@pytest.mark.parametrize("how", WAYS, ids=["raises", "other", "longer", "text"])
def test_an_extractor_that_fails_in_a_flush_stops_writes_and_loses_nothing(how: Any) -> None:
    env = MemoryEnv()
    extractor = Failing(how)
    with DB("/db", create_if_missing=True, env=env, prefix_extractor=extractor) as db:
        fill(db)
        db.flush()
        extractor.fails = True
        db.put(b"000001/age", b"1")
        with pytest.raises(Error, match=r"extractor test\.Failing"):
            db.flush()
        for _ in range(2):
            with pytest.raises(Error, match=r"extractor test\.Failing"):
                db.put(b"000001/city", b"1")
        assert db.get(b"000001/age") == b"1"
        assert len(list(db)) == 3 * PEOPLE + 1
    with pytest.raises(Error, match=r"extractor test\.Failing"):
        DB("/db", env=env, prefix_extractor=extractor)  # recovery makes a table of the log
    with DB("/db", env=env) as db:
        assert len(list(db)) == 3 * PEOPLE + 1
        assert db.get(b"000001/age") == b"1"
        assert db.verify() == []
        db.put(b"000001/city", b"1")
        db.compact_range()
    extractor.fails = False
    with DB("/db", env=env, prefix_extractor=extractor) as db:
        assert [key for key, _ in db.iterator(prefix=b"000001/")] == [b"000001/age", b"000001/city"]
