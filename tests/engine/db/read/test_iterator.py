"""Iterators: where they stand, what they return, and that plyvel agrees where it is right."""

from __future__ import annotations

import itertools
import pathlib
import random
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any

import pytest
from drawn_stores import drawn_store
from hooked import HookedEnv
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from states import Case, Drawing, states
from trees import key_of, key_text, words_text

import lsmkv
from lsmkv import DB
from lsmkv.testing.faulty import FaultyEnv

TINY: dict[str, Any] = {
    "write_buffer_size": 1024,
    "max_file_size": 1024,
    "block_size": 64,
    "block_restart_interval": 2,
}
STOPPED = "StopIteration"


class ModelIterator:
    """The right semantics, naively: a sorted list, and a gap between two of its entries.

    ``next`` returns the entry behind the gap and steps over it, ``prev`` the one before; with
    ``reverse`` they change places.  ``seek`` goes to the gap before the target, held to the range.
    """

    def __init__(
        self,
        content: dict[bytes, bytes],
        *,
        reverse: bool = False,
        start: bytes | None = None,
        stop: bytes | None = None,
        include_start: bool = True,
        include_stop: bool = False,
    ) -> None:
        keys = sorted(content)
        if start is not None:
            keys = keys[(bisect_left if include_start else bisect_right)(keys, start) :]
        if stop is not None:
            keys = keys[: (bisect_right if include_stop else bisect_left)(keys, stop)]
        self.keys = keys
        self.content = content
        self.reverse = reverse
        self.gap = len(keys) if reverse else 0

    def __iter__(self) -> ModelIterator:
        return self

    def __next__(self) -> tuple[bytes, bytes]:
        return self.down() if self.reverse else self.up()

    def prev(self) -> tuple[bytes, bytes]:
        return self.up() if self.reverse else self.down()

    def up(self) -> tuple[bytes, bytes]:
        if self.gap == len(self.keys):
            raise StopIteration
        self.gap += 1
        return self.entry(self.gap - 1)

    def down(self) -> tuple[bytes, bytes]:
        if self.gap == 0:
            raise StopIteration
        self.gap -= 1
        return self.entry(self.gap)

    def entry(self, at: int) -> tuple[bytes, bytes]:
        return self.keys[at], self.content[self.keys[at]]

    def seek(self, target: bytes) -> None:
        self.gap = bisect_left(self.keys, target)

    def seek_to_start(self) -> None:
        self.gap = 0

    def seek_to_stop(self) -> None:
        self.gap = len(self.keys)


def step(iterator: Any, name: str, *arguments: bytes) -> Any:
    """One call; the end of the range as a value."""
    try:
        if name == "next":
            return next(iterator)
        return getattr(iterator, name)(*arguments)
    except StopIteration:
        return STOPPED


@pytest.fixture
def db(tmp_path: pathlib.Path) -> Iterator[DB]:
    with DB(tmp_path / "db", create_if_missing=True, **TINY) as db:
        yield db


def scatter(db: DB, content: dict[bytes, bytes], gone: set[bytes]) -> None:
    """Put ``content`` in all places that a key can be in, with deletions of ``gone`` between."""
    stages = [
        dict.fromkeys(content, b"old") | dict.fromkeys(gone, b"dead"),
        dict(list(content.items())[::2]),
        dict(list(content.items())[1::2]),
    ]
    for n, stage in enumerate(stages):
        for key, value in stage.items():
            db.put(key, value)
        if n == 0:
            db.compact_range()
        elif n == 1:
            for key in sorted(gone)[::2]:
                db.delete(key)
            db.flush()
    for key in sorted(gone)[1::2]:
        db.delete(key)


LETTERS = {bytes([c]): b"v%c" % c for c in b"bdfhjl"}
GONE = {b"c", b"d\0", b"g", b"m", b"a"}


@pytest.fixture
def letters(db: DB) -> DB:
    scatter(db, LETTERS, GONE)
    return db


# States

BOUNDS: dict[str, tuple[str, dict[str, Any]]] = {
    "from": ("start", {}),
    "after": ("start", {"include_start": False}),
    "before": ("stop", {}),
    "upto": ("stop", {"include_stop": True}),
    "prefix": ("prefix", {}),
    "limit": ("limit", {}),
}


