"""lsmkv.shards.remote.remote_env: databases read in an object store."""

from __future__ import annotations

import errno
import gc
import hashlib
import itertools
import random
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from memory_objects import MemoryObjects, upload
from threads import run_threads

from lsmkv import DB, CorruptionError, IOError, MemoryEnv, NotFoundError
from lsmkv.engine.env.base import Directory
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.options import Options
from lsmkv.shards.remote.disk_cache import DiskCache
from lsmkv.shards.remote.meta import FilePieces, decode_meta, encode_meta
from lsmkv.shards.remote.remote_env import Expected, RemoteEnv

CONTENT = {b"key%06d" % n: b"value %d " % n * (1 + n % 7) for n in range(0, 6000, 2)}
LAST = max(CONTENT)
"""A key in a block that opening the table does not read."""
SETTINGS: dict[str, Any] = {"bloom_filter_bits": 20, "block_size": 1024, "compression": None}


def build(content: dict[bytes, bytes], **settings: Any) -> MemoryEnv:
    env = MemoryEnv()
    with DB("db", create_if_missing=True, env=env, **{**SETTINGS, **settings}) as db:
        for key, value in content.items():
            db.put(key, value)
        db.compact_range()
    return env


@pytest.fixture(scope="module")
def built() -> MemoryEnv:
    return build(CONTENT, max_file_size=64 << 10, write_buffer_size=64 << 10)


@pytest.fixture
def objects(built: MemoryEnv) -> MemoryObjects:
    """A database of several tables below ``s/``, with META."""
    objects = MemoryObjects()
    upload(built, "db", objects, "s", meta=Options())
    objects.forget_requests()
    return objects


@pytest.fixture
def env(objects: MemoryObjects) -> Iterator[RemoteEnv]:
    env = RemoteEnv(objects)
    yield env
    env.close()


def open_db(env: RemoteEnv, path: str = "s", **options: Any) -> DB:
    return DB(path, read_only=True, env=env, bloom_filter_bits=20, **options)


def tables(objects: MemoryObjects) -> list[str]:
    return [name for name in objects.objects if name.endswith(".ldb")]


def without_meta(objects: MemoryObjects) -> MemoryObjects:
    del objects.objects["s/META"]
    return objects


def expected_of(objects: MemoryObjects) -> dict[str, Expected]:
    return {
        name: Expected(len(data), hashlib.sha256(data).hexdigest())
        for name, data in objects.objects.items()
    }


def assert_holds(db: DB, content: dict[bytes, bytes]) -> None:
    """Gets, scans both ways, and seeks."""
    keys = sorted(content)
    assert list(db) == [(key, content[key]) for key in keys]
    assert list(db.iterator(reverse=True)) == [(key, content[key]) for key in reversed(keys)]
    for key in random.Random(1).sample(keys, 200):
        assert db.get(key) == content[key]
        assert db.get(key + b"x") is None
        found = list(db.iterator(start=key + b"x", stop=key + b"\xff"))
        assert found == []
        after = keys[keys.index(key) : keys.index(key) + 5]
        assert [k for k, _ in db.iterator(start=key)][:5] == after


# What it shows


def test_a_database_with_meta_is_what_was_written(env: RemoteEnv) -> None:
    with open_db(env) as db:
        assert_holds(db, CONTENT)


def test_a_database_without_meta_is_what_was_written(objects: MemoryObjects) -> None:
    env = RemoteEnv(without_meta(objects))
    with open_db(env) as db:
        assert_holds(db, CONTENT)
    env.close()


@pytest.mark.parametrize("meta", [True, False])
def test_what_only_a_log_holds_is_shown(meta: bool) -> None:
    local = MemoryEnv()
    with DB("db", create_if_missing=True, env=local) as db:
        db.put(b"k", b"v")
    objects = MemoryObjects()
    upload(local, "db", objects, "deep/down", meta=Options() if meta else None)
    with DB("deep/down", read_only=True, env=RemoteEnv(objects)) as db:
        assert list(db) == [(b"k", b"v")]


