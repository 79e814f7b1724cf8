"""lsmkv.engine.db.read.reader: multi_get, may_contain, and the row cache."""

from __future__ import annotations

import pathlib
import random
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hooked import HookedEnv, ignore
from stores import ENTRIES, files, fill, settle

import lsmkv
from lsmkv import DB, WriteBatch
from lsmkv.engine.format.filenames import FileType

TINY: dict[str, Any] = {"write_buffer_size": 1024, "max_file_size": 1024, "block_size": 256}


def filled(**options: Any) -> tuple[DB, dict[bytes, bytes]]:
    """Keys in memory and in tables of several levels, some of them deleted."""
    rng = random.Random(7)
    db = DB(":memory:", **{**TINY, **options})
    state: dict[bytes, bytes] = {}
    for turn in range(600):
        key = b"key%03d" % rng.randrange(300)
        if rng.random() < 0.25:
            db.delete(key)
            state.pop(key, None)
        else:
            state[key] = b"%d" % turn * 5
            db.put(key, state[key])
        if turn == 300:
            db.compact_range()
    return db, state


ALL = [b"key%03d" % n for n in range(300)] + [b"", b"key", b"zzz"]


@pytest.mark.parametrize("options", [{}, {"bloom_filter_bits": 0}, {"lru_cache_size": 0}])
def test_multi_get_returns_what_gets_return(options: dict[str, Any]) -> None:
    db, state = filled(**options)
    keys = ALL * 2
    random.Random(1).shuffle(keys)
    assert db.multi_get(keys) == [state.get(key) for key in keys] == [db.get(k) for k in keys]
    assert db.multi_get([]) == []
    assert db.multi_get(iter([bytearray(b"key001")])) == [state.get(b"key001")]
    for wrong in (["key"], [None], [b"k", 3]):
        with pytest.raises(TypeError):
            db.multi_get(wrong)  # type: ignore[arg-type]
    settle(db)  # a compaction takes the blocks of its inputs out of the cache
    before = db.stats().block_cache_bytes
    db.multi_get(ALL, fill_cache=False)
    assert db.stats().block_cache_bytes == before
    db.close()
    with pytest.raises(lsmkv.ClosedError):
        db.multi_get([b"k"])


def test_multi_get_with_a_comparator_of_the_user() -> None:
    def backwards(a: bytes, b: bytes) -> int:
        return (a < b) - (a > b)

    db, state = filled(comparator=backwards, comparator_name="backwards")
    db.flush()
    assert db.multi_get(ALL) == [state.get(key) for key in ALL]
    db.close()


def test_multi_get_reads_each_block_once() -> None:
    """Though the cache holds but a few: the keys are looked up in the order of the store."""
    with DB(":memory:", lru_cache_size=2000, block_size=256, compression=None) as db:
        for n in range(500):
            db.put(b"%05d" % n, b"v" * 20)
        db.flush()
        keys = [b"%05d" % n for n in range(500)]
        blocks = {(t.name, t.block.offset) for k in keys for t in db.explain(k).tables if t.block}
        random.Random(3).shuffle(keys)
        before = db.stats()
        assert None not in db.multi_get(keys)
        change = db.stats() - before
        assert change.gets == 500
        assert change.blocks_read + change.identity_check_reads == len(blocks) > 20


def test_multi_get_reads_all_keys_at_one_sequence() -> None:
    """Each batch writes one number to all keys, during flushes and compactions."""
    keys = [b"k%d" % n for n in range(20)]
    with DB(":memory:", **TINY) as db:
        stop = threading.Event()

        def write() -> None:
            n = 0
            while not stop.is_set():
                n += 1
                batch = WriteBatch()
                for key in keys:
                    batch.put(key, b"%d" % n)
                db.write(batch)

        threads = [threading.Thread(target=write)]
        for thread in threads:
            thread.start()
        try:
            newest = 0
            for _ in range(400):
                values = db.multi_get(keys)
                assert len(set(values)) == 1
                number = int(values[0] or b"0")
                assert number >= newest
                newest = number
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert newest > 0