def arguments_of(words: list[str]) -> dict[str, Any]:
    """``back from d upto h``."""
    found: dict[str, Any] = {"reverse": True} if words[:1] == ["back"] else {}
    bounds = words[len(found) :]
    for word, key in zip(bounds[::2], bounds[1::2], strict=True):
        name, more = BOUNDS[word]
        found |= {name: int(key) if name == "limit" else key_of(key), **more}
    return found


def answer(drawing: Drawing, words: list[str]) -> str:
    """Of the store that is drawn."""
    command, *moves = " ".join(words).split(", ")
    with drawn_store(drawing) as db:
        match command.split():
            case ["scan", *bounds]:
                arguments = arguments_of(bounds)
                pairs = list(db.iterator(**arguments))
                with db.snapshot() as snapshot:
                    assert list(snapshot.iterator(**arguments)) == pairs
                    for one in (db, snapshot):
                        assert list(one.iterator(reverse=True, **arguments)) == pairs[::-1]
                return words_text(f"{key_text(key)}={value.decode()}" for key, value in pairs)
            case ["iterator", *bounds]:
                iterator = db.iterator(include_value=False, **arguments_of(bounds))
                met: list[str] = []
                for name, *target in map(str.split, moves):
                    found = step(iterator, name, *map(key_of, target))
                    if name in ("next", "prev"):
                        met.append("end" if found == STOPPED else key_text(found))
                iterator.close()
                return words_text(met)
    raise NotImplementedError


@states("iterator.txt")
def test_states(case: Case) -> None:
    case.check(answer, draws="memtable|L[0-6]|order")


# Ranges


PREFIXED = [
    b"", b"\0", b"a", b"a\0", b"ab", b"a\xff", b"a\xff\0", b"a\xff\xff", b"a\xff\xffz", b"b",
    b"\xfe\xff", b"\xff", b"\xff\0", b"\xff\xff", b"\xff\xff\xff",
]  # fmt: skip


@pytest.mark.parametrize("place", ["memory", "table"])
def test_prefixes(db: DB, place: str) -> None:
    for key in PREFIXED:
        db.put(key, key)
    if place == "table":
        db.compact_range()
    for prefix in [*PREFIXED, b"a\xfe", b"\xff\xfe", b"\xff\xff\xff\xff", b"c"]:
        expected = [key for key in PREFIXED if key.startswith(prefix)]
        assert list(db.iterator(prefix=prefix, include_value=False)) == expected
        backward = db.iterator(prefix=prefix, reverse=True, include_value=False)
        assert list(backward) == expected[::-1]


def test_bounds_are_included_or_not(letters: DB) -> None:
    assert letters.iterator(start=b"d").next() == (b"d", b"vd")
    assert letters.iterator(start=b"d", include_value=False).next() == b"d"
    assert letters.iterator(start=b"d", include_key=False).next() == b"vd"
    neither = letters.iterator(include_key=False, include_value=False)
    assert list(neither) == [None] * len(LETTERS)
    assert letters.iterator(reverse=True, include_value=False).next() == b"l"
    assert list(letters.iterator(verify_checksums=False, fill_cache=False)) == list(LETTERS.items())


# Moving


def test_direction_changes_over_deletions_and_versions(db: DB) -> None:
    """Long runs of deleted keys, and keys of many versions, on every step of a walk to and fro."""
    keys = [b"%04d" % n for n in range(400)]
    for value in (b"1", b"2"):
        for key in keys:
            db.put(key, value)
        db.flush()
    held = [db.snapshot()]
    kept = keys[::50]
    for key in keys:
        if key not in kept:
            db.delete(key)
    for n in range(40):
        db.put(kept[3], b"%d" % n)
        held.append(db.snapshot())
    iterator = db.iterator(include_value=False)
    for n, key in enumerate(kept):
        assert iterator.next() == key
        assert iterator.prev() == key
        if n:
            assert iterator.prev() == kept[n - 1]
            assert iterator.next() == kept[n - 1]
        assert iterator.next() == key
    assert step(iterator, "next") == STOPPED
    for key in reversed(kept):
        assert iterator.prev() == key
        assert iterator.next() == key
        assert iterator.prev() == key
    assert list(held[0].iterator(include_key=False)) == [b"2"] * 400
    assert list(held[0].iterator(include_key=False, reverse=True)) == [b"2"] * 400


