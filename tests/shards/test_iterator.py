"""An iterator over shards does what an iterator over one store of all pairs does."""

from __future__ import annotations

import functools
import gc
import random
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lsmkv
from lsmkv.shards.iterator import ShardIterator
from lsmkv.shards.open_shards import OpenShard, OpenShards
from lsmkv.shards.version import COMPARATOR, ShardEntry, StoredFile, VersionDocument

META = StoredFile("META", 0, "0" * 64)


def entry(number: int, first: bytes) -> ShardEntry:
    return ShardEntry(f"shards/b/{number:04d}-0", first, 0, META, ())


def document(firsts: list[bytes]) -> VersionDocument:
    entries = tuple(entry(number, first) for number, first in enumerate(firsts))
    return VersionDocument(1, "0" * 16, "b", "", COMPARATOR, None, None, entries)


class Fixture:
    """The same pairs in shards, and in one store."""

    def __init__(self, pairs: dict[bytes, bytes], firsts: list[bytes]) -> None:
        self.env = lsmkv.MemoryEnv()
        self.opened: list[str] = []
        self.closed = False
        self.whole = lsmkv.DB(":memory:")
        ends = [*firsts[1:], None] if firsts else []
        for number, (first, end) in enumerate(zip(firsts, ends, strict=True)):
            with lsmkv.DB(f"/{number}", env=self.env, create_if_missing=True) as db:
                for key, value in pairs.items():
                    if first <= key and (end is None or key < end):
                        db.put(key, value)
                        self.whole.put(key, value)
        self.shards = OpenShards(document(firsts), self.open, {})

    def open(self, entry: ShardEntry) -> OpenShard:
        number = int(entry.path.split("/")[2][:4])
        self.opened.append(entry.path)
        return OpenShard(entry, lsmkv.DB(f"/{number}", env=self.env, read_only=True))

    def check_open(self) -> None:
        if self.closed:
            raise lsmkv.ClosedError("closed")

    def iterator(self, **arguments: Any) -> ShardIterator:
        return ShardIterator(self.shards, arguments, self.check_open)  # type: ignore[arg-type]

    def close(self) -> None:
        for shard in self.shards.opened().values():
            shard.close()
        self.whole.close()


PAIRS = {b"%03d" % n: b"v%d" % n for n in range(0, 300, 3)}
FIRSTS = [b"", b"050", b"051", b"0511", b"150", b"297", b"5"]


@pytest.fixture
def both() -> Iterator[Fixture]:
    with closing(Fixture(PAIRS, FIRSTS)) as made:
        yield made


keys = st.one_of(st.none(), st.integers(-1, 301).map(lambda n: b"%03d" % n), st.binary(max_size=2))


@given(
    start=keys,
    stop=keys,
    include_start=st.booleans(),
    include_stop=st.booleans(),
    reverse=st.booleans(),
    seed=st.integers(0, 1 << 30),
)
def test_every_walk_is_that_of_one_store(
    start: bytes | None,
    stop: bytes | None,
    include_start: bool,
    include_stop: bool,
    reverse: bool,
    seed: int,
) -> None:
    shared = the_shared_one()
    arguments: dict[str, Any] = {
        "start": start,
        "stop": stop,
        "include_start": include_start,
        "include_stop": include_stop,
        "reverse": reverse,
    }
    rng = random.Random(seed)
    with (
        shared.iterator(**arguments) as shards,
        shared.whole.iterator(**arguments) as whole,
    ):
        assert list(shards) == list(whole)
        for _ in range(40):
            step = rng.choice(["next", "next", "prev", "prev", "seek", "start", "stop"])
            if step == "seek":
                target = b"%03d" % rng.randrange(-1, 302)
                shards.seek(target)
                whole.seek(target)
            elif step in ("start", "stop"):
                getattr(shards, f"seek_to_{step}")()
                getattr(whole, f"seek_to_{step}")()
            else:
                assert stepped(shards, step) == stepped(whole, step), step


