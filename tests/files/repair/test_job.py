"""lsmkv.repair.job: a repair carried out: the new tables, the MANIFEST, and the old files."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest
from stores import put_numbered, rewrite

import lsmkv
from lsmkv import DB, repair_db
from lsmkv.engine.env.base import Directory
from lsmkv.testing.faulty import FaultyEnv

OPTIONS: dict[str, Any] = {"block_size": 256, "compression": None, "max_file_size": 2048}


def value_of(number: int) -> bytes:
    return b"%03d" % number * 20


def store() -> FaultyEnv:
    """100 keys on a level below 0, and a write in the log."""
    env = FaultyEnv()
    with DB("db", create_if_missing=True, env=env, **OPTIONS) as db:
        for number in range(100):
            db.put(b"key%03d" % number, value_of(number))
        db.compact_range()
        db.put(b"log", b"1")
    return env


def names(env: FaultyEnv, path: str = "db", suffix: str = "") -> list[str]:
    with env.open_directory(path) as directory:
        return sorted(name for name in directory.names() if name.endswith(suffix))


def change(env: FaultyEnv, name: str, to: Callable[[bytes], bytes]) -> None:
    with env.open_directory("db") as directory:
        data = directory.read_file(name, 1 << 20)
        rewrite(directory, name, to(data))


def damage(data: bytes) -> bytes:
    return data[:3] + bytes([data[3] ^ 3]) + data[4:]


def read(directory: Directory, name: str) -> bytes:
    return directory.read_file(name, 1 << 20)


def without_manifest(env: FaultyEnv) -> None:
    with env.open_directory("db") as directory:
        for name in directory.names():
            if name == "CURRENT" or name.startswith("MANIFEST"):
                directory.remove(name)


def test_sound_tables_stay_on_their_levels_under_their_names() -> None:
    env = store()
    with DB("db", env=env, **OPTIONS) as db:
        db.put(b"more", b"1")
        before = {(table.name, table.level) for table in db.tables()}
    repair_db("db", into="new", env=env, **OPTIONS)
    with DB("new", env=env, **OPTIONS) as db:
        after = {(table.name, table.level) for table in db.tables()}
        assert before <= after
        assert {level for _, level in after - before} == {0}  # what was in the log
        assert len(list(db)) == 102


def test_in_place_old_files_are_kept_in_lost() -> None:
    env = store()
    (first, *_) = names(env, suffix=".ldb")
    change(env, first, damage)
    with env.open_directory("db") as directory:
        old = {
            name: read(directory, name)
            for name in directory.names()
            if name == first or name.startswith("MANIFEST") or name.endswith(".log")
        }
    repair_db("db", env=env, **OPTIONS)
    with env.open_directory("db") as directory, directory.subdirectory("lost") as lost:
        for name, data in old.items():
            assert read(lost, name) == data
            assert not directory.exists(name)
    with DB("db", env=env, **OPTIONS) as db:
        content = dict(db)
        assert content[b"log"] == b"1"
        assert 80 < len(content) < 101
        db.check()


def test_a_second_repair_numbers_what_lost_has_of_the_same_name() -> None:
    env = store()
    (first, *_) = names(env, suffix=".ldb")
    with (
        env.open_directory("db") as directory,
        directory.subdirectory("lost", create=True) as lost,
        lost.create(first) as file,
    ):
        file.append(b"of an earlier repair")
    change(env, first, damage)
    repair_db("db", env=env, **OPTIONS)
    with env.open_directory("db") as directory, directory.subdirectory("lost") as lost:
        assert read(lost, first) == b"of an earlier repair"
        assert lost.exists(f"{first}.1")


def test_new_files_have_numbers_above_those_in_lost() -> None:
    env = store()
    (first, *_) = names(env, suffix=".ldb")
    with (
        env.open_directory("db") as directory,
        directory.subdirectory("lost", create=True) as lost,
    ):
        lost.create("000900.ldb").close()
    change(env, first, damage)
    before = set(names(env))
    repair_db("db", env=env, **OPTIONS)
    made = {name for name in set(names(env)) - before if name.endswith((".ldb", ".log"))}
    assert made
    assert min(int(name[:6]) for name in made) > 900


def test_a_merge_begins_a_new_table_once_one_is_full() -> None:
    env = store()
    with DB("db", env=env, **OPTIONS) as db:
        for turn in range(3):
            put_numbered(db, b"key%03d", range(100), b"%d" % turn * 60)
        db.flush()
        expected = dict(db)
    without_manifest(env)
    repair_db("db", env=env, **OPTIONS)
    with DB("db", env=env, **OPTIONS) as db:
        assert dict(db) == expected
        tables = db.tables()
        assert len(tables) > 2
        assert {table.level for table in tables} == {1}
        edges = [key for table in tables for key in (table.smallest, table.largest)]
        assert edges == sorted(set(edges))
        assert max(table.size for table in tables) < 2 * 2048


def damaged_store() -> FaultyEnv:
    env = store()
    change(env, names(env, suffix=".ldb")[0], damage)
    return env


def test_a_failed_repair_leaves_the_old_store_and_no_new_file() -> None:
    env = damaged_store()
    before = env.history.count("create")
    repair_db("db", env=env, **OPTIONS)
    creations = env.history.count("create") - before
    assert creations > 4
    for nth in range(1, creations):  # the last one is of the new CURRENT
        env = damaged_store()
        env.open_directory("db").lock("LOCK").close()
        old = [name for name in names(env) if name != "lost"]
        env.fail_at(nth, OSError(errno.ENOSPC, "disk full"), calls={"create"})
        with pytest.raises(lsmkv.IOError, match="disk full"):
            repair_db("db", env=env, **OPTIONS)
        assert [name for name in names(env) if name != "lost"] == old
        env.heal()
        assert repair_db("db", env=env, **OPTIONS).needed
        with DB("db", env=env, **OPTIONS) as db:
            assert db.get(b"log") == b"1"


def test_used_up_file_numbers_are_refused() -> None:
    env = store()
    with (
        env.open_directory("db") as directory,
        directory.subdirectory("lost", create=True) as lost,
    ):
        lost.create(f"{(1 << 63) - 1}.ldb").close()
    change(env, names(env, suffix=".ldb")[0], damage)
    with pytest.raises(lsmkv.CorruptionError, match="file numbers exhausted"):
        repair_db("db", env=env, **OPTIONS)