def test_an_iterator_sees_one_moment(db: DB) -> None:
    keys = [b"%04d" % n for n in range(200)]
    for key in keys:
        db.put(key, b"old")
    forward, backward = iter(db), db.iterator(reverse=True)
    assert [next(forward) for _ in range(3)] == [(key, b"old") for key in keys[:3]]
    for key in keys[::2]:
        db.delete(key)
    for key in keys[1::2]:
        db.put(key, b"new")
        db.put(key + b"x", b"new")
    db.compact_range()
    assert list(forward) == [(key, b"old") for key in keys[3:]]
    assert list(backward) == [(key, b"old") for key in reversed(keys)]
    forward.seek(keys[100])
    assert forward.next() == (keys[100], b"old")
    assert len(list(db)) == 200


@pytest.mark.parametrize("limit", [None, 3])
def test_closing(letters: DB, limit: int | None) -> None:
    with letters.iterator(limit=limit) as iterator:
        assert not iterator.closed
        next(iterator)
    assert iterator.closed
    for name, arguments in [
        ("next", ()), ("prev", ()), ("seek", (b"a",)), ("seek_to_start", ()), ("seek_to_stop", ()),
    ]:  # fmt: skip
        with pytest.raises(lsmkv.ClosedError, match="iterator"):
            getattr(iterator, name)(*arguments)
    iterator.close()


def test_an_iterator_that_failed_goes_on_where_it_was() -> None:
    """A read error ends a step, not the iterator: nothing is skipped when it is asked again."""
    env = FaultyEnv()
    content = {b"%04d" % n: b"v" * 50 for n in range(2000)}
    with DB("/db", create_if_missing=True, env=env, lru_cache_size=0, **TINY) as db:
        for key, value in content.items():
            db.put(key, value)
        db.compact_range()
        for reverse in (False, True):
            got = []
            iterator = db.iterator(reverse=reverse)
            failures = 0
            while True:
                if len(got) % 7 == 0:
                    env.fail_at(1, calls={"read"}, sticky=True)
                try:
                    entry = next(iterator)
                except StopIteration:
                    break
                except lsmkv.IOError:
                    failures += 1
                    env.heal()
                    entry = next(iterator)
                got.append(entry)
            env.heal()
            assert failures > 10
            assert got == sorted(content.items(), reverse=reverse)


# Against the model, and the model against plyvel