@pytest.mark.parametrize("layout", ["block", "table", "both"])
@pytest.mark.parametrize("bits", [0, 1, 10])
def test_may_contain_never_denies_a_present_key(layout: Any, bits: int) -> None:
    db, state = filled(filter_layout=layout, bloom_filter_bits=bits)
    for _ in range(2):
        before = db.stats()
        for key in state:
            assert db.may_contain(key)
        absent = sum(db.may_contain(b"key%03d?" % n) for n in range(300))
        change = db.stats() - before
        assert change.blocks_read == change.block_cache_hits == 0
        if bits == 10:
            assert absent < 40
        db.compact_range()
    assert not db.may_contain(b"a")
    assert not db.may_contain(b"zzz")
    db.put(b"key000", b"")
    assert db.may_contain(b"key000")
    db.delete(b"key000")
    assert not db.may_contain(b"key000")
    db.close()


def test_the_in_operator() -> None:
    db, state = filled()
    for key in ALL:
        assert (key in db) is (key in state)
    db.put(b"empty", b"")
    assert b"empty" in db
    for wrong in ("key001", None, 3):
        with pytest.raises(TypeError):
            wrong in db  # noqa: B015
    db.close()
    with pytest.raises(lsmkv.ClosedError):
        b"k" in db  # noqa: B015


# Values kept in memory


def hot(db: DB, key: bytes, times: int = 40) -> None:
    for _ in range(times):
        db.get(key)


def test_a_key_that_is_read_often_enters_the_row_cache() -> None:
    with DB(":memory:") as db:
        db.put(b"k", b"v")
        db.flush()
        hot(db, b"k")
        before = db.stats()
        hot(db, b"k")
        did = db.stats() - before
        assert (did.gets, did.gets_found, did.gets_from_rows) == (40, 40, 40)
        assert did.filters_asked == did.block_cache_hits == did.blocks_read == 0
        assert db.explain(b"k").at_hand
        assert "in the row cache" in str(db.explain(b"k"))
        assert not db.explain(b"other").at_hand
        hot(db, b"absent")  # only what is there
        assert (db.stats() - before).gets_from_rows == 40


@pytest.mark.parametrize("number", [1, 2, 4, 8, 20, 32, 100])
def test_keys_that_are_read_in_turn_enter_the_row_cache(number: int) -> None:
    """The choice of every fourth Get must not leave out some of the keys."""
    keys = [b"%03d" % n for n in range(number)]
    with DB(":memory:") as db:
        for key in keys:
            db.put(key, b"v")
        db.flush()
        for _ in range(300):
            for key in keys:
                db.get(key)
        assert all(db.explain(key).at_hand for key in keys)


@pytest.mark.parametrize("change", ["overwrite", "delete", "flushed", "compacted"])
def test_the_row_cache_is_never_stale(change: str) -> None:
    with DB(":memory:") as db:
        db.put(b"k", b"old")
        db.flush()
        hot(db, b"k")
        old = db.snapshot()
        assert db.explain(b"k").at_hand
        if change == "delete":
            db.delete(b"k")
        else:
            db.put(b"k", b"new")
        if change == "flushed":
            db.flush()
        elif change == "compacted":
            db.compact_range()
        expected = None if change == "delete" else b"new"
        for _ in range(50):
            assert db.get(b"k") == expected
            assert old.get(b"k") == b"old"
        old.close()


def test_a_snapshot_is_not_answered_from_the_row_cache() -> None:
    """The row cache has the newest value in the tables, which a snapshot may not see."""
    with DB(":memory:") as db:
        db.put(b"k", b"old")
        old = db.snapshot()
        db.put(b"k", b"new")
        db.flush()
        hot(db, b"k")
        assert db.explain(b"k").at_hand
        assert old.get(b"k") == b"old"
        hot(db, b"k")
        old.close()


def test_without_a_block_cache_there_is_no_row_cache() -> None:
    with DB(":memory:", lru_cache_size=0) as db:
        db.put(b"k", b"v")
        db.flush()
        hot(db, b"k")
        assert db.stats().gets_from_rows == 0


