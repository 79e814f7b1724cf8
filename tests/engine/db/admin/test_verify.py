"""``db.verify`` and ``db.check`` find every kind of damage, and report no other."""

from __future__ import annotations

import os
import pathlib
import shutil
from collections.abc import Sequence
from typing import Any

import pytest
from policies import DenyingAll
from stores import flip

import lsmkv
from lsmkv import DB, BinaryFusePolicy, Bloom64Policy
from lsmkv.testing.faulty import FaultyEnv

TINY: dict[str, Any] = {"write_buffer_size": 4096, "max_file_size": 4096, "block_size": 512}


@pytest.fixture
def path(tmp_path: pathlib.Path) -> str:
    path = str(tmp_path / "db")
    with DB(path, create_if_missing=True, compression=None, **TINY) as db:
        for n in range(300):
            db.put(b"key%04d" % n, b"value %d " % n * 4)
        db.compact_range()
    return path


def tables(path: str) -> list[str]:
    return sorted(os.path.join(path, n) for n in os.listdir(path) if n.endswith(".ldb"))


def test_a_sound_store(path: str) -> None:
    with DB(path) as db:
        seen: list[tuple[int, int, str]] = []
        assert db.verify(progress=lambda *step: seen.append(step)) == []
        db.check()
        total = sum(os.path.getsize(name) for name in tables(path))
    done = [step[0] for step in seen]
    assert done == sorted(set(done))
    assert done[-1] == total
    assert len(done) == len(tables(path))
    assert {step[1:] for step in seen} == {(total, "tables")}


def test_an_empty_store() -> None:
    with DB(":memory:") as db:
        assert db.verify() == []
        db.put(b"k", b"v")
        db.check()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_flipped_byte_in_every_block(path: str, read_only: bool) -> None:
    """The damage is found although all blocks are in the cache."""
    victim = tables(path)[1]
    with DB(path, read_only=read_only) as db:
        entries = dict(db)
        size = os.path.getsize(victim)
        for offset in range(0, size - 600, 97):
            flip(victim, offset)
            (error,) = db.verify()
            assert error.path is not None
            assert os.path.basename(error.path) == os.path.basename(victim)
            with pytest.raises(lsmkv.CorruptionError):
                db.check()
            flip(victim, offset)
        assert db.verify() == []
        assert dict(db) == entries


def test_a_flipped_byte_anywhere(path: str) -> None:
    """This holds for index, filters and footer too, and for a table that is open already."""
    victim = tables(path)[1]
    size = os.path.getsize(victim)
    with open(victim, "rb") as file:
        padding = file.read()[-48:-8].rstrip(b"\0")  # zeros of the footer mean nothing
    nothing = range(size - 48 + len(padding), size - 8)
    with DB(path, seek_compaction=False) as db:
        assert db.verify() == []
        for offset in [*range(0, size, 61), *range(size - 48, size)]:
            if offset in nothing:
                continue
            flip(victim, offset)
            assert len(db.verify()) == 1, offset
            flip(victim, offset)


def test_every_damaged_table_is_named(path: str) -> None:
    for name in tables(path):
        flip(name, 100)
    with DB(path) as db:
        damage = db.verify()
        assert [error.path for error in damage] == tables(path)
        assert {error.offset for error in damage} == {0}


def test_a_missing_or_cut_table(path: str) -> None:
    one, two, *_ = tables(path)
    os.remove(one)
    os.truncate(two, os.path.getsize(two) - 1)
    with DB(path) as db:
        assert [error.path for error in db.verify()] == [one, two]


def test_tables_of_another_store(path: str, tmp_path: pathlib.Path) -> None:
    """They are intact and of the right size, but not those that the MANIFEST states."""
    other = str(tmp_path / "other")
    with DB(other, create_if_missing=True, compression=None, **TINY) as db:
        for n in range(300):
            db.put(b"kex%04d" % n, b"value %d " % n * 4)
        db.compact_range()
    assert list(map(os.path.basename, tables(path))) == list(map(os.path.basename, tables(other)))
    victims = tables(path)[::2]
    for name in victims:
        assert os.path.getsize(name) == os.path.getsize(os.path.join(other, name[len(path) + 1 :]))
        shutil.copyfile(os.path.join(other, os.path.basename(name)), name)
    with DB(path) as db:
        assert [error.path for error in db.verify()] == victims


def test_a_failing_read_is_no_damage() -> None:
    env = FaultyEnv()
    with DB("/db", create_if_missing=True, env=env) as db:
        db.put(b"k", b"v")
        db.flush()
        env.fail_at(1, calls={"read"})
        with pytest.raises(lsmkv.IOError):
            db.verify()
        assert db.verify() == []


def test_closed_meanwhile(path: str) -> None:
    db = DB(path)

    def close(done: int, total: int, phase: str) -> None:
        db.close()

    with pytest.raises(lsmkv.ClosedError):
        db.verify(progress=close)
    with pytest.raises(lsmkv.ClosedError):
        db.verify()
    with pytest.raises(lsmkv.ClosedError):
        db.check()