@pytest.mark.parametrize("meta", [True, False])
@pytest.mark.parametrize(
    "name",
    ["levels-none", "levels-snappy-bloom", "none-bloom", "old-sst", "snappy", "unflushed-log"],
)
def test_what_leveldb_wrote_is_shown(name: str, meta: bool) -> None:
    path = str(Path(__file__).parents[2] / "data" / name)
    objects = MemoryObjects()
    upload(LocalEnv(), path, objects, name, meta=Options() if meta else None)
    objects.forget_requests()
    env = RemoteEnv(objects)
    with DB(path, read_only=True) as local, DB(name, read_only=True, env=env) as db:
        assert not meta or objects.counts == {"get": 1}
        assert len(list(local)) > 10
        assert list(db) == list(local)
        assert list(db.iterator(reverse=True)) == list(local.iterator(reverse=True))
    env.close()


def test_a_database_at_the_root(built: MemoryEnv, objects: MemoryObjects) -> None:
    root = MemoryObjects()
    for name, data in objects.objects.items():
        root.objects[name.removeprefix("s/")] = data
        root.modified[name.removeprefix("s/")] = 0.0
    with RemoteEnv(root).open_directory("") as directory:
        assert directory.path == root.url
        assert directory.exists("CURRENT")
    with open_db(RemoteEnv(root), ".") as db:
        assert db.get(b"key000002") == CONTENT[b"key000002"]


def test_a_view_can_be_refreshed(env: RemoteEnv) -> None:
    with open_db(env) as db:
        env.forget_meta()
        db.refresh()
        assert db.get(b"key000002") == CONTENT[b"key000002"]


def test_the_meta_of_one_directory_can_be_given_up(objects: MemoryObjects) -> None:
    for name in list(objects.objects):
        objects.put(name.replace("s/", "other/", 1), objects.get(name))
    env = RemoteEnv(objects)
    with open_db(env), env.open_directory("other") as other:
        table = tables(objects)[0].removeprefix("s/")
        objects.counts.clear()
        env.forget_meta("/s/")
        with other.open(table) as file:
            file.read(0, 10)
        assert objects.counts == {}
        env.forget_meta("other")
        with other.open(table) as file:
            file.read(0, 10)
        assert objects.counts == {"get_range": 1}


# What it costs


def test_opening_with_meta_is_one_request(env: RemoteEnv, objects: MemoryObjects) -> None:
    assert len(tables(objects)) > 3
    with open_db(env):
        assert objects.counts == {"get": 1}


def test_opening_with_an_expected_meta_is_one_request(objects: MemoryObjects) -> None:
    env = RemoteEnv(objects, expected=expected_of(objects))
    with open_db(env):
        assert objects.counts == {"get_range": 1}


def test_opening_without_meta_is_two_requests_a_table_and_four(objects: MemoryObjects) -> None:
    with open_db(RemoteEnv(without_meta(objects))):
        large = [name for name in tables(objects) if len(objects.objects[name]) > 64 << 10]
        count = len(tables(objects)) + len(large)
        assert objects.counts == {"get": 1, "list": 1, "get_range": 2 + count}


def test_files_that_are_expected_are_not_listed(objects: MemoryObjects) -> None:
    expected = expected_of(without_meta(objects))
    with open_db(RemoteEnv(objects, expected=expected)) as db:
        assert set(objects.counts) == {"get_range"}
        assert_holds(db, CONTENT)


def test_an_absent_key_costs_nothing_and_a_present_one_a_request() -> None:
    objects = MemoryObjects()
    upload(build(CONTENT, block_size=256), "db", objects, "s", meta=Options())
    env = RemoteEnv(objects)
    with open_db(env, lru_cache_size=0) as db:
        objects.forget_requests()
        absent = [b"key%06d" % n for n in range(1, 6000, 2)]
        assert [db.get(key) for key in absent] == [None] * len(absent)
        assert objects.requests <= 10  # where a filter errs
        objects.forget_requests()
        keys = random.Random(2).sample(sorted(CONTENT), 300)
        for key in keys:
            before = objects.requests
            assert db.get(key) == CONTENT[key]
            assert objects.requests - before <= 1
        assert objects.requests > 290  # less what the first block in META saves
        assert all(length < 600 for _, _, length in objects.ranges)  # of one block
    assert env.counters.bytes_ahead == 0


def test_the_bytes_of_meta_are_given_up() -> None:
    content = {b"key%06d" % n: b"v" * 10 for n in range(30000)}
    objects = MemoryObjects()
    upload(build(content, max_file_size=1 << 20), "db", objects, "s", meta=Options())
    tracemalloc.start()
    held: list[int] = []
    for _ in range(2):  # the second time everything that is made once is there
        env = RemoteEnv(objects)
        before = tracemalloc.get_traced_memory()[0]
        with open_db(env, lru_cache_size=0) as db:
            gc.collect()
            opened = tracemalloc.get_traced_memory()[0] - before
            env.forget_meta()
            gc.collect()
            held = [opened, tracemalloc.get_traced_memory()[0] - before]
            objects.forget_requests()
            assert db.get(b"key000000") == b"v" * 10
            assert objects.requests == 1
    tracemalloc.stop()
    assert len(objects.objects["s/META"]) > 70_000
    assert held[0] - held[1] < 7_000