def test_while_there_is_room_a_second_read_enters_the_row_cache() -> None:
    """The first read brings its block into the block cache."""
    keys = [b"%03d" % number for number in range(100)]
    with DB(":memory:") as db:
        for key in keys:
            db.put(key, b"v")
        db.flush()
        db.get(keys[0])
        for key in keys:
            assert db.get(key) == b"v"
        before = db.stats()
        for key in keys:
            assert db.get(key) == b"v"
        did = db.stats() - before
        assert (did.gets_from_rows, did.block_cache_hits) == (100, 0)


def test_the_oldest_value_of_the_row_cache_is_evicted() -> None:
    keys = [b"key%04d" % number for number in range(3000)]
    with DB(":memory:", lru_cache_size=1 << 20) as db:
        for key in keys:
            db.put(key, b"v" * 100)
        db.flush()
        for key in keys:
            hot(db, key, 12)
        at_hand = [key for key in keys if db.explain(key).at_hand]
        assert at_hand == keys[-len(at_hand) :]
        assert 2000 < len(at_hand) < 2100  # of 257 bytes each in 512 KiB


def test_the_row_cache_is_bounded() -> None:
    with DB(":memory:", lru_cache_size=1 << 20) as db:
        for number in range(3000):
            db.put(b"key%04d" % number, b"v" * 100)
        db.put(b"large", b"v" * 600_000)
        db.flush()
        for number in range(3000):
            hot(db, b"key%04d" % number, 12)
        hot(db, b"large")
        rows = db._store.view.version.row_cache  # type: ignore[union-attr]
        held = sum(len(key) + len(value) for key, value in rows.values.items())
        assert 0 < held < rows.usage <= (1 << 20) // 2
        assert b"large" not in rows.values
        rows.check()


def test_a_row_cache_that_is_nearly_full_takes_every_fourth_value() -> None:
    keys = [b"key%04d" % number for number in range(1600)]  # 2,040 would be all
    with DB(":memory:", lru_cache_size=1 << 20) as db:
        for key in keys:
            db.put(key, b"v" * 100)
        db.flush()
        for _ in range(2):
            for key in keys:
                db.get(key)
        at_hand = [db.explain(key).at_hand for key in keys]
        assert sum(at_hand[:800]) > 750  # all but the first of each block
        assert 100 < sum(at_hand[1200:]) < 250  # of 400: two looks, each with one chance in four


def test_fill_cache_false_leaves_the_row_cache_alone() -> None:
    with DB(":memory:") as db:
        db.put(b"k", b"v")
        db.flush()
        assert db.may_contain(b"k")  # opens the table, which puts its first block into the cache
        for _ in range(40):
            assert db.get(b"k", fill_cache=False) == b"v"
        assert not db.explain(b"k").at_hand


def test_a_new_version_empties_the_row_cache_of_the_one_before() -> None:
    with DB(":memory:") as db:
        db.put(b"k", b"v")
        db.flush()
        hot(db, b"k")
        old = db._store.view.version  # type: ignore[union-attr]
        assert old.row_cache.usage > 0
        db.put(b"l", b"v")
        db.flush()
        assert old.row_cache.usage == 0
        assert not old.row_cache.values


class FirstBytes:
    """A policy that asks the Bloom policy about prefixes of keys only."""

    name = "example.FirstBytes"

    def __init__(self) -> None:
        self.user_policy = lsmkv.BloomFilterPolicy(10)

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        return self.user_policy.create_filter([key[:2] for key in keys])

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        return self.user_policy.key_may_match(key[:2], filter_data)

    def key_hash(self, key: bytes, /) -> int:
        return self.user_policy.key_hash(key[:2])

    def hash_may_match(self, key_hash: int, filter_data: bytes, /) -> bool:
        return self.user_policy.hash_may_match(key_hash, filter_data)


def test_a_policy_around_the_bloom_policy_is_asked_itself() -> None:
    keys = [b"%03d" % n for n in range(300)]
    with DB(":memory:", filter_policy=FirstBytes()) as db:
        for key in keys:
            db.put(key, key)
        db.flush()
        assert [db.get(key) for key in keys] == keys
        assert db.get(b"no") is None