@pytest.mark.parametrize("layout", ["block", "table"])
def test_a_filter_with_false_negatives(tmp_path: pathlib.Path, layout: Any) -> None:
    """Every checksum is right, but every Get misses."""
    path = tmp_path / "db"
    with DB(
        path,
        create_if_missing=True,
        filter_policy=DenyingAll("leveldb.BuiltinBloomFilter2"),
        filter_layout=layout,
    ) as db:
        for number in range(200):
            db.put(b"key%03d" % number, b"v")
        db.flush()
        db.check()
    with DB(path) as db:
        assert db.get(b"key001") is None
        (error,) = db.verify()
        assert "denies" in error.reason
    plan = lsmkv.plan_repair(path)
    assert plan.needed
    assert "wrongly says no to 200 of the table's keys" in str(plan.to_dict())
    lsmkv.repair_db(path, into=tmp_path / "new")
    with DB(tmp_path / "new") as db:
        assert db.get(b"key001") == b"v"
        assert db.verify() == []
        assert len(dict(db)) == 200


class DenyingFuse(DenyingAll):
    """Filters of other keys."""

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        return BinaryFusePolicy().create_filter([b"other" + key for key in keys])


class MarkedAsFuse(DenyingAll):
    """A filter under the name of Bloom64 whose last byte is that of a fuse filter."""

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        return DenyingFuse("").create_filter([b"%d" % n for n in range(1000)])


LIARS = [
    DenyingAll("lsmkv.Bloom64"),
    DenyingFuse("lsmkv.BinaryFuse8"),
    MarkedAsFuse("lsmkv.Bloom64"),
]


@pytest.mark.parametrize("layout", ["block", "table", "both"])
@pytest.mark.parametrize("liar", LIARS)
def test_a_filter_of_64_bit_hashes_with_false_negatives(
    tmp_path: pathlib.Path, liar: Any, layout: Any
) -> None:
    """It is named by ``verify`` and ``check`` under any policy, and by the plan of a repair."""
    path = tmp_path / "db"
    with DB(path, create_if_missing=True, filter_policy=liar, filter_layout=layout) as db:
        for number in range(1500):
            db.put(b"%04d" % number, b"v")
        db.flush()
    for policy in (None, Bloom64Policy(10), BinaryFusePolicy()):
        with DB(path, filter_policy=policy) as db:
            if policy is not None:
                missed = sum(db.get(b"%04d" % number) is None for number in range(1500))
                assert missed > 1400
            (error,) = db.verify()
            assert "a filter denies a key" in error.reason
            assert error.path is not None
            assert error.path.endswith(".ldb")
            with pytest.raises(lsmkv.CorruptionError, match="a filter denies a key"):
                db.check()
            assert len(dict(db)) == 1500
    assert "a filter wrongly says no to" in str(lsmkv.plan_repair(path).to_dict())
    lsmkv.repair_db(path, into=tmp_path / "new")
    with DB(tmp_path / "new", filter_policy=Bloom64Policy(10)) as db:
        assert db.verify() == []
        assert all(db.get(b"%04d" % number) == b"v" for number in range(1500))


class Forgetful:
    """An extractor with a name of lsmkv's, which finds no prefix in some keys."""

    name = "lsmkv.FixedPrefix.2"

    def extract(self, key: bytes, /) -> bytes | None:
        return None if key.startswith(b"07") else key[:2]


@pytest.mark.parametrize("policy", [None, Bloom64Policy(10), BinaryFusePolicy()])
def test_a_prefix_filter_with_false_negatives(tmp_path: pathlib.Path, policy: Any) -> None:
    path = tmp_path / "db"
    options: dict[str, Any] = {"filter_policy": policy, "compression": None}
    with DB(path, create_if_missing=True, prefix_extractor=Forgetful(), **options) as db:
        for number in range(1500):
            db.put(b"%04d" % number, b"v")
        db.flush()
        assert db.verify() == []
    with DB(path, prefix_extractor=2, **options) as db:
        assert len(list(db.iterator(prefix=b"08"))) == 100
        assert list(db.iterator(prefix=b"07")) == []  # it lies
        (error,) = db.verify()
        assert "the prefix filter denies a key" in error.reason
        assert error.offset is not None
        assert error.offset > 0
        with pytest.raises(lsmkv.CorruptionError, match="the prefix filter denies a key"):
            db.check()
        assert all(db.get(b"%04d" % number) == b"v" for number in range(1500))
        db.rewrite_tables()
        assert db.verify() == []
        assert len(list(db.iterator(prefix=b"07"))) == 100


# Beside a writer


def test_beside_a_writer_that_removes_tables(path: str) -> None:
    """The view moves on, and all tables of one version are verified."""
    with DB(path, **TINY) as writer, DB(path, read_only=True, max_open_files=20) as view:
        before = set(tables(path))
        turns = 0

        def rewrite(done: int, total: int, phase: str) -> None:
            nonlocal turns
            assert 0 < done <= total
            if turns < 4:
                turns += 1
                for n in range(300):
                    writer.put(b"key%04d" % n, b"turn %d" % turns * 10)
                writer.compact_range()

        assert view.verify(progress=rewrite) == []
        assert turns == 4
        assert not before & set(tables(path))
        assert {table.number for table in view.tables()} == {t.number for t in writer.tables()}


def test_damage_beside_a_writer_is_reported(path: str) -> None:
    with DB(path, **TINY) as writer:
        for n in range(300):
            writer.put(b"z%04d" % n, b"%d" % n * 40)
        writer.compact_range()
        with DB(path, read_only=True, max_open_files=20) as view:
            first, *_, last = tables(path)
            flip(first, 40)
            os.remove(last)
            assert sorted(error.path or "" for error in view.verify()) == sorted([first, last])