# A directory


def test_names_and_sizes(objects: MemoryObjects) -> None:
    objects.put("s/lost/000001.log", b"x")
    for env in (RemoteEnv(objects), RemoteEnv(without_meta(objects))):
        with env.open_directory("/s/") as directory:
            assert directory.path == "memory://bucket/s"
            names = {name for name in directory.names() if name not in ("META", "lost")}
            assert names == {name[2:] for name in objects.objects if name.count("/") == 1} - {
                "META"
            }
            for name in names:
                assert directory.exists(name)
                assert directory.size(name) == len(objects.objects[f"s/{name}"])
                with directory.open(name) as file:
                    assert file.path == f"memory://bucket/s/{name}"
                    assert file.size == directory.size(name)
            assert not directory.exists("nothing")
            for call in (directory.size, directory.open):
                with pytest.raises(FileNotFoundError) as caught:
                    call("nothing")
                assert caught.value.filename == "memory://bucket/s/nothing"
                with pytest.raises(ValueError, match="plain file name"):
                    call("a/b")
        for call in (directory.names, lambda: directory.open("CURRENT")):
            with pytest.raises(OSError, match="descriptor") as closed:
                call()
            assert closed.value.errno == errno.EBADF


def test_a_directory_in_a_directory(objects: MemoryObjects) -> None:
    without_meta(objects).put("s/lost/000001.log", b"log")
    with RemoteEnv(objects).open_directory("s") as directory:
        assert "lost" in directory.names()
        with pytest.raises(IsADirectoryError):
            directory.open("lost")
        with directory.subdirectory("lost") as lost:
            assert lost.names() == ["000001.log"]
            assert lost.read_file("000001.log", 10) == b"log"


def test_nothing_can_be_written(env: RemoteEnv, objects: MemoryObjects) -> None:
    before = dict(objects.objects)
    with env.open_directory("s") as directory:
        calls: list[Callable[[], object]] = [
            lambda: env.open_directory("s", create=True),
            lambda: env.remove_directory("s"),
            lambda: env.rename_directory("s", "t"),
            lambda: directory.create("new"),
            lambda: directory.create_log("new"),
            lambda: directory.append_to("CURRENT"),
            lambda: directory.continue_log("CURRENT", 0),
            lambda: directory.rename("CURRENT", "new"),
            lambda: directory.remove("CURRENT"),
            lambda: directory.link("CURRENT", directory),
            lambda: directory.lock("LOCK"),
            lambda: directory.subdirectory("lost", create=True),
            directory.sync,
        ]
        for call in calls:
            with pytest.raises(OSError, match="Read-only") as caught:
                call()
            assert caught.value.errno == errno.EROFS
        assert directory.lock_holder("LOCK") is None
    with pytest.raises(IOError, match="Read-only"):
        DB("s", env=env)
    assert objects.objects == before


def test_no_objects_are_no_database(env: RemoteEnv) -> None:
    with pytest.raises(NotFoundError):
        open_db(env, "t")
    with pytest.raises(FileNotFoundError):
        env.open_directory("t")
    with pytest.raises(ValueError, match="name of an object"):
        env.open_directory("s/../s")


def test_a_directory_without_current(objects: MemoryObjects) -> None:
    del without_meta(objects).objects["s/CURRENT"]
    with pytest.raises(CorruptionError, match="CURRENT is missing"):
        open_db(RemoteEnv(objects))


# Damage


def test_a_damaged_meta(env: RemoteEnv, objects: MemoryObjects) -> None:
    whole = objects.objects["s/META"]
    for damaged in (whole[:-1], whole[:99] + bytes([whole[99] ^ 1]) + whole[100:], b""):
        objects.objects["s/META"] = damaged
        with pytest.raises(CorruptionError) as caught:
            open_db(env)
        assert caught.value.path == "memory://bucket/s/META"