class Counting(FirstBytes):
    """Counts the hashes that it is asked for."""

    name = "example.Counting"

    def __init__(self) -> None:
        super().__init__()
        self.hashed: list[bytes] = []

    def key_hash(self, key: bytes, /) -> int:
        self.hashed.append(key)
        return super().key_hash(key)


def test_a_get_hashes_its_key_once_and_only_if_a_table_is_asked(path: str) -> None:
    """Also where tables with filters of another policy lie between those that take the hash."""
    own = Counting()
    policies = [own, lsmkv.Bloom64Policy(), own, lsmkv.BloomFilterPolicy(), own]
    for number, policy in enumerate(policies):
        with DB(path, create_if_missing=True, filter_policy=policy) as db:
            for key in (b"a", b"m", b"z"):
                db.put(key, b"%d" % number)
            db.flush()
    with DB(path, filter_policy=own) as db:
        own.hashed.clear()
        before = db.stats()
        assert db.get(b"k") is None
        assert (db.stats() - before).filters_asked == len(policies)
        assert own.hashed == [b"k"]
        db.put(b"k", b"in memory")
        assert db.get(b"k") == b"in memory"
        assert own.hashed == [b"k"]
        assert not db.may_contain(b"l")
        assert own.hashed == [b"k", b"l"]


@pytest.mark.parametrize("compression", ["snappy", None])
def test_damage_in_a_table(path: str, compression: Any) -> None:
    with DB(path, create_if_missing=True, block_size=512, compression=compression) as db:
        fill(db)
        db.compact_range()
    (name,) = files(path, FileType.TABLE)
    table = pathlib.Path(path, name)
    sound = table.read_bytes()
    damaged = bytearray(sound)
    damaged[10] ^= 0x20  # in the first data block
    table.write_bytes(damaged)
    with DB(path) as db:
        for read in (
            lambda: db.get(b"key0000"),
            lambda: db.get(b"key0000"),  # damage is not cached
            lambda: next(iter(db)),
            lambda: list(db.iterator(reverse=True)),
            db.check,
            lambda: db.snapshot().get(b"key0000", verify_checksums=False),
        ):
            with pytest.raises(lsmkv.CorruptionError) as caught:
                read()
            assert caught.value.path == str(table)
            assert caught.value.offset == 0
            assert name in str(caught.value)
        assert db.get(b"key0299") == ENTRIES[b"key0299"]  # another block
    table.write_bytes(sound)
    with DB(path) as db:
        db.compact_range()
        assert dict(db) == ENTRIES


def test_a_memtable_answers_without_a_table(db: DB) -> None:
    fill(db)
    db.flush()
    db.put(b"key0001", b"new")
    db.delete(b"key0002")
    assert db.get(b"key0001") == b"new"
    assert db.get(b"key0002") is None
    stats = db.stats()
    assert stats.gets_from_memory == 2
    assert stats.filters_asked == stats.blocks_read == 0


@pytest.mark.parametrize("read", ["get", "may_contain"])
def test_tables_stay_until_a_read_has_asked_them_all(read: str) -> None:
    """A compaction that ends in the middle of a read leaves it the tables that it has yet to ask.

    A compiled function drops its reference to an object after the last use, so the version of a
    read may be released before the read is over.
    """
    env = HookedEnv()
    with DB("db", create_if_missing=True, env=env, background="thread") as db:
        for turn in range(3):
            db.put(b"a", b"%d" % turn)
            db.put(b"z", b"%d" % turn)
            db.flush()
        assert sum(level.files for level in db.stats().levels) == 3
    with DB("db", env=env, background="thread") as db:

        def compact(call: str, name: str) -> None:
            if call == "open" and name.endswith(".ldb"):
                env.before = ignore
                thread = threading.Thread(target=db.compact_range)
                thread.start()
                thread.join()

        env.before = compact
        assert not getattr(db, read)(b"m")
        assert env.before is ignore
        assert sum(level.files for level in db.stats().levels) == 1