ALPHABET = b"\0a\xff"
keys_ = st.lists(st.sampled_from(list(ALPHABET)), max_size=3).map(bytes)
bounds_ = st.one_of(st.none(), keys_)
moves_ = st.lists(
    st.one_of(
        st.sampled_from([("next",), ("prev",)]),
        st.sampled_from([("next",), ("prev",), ("seek_to_start",), ("seek_to_stop",)]),
        st.tuples(st.just("seek"), keys_),
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=200, suppress_health_check=list(HealthCheck))
@given(
    content=st.frozensets(keys_, max_size=12),
    gone=st.frozensets(keys_, max_size=6),
    start=bounds_,
    stop=bounds_,
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    compacted=st.booleans(),
    moves=moves_,
)
def test_against_the_model(
    content: frozenset[bytes],
    gone: frozenset[bytes],
    start: bytes | None,
    stop: bytes | None,
    flags: tuple[bool, bool, bool],
    compacted: bool,
    moves: list[tuple[Any, ...]],
) -> None:
    entries = {key: b"v" + key for key in sorted(content)}
    reverse, include_start, include_stop = flags
    arguments: dict[str, Any] = {
        "reverse": reverse,
        "start": start,
        "stop": stop,
        "include_start": include_start,
        "include_stop": include_stop,
    }
    with DB(":memory:", create_if_missing=True, **TINY) as db:
        scatter(db, entries, set(gone - content))
        if compacted:
            db.compact_range()  # into one sorted run, which is scanned straight
        iterator = db.iterator(**arguments)
        model = ModelIterator(entries, **arguments)
        for name, *rest in moves:
            assert step(iterator, name, *rest) == step(model, name, *rest), (name, rest)
        iterator.close()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", [3, 100], ids=["many to a block", "one to a block"])
@pytest.mark.parametrize(
    "unusual", ["nothing", "a deletion", "versions", "a newer table", "in the memtable"]
)
def test_scans_of_one_sorted_run_with_unusual_entries(
    reverse: bool, unusual: str, size: int
) -> None:
    """A run of plain values is scanned straight, up to where it holds more than that."""
    options: dict[str, Any] = {"block_size": 64, "compression": None, "seek_compaction": False}
    expected = {b"key%03d" % number: b"old".ljust(size) for number in range(200)}
    at_first = dict(expected)
    with DB(":memory:", **options) as db:
        for key, value in expected.items():
            db.put(key, value)
        held = db.snapshot()
        if unusual == "a deletion":
            db.delete(b"key100")
            del expected[b"key100"]
        elif unusual == "versions":
            for number in range(90, 110):  # over the ends of several blocks
                expected[b"key%03d" % number] = b"new".ljust(size)
                db.put(b"key%03d" % number, expected[b"key%03d" % number])
        db.flush()
        db.compact_range()
        assert sum(level.files > 0 for level in db.stats().levels) == 1
        before = db.snapshot()
        now = dict(expected)
        if unusual in ("a newer table", "in the memtable"):
            db.put(b"key100", b"newest")
            now[b"key100"] = b"newest"
        if unusual == "a newer table":
            db.flush()
        for source, content in ((before, expected), (held, at_first), (db, now)):
            rows = sorted(content.items(), reverse=reverse)
            assert list(source.iterator(reverse=reverse)) == rows
            for start, stop in ((b"key050", b"key150"), (b"key0995", b"key1005"), (b"a", b"b")):
                inside = [row for row in rows if start <= row[0] < stop]
                assert list(source.iterator(start=start, stop=stop, reverse=reverse)) == inside
            with source.iterator(reverse=reverse) as there_and_back:
                walked = [next(there_and_back) for _ in rows]
                assert [there_and_back.prev() for _ in rows] == walked[::-1]
        before.close()
        held.close()


@settings(deadline=None, max_examples=120, suppress_health_check=list(HealthCheck))
@given(
    content=st.frozensets(keys_, max_size=12),
    start=bounds_,
    stop=bounds_,
    moves=moves_,
)
def test_the_model_against_plyvel(
    tmp_path_factory: pytest.TempPathFactory,
    content: frozenset[bytes],
    start: bytes | None,
    stop: bytes | None,
    moves: list[tuple[Any, ...]],
) -> None:
    """Forward, where plyvel is right: ``prev`` right after a ``seek`` leaves the range there, a
    ``seek`` to an excluded start or beyond an included stop goes wrong, and ``prev`` at the end
    misses a start that is the only key."""
    plyvel = pytest.importorskip("plyvel")
    entries = {key: b"v" + key for key in sorted(content)}
    path = tmp_path_factory.getbasetemp() / "plyvel-model"
    arguments: dict[str, Any] = {"start": start, "stop": stop}
    oracle_db = plyvel.DB(str(path), create_if_missing=True)
    try:
        with oracle_db.write_batch() as batch:
            for key in oracle_db.iterator(include_value=False):
                batch.delete(key)
            for key, value in entries.items():
                batch.put(key, value)
        oracle = oracle_db.iterator(**arguments)
        model = ModelIterator(entries, **arguments)
        after_seek = False
        for name, *rest in moves:
            if name == "prev" and (after_seek or model.keys == [start]):
                continue
            after_seek = name.startswith("seek")
            assert step(oracle, name, *rest) == step(model, name, *rest), (name, rest)
        oracle.close()
    finally:
        oracle_db.close()


@pytest.mark.parametrize("reverse", [False, True])
def test_plain_iteration_is_plyvels(tmp_path: pathlib.Path, reverse: bool) -> None:
    """Every pair of bounds over a few keys, but for the one case in which plyvel is wrong."""
    plyvel = pytest.importorskip("plyvel")
    content = {key: b"v" + key for key in (b"", b"a", b"a\xff", b"b", b"\xff", b"\xff\xff")}
    targets = [None, b"", b"\0", b"aa", b"c", b"\xff\xff\xff", *content]
    oracle = plyvel.DB(str(tmp_path / "plyvel"), create_if_missing=True)
    with DB(tmp_path / "lsmkv", create_if_missing=True) as db:
        for key, value in content.items():
            db.put(key, value)
            oracle.put(key, value)
        compared = 0
        for start in targets:
            for stop in targets:
                for include_start in (True, False):
                    for include_stop in (True, False):
                        arguments: dict[str, Any] = {
                            "reverse": reverse,
                            "start": start,
                            "stop": stop,
                            "include_start": include_start,
                            "include_stop": include_stop,
                        }
                        got = list(db.iterator(**arguments))
                        model = ModelIterator(content, **arguments)
                        assert got == list(model)
                        if reverse and [key for key, _ in got] == [start]:
                            continue
                        assert got == list(oracle.iterator(**arguments)), arguments
                        compared += 1
        assert compared > 300
    oracle.close()


# Interrupted


class InterruptedEnv(HookedEnv):
    """Ctrl-C comes at a share of all reads of tables."""

    def __init__(self) -> None:
        super().__init__(self._interrupt)
        self.share = 0.0
        self._rng = random.Random(1)

    def _interrupt(self, call: str, name: str) -> None:
        if call == "read" and self._rng.random() < self.share:
            raise KeyboardInterrupt


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("in_memory", [0, 40])
@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("back", [False, True])
def test_nothing_is_skipped_by_an_interruption(
    levels: int, in_memory: int, raw: bool, back: bool
) -> None:
    """The next call returns what the interrupted call would have returned."""
    env = InterruptedEnv()
    options = {**TINY, "max_file_size": 1 << 20, "write_buffer_size": 1 << 20}
    with DB("/db", create_if_missing=True, env=env, lru_cache_size=0, **options) as db:
        for level in range(levels):
            for number in range(level, 300, levels):
                db.put(b"%04d" % number, b"v" * 20)
            db.flush()
        for number in range(in_memory):
            db.put(b"%04d" % (number * 7), b"new")
        pairs = list(db)
        interruptions = 0
        for share in (0.1, 0.4):
            env.share = share
            found: list[tuple[bytes, bytes]] = []
            at_first = True
            iterator = db.raw_iterator() if raw else db.iterator(reverse=back)
            while True:
                try:
                    if isinstance(iterator, lsmkv.Iterator):
                        found.append(next(iterator))
                        continue
                    if at_first:
                        (iterator.seek_to_last if back else iterator.seek_to_first)()
                        at_first = False
                    else:
                        (iterator.prev if back else iterator.next)()
                    if not iterator.valid():
                        break
                    found.append(iterator.item())
                except StopIteration:
                    break
                except KeyboardInterrupt:
                    interruptions += 1
            env.share = 0
            assert found == (pairs[::-1] if back else pairs)
            iterator.close()
        assert interruptions > 10


ENDS = [None, b"", b"a", b"ab", b"ab\xff", b"ac", b"b", b"\xff"]


@pytest.mark.parametrize("order", [lsmkv.BytewiseComparator(), lsmkv.ReverseBytewiseComparator()])
def test_a_prefix_with_start_and_stop_is_the_range_within_it(order: lsmkv.Comparator) -> None:
    keys = [b"", b"A", b"a", b"ab", b"ab\0", b"abc", b"ab\xff", b"ab\xff\xff", b"ac", b"b", b"\xff"]
    with DB(":memory:", comparator=order) as db:
        for key in keys:
            db.put(key, b"")
        for prefix, start, stop in itertools.product((b"", b"a", b"ab", b"\xff", b"x"), ENDS, ENDS):
            for include_start, include_stop in itertools.product((False, True), repeat=2):
                arguments: Any = {
                    "start": start,
                    "stop": stop,
                    "include_start": include_start,
                    "include_stop": include_stop,
                }
                within = list(db.iterator(include_value=False, **arguments))
                expected = [key for key in within if key.startswith(prefix)]
                arguments |= {"prefix": prefix, "include_value": False}
                assert list(db.iterator(**arguments)) == expected
                assert list(db.iterator(reverse=True, **arguments)) == expected[::-1]


def test_wrong_limits_are_refused() -> None:
    with DB(":memory:") as db:
        for limit in ("5", 5.0, True):
            with pytest.raises(TypeError, match="limit must be an int or None"):
                db.iterator(limit=limit)  # type: ignore[call-overload]
        with pytest.raises(ValueError, match="limit cannot be negative: -1"):
            db.iterator(limit=-1)