def test_a_meta_that_is_not_the_expected_one(objects: MemoryObjects) -> None:
    expected = expected_of(objects)
    whole = objects.objects["s/META"]
    others = [encode_meta([*decode_meta(whole), FilePieces("z", n, [])]) for n in (1, 2)]
    assert len(others[0]) == len(others[1]) > len(whole)
    for name, other, known in (
        ("longer", others[0], expected["s/META"]),
        ("same size", others[0], Expected(len(others[1]), hashlib.sha256(others[1]).hexdigest())),
        ("shorter", whole[:-1], expected["s/META"]),
    ):
        objects.objects["s/META"] = other
        env = RemoteEnv(objects, expected={**expected, "s/META": known})
        with pytest.raises(CorruptionError) as caught:
            open_db(env)
        assert caught.value.path == "memory://bucket/s/META", name


def test_without_an_expected_meta_the_files_are_read_with_a_warning(
    objects: MemoryObjects, caplog: pytest.LogCaptureFixture
) -> None:
    expected = expected_of(objects)
    with open_db(RemoteEnv(objects, expected=expected)) as db:
        assert dict(db) == CONTENT
    assert caplog.text == ""
    with open_db(RemoteEnv(without_meta(objects), expected=expected)) as db:
        assert dict(db) == CONTENT
    (record,) = caplog.records
    assert record.getMessage().startswith("memory://bucket/s/META: the object is missing")
    del objects.objects["s/CURRENT"]
    with pytest.raises(CorruptionError, match="CURRENT: the object is missing"):
        open_db(RemoteEnv(objects, expected=expected))


def test_a_table_of_another_size_than_expected(objects: MemoryObjects) -> None:
    expected = expected_of(objects)
    table = tables(objects)[0]
    expected[table] = expected[table]._replace(size=expected[table].size + 1)
    with pytest.raises(CorruptionError, match=table[2:]):
        open_db(RemoteEnv(objects, expected=expected))