@functools.cache
def the_shared_one() -> Fixture:
    return Fixture(PAIRS, FIRSTS)


@pytest.fixture(autouse=True, scope="module")
def shared_is_closed() -> Iterator[None]:
    yield
    the_shared_one().close()
    the_shared_one.cache_clear()


def stepped(iterator: Any, step: str) -> Any:
    try:
        return getattr(iterator, step)()
    except StopIteration:
        return None


def test_prefixes_and_parts(both: Fixture) -> None:
    for prefix in (b"", b"0", b"05", b"051", b"29", b"7", b"\xff"):
        for reverse in (False, True):
            expected = list(both.whole.iterator(prefix=prefix, reverse=reverse))
            assert list(both.iterator(prefix=prefix, reverse=reverse)) == expected
    assert list(both.iterator(include_value=False)) == list(PAIRS)
    assert list(both.iterator(include_key=False)) == list(PAIRS.values())


def test_only_shards_that_a_range_touches_are_opened(both: Fixture) -> None:
    found = list(both.iterator(prefix=b"16", include_value=False))
    assert found == [b"162", b"165", b"168"]
    assert both.opened == ["shards/b/0004-0"]
    assert list(both.iterator(start=b"060", stop=b"070"))
    assert both.opened == ["shards/b/0004-0", "shards/b/0003-0"]
    for _ in both.iterator():
        break
    assert both.opened[2:] == ["shards/b/0000-0"]


def test_no_shards() -> None:
    with closing(Fixture({}, [])) as empty:
        iterator = empty.iterator()
        assert list(iterator) == []
        assert stepped(iterator, "prev") is None
        for move in (iterator.seek_to_start, iterator.seek_to_stop):
            move()
        iterator.seek(b"k")
        assert list(empty.iterator(reverse=True, prefix=b"a")) == []


def test_a_closed_iterator_and_a_closed_reader(both: Fixture) -> None:
    iterator = both.iterator()
    next(iterator)
    iterator.close()
    iterator.close()
    assert iterator.closed
    for use in (iterator.next, iterator.prev, iterator.seek_to_start, lambda: iterator.seek(b"k")):
        with pytest.raises(lsmkv.ClosedError):
            use()
    both.closed = True
    with pytest.raises(lsmkv.ClosedError):
        next(both.iterator())


def test_wrong_arguments_are_refused(both: Fixture) -> None:
    with pytest.raises(TypeError):
        both.iterator(start="text")
    with pytest.raises(TypeError, match="unexpected keyword argument 'begin'"):
        both.iterator(begin=b"b")
    with pytest.raises(ValueError, match="limit cannot be negative"):
        both.iterator(limit=-1)


@given(prefix=keys, start=keys, stop=keys, reverse=st.booleans(), limit=st.integers(0, 120))
def test_prefixes_bounds_and_limits_go_together(
    prefix: bytes | None, start: bytes | None, stop: bytes | None, reverse: bool, limit: int
) -> None:
    arguments: Any = {"prefix": prefix, "start": start, "stop": stop, "reverse": reverse}
    with closing(Fixture(PAIRS, FIRSTS)) as both:
        for most in (None, limit):
            here = both.iterator(limit=most, **arguments)
            there = both.whole.iterator(limit=most, **arguments)
            assert list(here) == list(there)
        if limit > 0 and list(both.whole.iterator(**arguments)):
            assert (here.prev(), list(here)) == (there.prev(), list(there))


def test_an_iterator_keeps_the_shard_that_it_reads(both: Fixture) -> None:
    iterator = both.iterator()
    next(iterator)
    shard = both.shards.shard(0)
    db = shard.db
    both.shards = OpenShards(document([b""]), both.open, {})
    del shard
    gc.collect()
    assert not db.closed
    assert len(list(iterator)) == len(PAIRS) - 1
    iterator.close()
    gc.collect()
    assert db.closed