@pytest.mark.parametrize("damage", ["missing", "short", "changed"])
@pytest.mark.parametrize("meta", [True, False])
def test_a_damaged_table_is_never_a_wrong_answer(
    objects: MemoryObjects, meta: bool, damage: str
) -> None:
    if not meta:
        without_meta(objects)
    env = RemoteEnv(objects)
    with open_db(env, lru_cache_size=0) as db:
        env.forget_meta()
        for table in tables(objects):
            whole = objects.objects[table]
            if damage == "missing":
                del objects.objects[table]
            elif damage == "short":
                objects.objects[table] = whole[: len(whole) // 3]
            else:
                half = len(whole) // 2
                objects.objects[table] = whole[:half] + bytes(99) + whole[half + 99 :]
        damaged: set[str | None] = set()
        for key, value in CONTENT.items():
            try:
                assert db.get(key) == value
            except CorruptionError as error:
                damaged.add(error.path)
        assert damaged == {f"memory://bucket/{table}" for table in tables(objects)} or (
            damage == "missing" and len(damaged) > 3
        )
        with pytest.raises(CorruptionError):
            list(db)


def test_a_table_missing_without_meta(objects: MemoryObjects) -> None:
    del without_meta(objects).objects[tables(objects)[0]]
    with pytest.raises(CorruptionError, match="missing"):
        open_db(RemoteEnv(objects))


def test_a_reply_of_more_bytes_is_refused(env: RemoteEnv, objects: MemoryObjects) -> None:
    with open_db(env) as db:
        env.forget_meta()
        objects.edit = lambda name, data: data + b"x"
        with pytest.raises(CorruptionError, match="of the"):
            db.get(LAST)


def test_failures_of_the_network_pass(env: RemoteEnv, objects: MemoryObjects) -> None:
    def fail(kind: str, name: str) -> None:
        raise OSError(errno.ETIMEDOUT, "no reply", objects.url_of(name))

    objects.hook = fail
    with pytest.raises(OSError, match="no reply") as caught:
        open_db(env)
    assert caught.value.errno == errno.ETIMEDOUT
    objects.hook = lambda kind, name: None
    with open_db(env) as db:
        env.forget_meta()
        objects.hook = fail
        with pytest.raises(IOError, match="no reply"):
            db.get(LAST)
        with pytest.raises(IOError, match="no reply"):
            list(db)
        objects.hook = lambda kind, name: None
        assert_holds(db, CONTENT)


def test_credentials_that_are_refused(env: RemoteEnv, objects: MemoryObjects) -> None:
    def refuse(kind: str, name: str) -> None:
        raise OSError(errno.EACCES, "expired", objects.url_of(name))

    objects.hook = refuse
    with pytest.raises(PermissionError, match="expired"):
        env.open_directory("s")


def test_an_env_is_a_directorys(env: RemoteEnv) -> None:
    directory: Directory = env.open_directory("s")
    env.close()
    env.close()
    with directory.open("CURRENT") as file:
        assert file.read(0, 8) == b"MANIFEST"
    directory.close()


# With a cache on disk


def test_a_restart_costs_no_request_for_what_was_read(
    objects: MemoryObjects, tmp_path: Path
) -> None:
    expected = expected_of(objects)
    for requests in (True, False):
        cache = DiskCache(tmp_path)
        env = RemoteEnv(objects, cache, expected=expected)
        objects.forget_requests()
        with open_db(env, lru_cache_size=0) as db:
            assert_holds(db, CONTENT)
        assert (objects.requests > 0) == requests
        assert (env.counters.page_misses > 0) == requests
        assert env.counters.page_hits > 0
        env.close()
        cache.check()
        cache.close()


@pytest.mark.parametrize("known", ["expected", "meta", "listing"])
def test_an_overwritten_database_has_pages_of_its_own(
    objects: MemoryObjects, tmp_path: Path, known: str
) -> None:
    """Of the same names and sizes: only the values differ."""
    other = {key: value.replace(b"value", b"VALUE") for key, value in CONTENT.items()}
    cache = DiskCache(tmp_path)
    for content in (CONTENT, other, CONTENT):
        local = build(content, max_file_size=64 << 10, write_buffer_size=64 << 10)
        upload(local, "db", objects, "s", meta=Options())
        if known == "listing":
            without_meta(objects)
        expected = expected_of(objects) if known == "expected" else None
        env = RemoteEnv(objects, cache, expected=expected)
        with open_db(env, lru_cache_size=0) as db:
            assert list(db) == sorted(content.items())
        env.close()
    cache.close()


def test_copies_of_an_expected_object_share_pages(objects: MemoryObjects, tmp_path: Path) -> None:
    for name in list(objects.objects):
        objects.put(f"copy/{name[2:]}", objects.objects[name])
    cache = DiskCache(tmp_path)
    env = RemoteEnv(objects, cache, expected=expected_of(objects))
    with open_db(env) as db:
        list(db)
    objects.forget_requests()
    with open_db(env, "copy") as db:
        assert list(db) == sorted(CONTENT.items())
    assert objects.requests == 0
    env.close()
    cache.close()


@pytest.mark.parametrize("capacity", [None, 100_000, 1 << 20])
def test_threads_get_right_answers_from_a_network_that_fails(
    objects: MemoryObjects, tmp_path: Path, capacity: int | None
) -> None:
    """Each call gives what was written, or raises; with a cache that evicts, too."""
    keys = sorted(CONTENT)
    cache = None if capacity is None else DiskCache(tmp_path, capacity)
    env = RemoteEnv(objects, cache)
    chance = random.Random(11)
    failed: list[str] = []
    wrong: list[object] = []

    def fail(kind: str, name: str) -> None:
        if chance.random() < 0.05:
            raise OSError(errno.ECONNRESET, "reset", objects.url_of(name))

    def work(db: DB, seed: int) -> None:
        own = random.Random(seed)
        for _ in range(40):
            at = own.randrange(len(keys))
            try:
                if db.get(keys[at]) != CONTENT[keys[at]]:
                    wrong.append(keys[at])
                reverse = own.random() < 0.5
                bound = {"stop": keys[at]} if reverse else {"start": keys[at]}
                pairs = itertools.islice(
                    db.iterator(reverse=reverse, **bound), own.choice([5, 900])
                )
                found = list(pairs)
            except IOError as error:
                failed.append(str(error))
                continue
            low = keys[max(0, at - len(found)) : at][::-1]
            expected = low if reverse else keys[at : at + len(found)]
            if found != [(key, CONTENT[key]) for key in expected]:
                wrong.append((keys[at], reverse, len(found)))

    with open_db(env, lru_cache_size=0) as db:
        objects.hook = fail
        assert run_threads(*[partial(work, db, seed) for seed in range(4)]) == []
        objects.hook = lambda kind, name: None
        assert wrong == []
        assert failed or capacity == 1 << 20  # which holds all pages after a few requests
        assert list(db) == [(key, CONTENT[key]) for key in keys]
    env.close()
    if cache is not None:
        assert cache.hits > 0
        cache.check()
        cache.close()
