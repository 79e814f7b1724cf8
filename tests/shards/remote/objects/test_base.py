"""The contract of object stores, held against every one of them."""

from __future__ import annotations

import errno
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from s3_servers import S3Server, an_s3_server, s3_options

from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.shards.remote.objects.base import ObjectStore, check_object_name, check_prefix
from lsmkv.shards.remote.objects.local import LocalObjects
from lsmkv.shards.remote.objects.open import open_objects

Open = Callable[[], ObjectStore]
"""Opens one more client of the same place."""

BAD_NAMES = ["", "/", "a/", "/a", "a//b", ".", "a/..", "../a", "a/./b", "nul\0"]
ODD_NAMES = ["with space", "a+b=c&d", "50%", "%41", "ünïcode/日本", "tilde~", "dot.", "...", "#?x"]


@pytest.fixture(scope="module")
def s3_server() -> Iterator[S3Server]:
    with an_s3_server() as server:
        yield server


@pytest.fixture(params=["memory", "disk", "fsspec", "obstore", "S3", "S3 retrying"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    kind = request.param
    if kind == "memory":
        env = MemoryEnv()
        return lambda: LocalObjects(env, "place", create=True)
    if kind == "disk":
        return lambda: LocalObjects(LocalEnv(), str(tmp_path / "place"), create=True)
    if kind == "fsspec":
        pytest.importorskip("fsspec")
        url = f"memory://{uuid.uuid4().hex}/place"
        return lambda: open_objects(url).inner
    pytest.importorskip("obstore")
    if kind == "obstore":
        from obstore.store import MemoryStore

        from lsmkv.shards.remote.objects.obstore_objects import ObstoreObjects
        from lsmkv.shards.remote.objects.obstore_stores import ObstoreStores

        shared = MemoryStore()
        stores = ObstoreStores(lambda _: shared, 1.0)
        return lambda: ObstoreObjects(stores, "memory:///place")
    server: S3Server = request.getfixturevalue("s3_server")
    url = f"s3://{server.new_bucket()}/some/place"
    options = s3_options(f"http://{server.host}:{server.port}")
    if kind == "S3":
        return lambda: open_objects(url, options=options).inner
    return lambda: open_objects(url, options=options)


@pytest.fixture
def store(open_store: Open) -> Iterator[ObjectStore]:
    with open_store() as store:
        yield store


def names(store: ObjectStore, prefix: str = "") -> list[str]:
    return [found.name for found in store.list(prefix)]


@pytest.mark.parametrize("data", [b"", b"content", bytes(range(256)) * 5000])
def test_what_was_put_is_read_back(store: ObjectStore, data: bytes) -> None:
    store.put("a/b/c", data)
    assert store.get("a/b/c") == data
    assert store.get_range("a/b/c", 0, len(data)) == data
    assert [(found.name, found.size) for found in store.list("")] == [("a/b/c", len(data))]


def test_what_was_put_is_there_for_every_client(store: ObjectStore, open_store: Open) -> None:
    with open_store() as other:
        assert names(other) == []
        store.put("a/x", b"1")
        assert (other.get("a/x"), names(other), names(other, "a/")) == (b"1", ["a/x"], ["a/x"])
        other.put_if_absent("b/y", b"2")
        assert names(store) == ["a/x", "b/y"]
        other.delete(["a/x"])
        assert names(store) == ["b/y"]
        with pytest.raises(FileNotFoundError):
            store.get("a/x")


def test_put_replaces(store: ObjectStore) -> None:
    store.put("x", b"the first one")
    assert store.get_range("x", 4, 5) == b"first"
    store.put("x", b"another")
    assert (store.get("x"), store.get_range("x", 4, 5)) == (b"another", b"her")


@pytest.mark.parametrize(
    ("offset", "length", "found"),
    [(0, 3, b"012"), (7, 3, b"789"), (7, 100, b"789"), (10, 1, b""), (500, 7, b""), (3, 0, b"")],
)
def test_a_range_ends_with_the_object(
    store: ObjectStore, offset: int, length: int, found: bytes
) -> None:
    store.put("digits", b"0123456789")
    assert store.get_range("digits", offset, length) == found


def test_a_range_of_an_empty_object_is_empty(store: ObjectStore) -> None:
    store.put("nothing", b"")
    assert store.get_range("nothing", 0, 5) == b""


@pytest.mark.parametrize(("offset", "length"), [(-1, 5), (0, -1), (-1, 0)])
def test_a_negative_range_is_refused(store: ObjectStore, offset: int, length: int) -> None:
    store.put("x", b"0123456789")
    with pytest.raises(ValueError, match="range"):
        store.get_range("x", offset, length)


def test_an_object_that_is_not_there(store: ObjectStore) -> None:
    store.put("a/x", b"1")
    for name in ("nix", "a/nix", "nix/nix", "a", "a/x/y"):
        for call in (store.get, lambda name: store.get_range(name, 0, 5)):
            with pytest.raises(FileNotFoundError) as caught:
                call(name)
            assert caught.value.errno == errno.ENOENT
            assert caught.value.filename == store.url_of(name)


def test_put_if_absent_never_replaces(store: ObjectStore) -> None:
    store.put_if_absent("a/x", b"first")
    store.put("b", b"put")
    for name in ("a/x", "b"):
        with pytest.raises(FileExistsError) as caught:
            store.put_if_absent(name, b"second")
        assert (caught.value.errno, caught.value.filename) == (errno.EEXIST, store.url_of(name))
    assert (store.get("a/x"), store.get("b")) == (b"first", b"put")
    store.delete(["a/x"])
    store.put_if_absent("a/x", b"third")
    assert (store.get("a/x"), names(store)) == (b"third", ["a/x", "b"])


def test_one_of_many_callers_puts(store: ObjectStore, open_store: Open) -> None:
    for turn in range(3):
        name, start, won = f"v/{turn}", threading.Barrier(20), []

        def put(who: int, name: str = name, start: threading.Barrier = start) -> bool:
            with open_store() as own:
                start.wait()
                try:
                    own.put_if_absent(name, b"%d" % who)
                except FileExistsError:
                    return False
                return True

        with ThreadPoolExecutor(20) as pool:
            won = [who for who, success in enumerate(pool.map(put, range(20))) if success]
        assert len(won) == 1
        assert store.get(name) == b"%d" % won[0]
    assert names(store) == [f"v/{turn}" for turn in range(3)]


def test_a_reader_never_sees_part_of_an_object(store: ObjectStore, open_store: Open) -> None:
    contents = {bytes([letter]) * (20_000 + letter * 1000) for letter in b"abcdef"}
    store.put("x", min(contents))
    done = threading.Event()

    def replace() -> None:
        with open_store() as own:
            for _ in range(5):
                for data in contents:
                    own.put("x", data)

    def read() -> int:
        count = 0
        with open_store() as own:
            while not done.is_set():
                assert own.get("x") in contents
                assert own.list("")[0].size in {len(data) for data in contents}
                count += 1
        return count

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            pool.submit(replace).result()
        finally:
            done.set()
        assert sum(reader.result() for reader in readers) > 0


def test_a_listing_has_names_in_order_and_sizes_and_times(store: ObjectStore) -> None:
    before = time.time()
    for at, name in enumerate(("b/2", "a", "b/10", "b/1/x", "c/d/e/f", "ab/1", "b-1")):
        store.put(name, b"." * at)
    found = store.list("")
    assert [(one.name, one.size) for one in found] == [
        *(("a", 1), ("ab/1", 5), ("b-1", 6), ("b/1/x", 3), ("b/10", 2), ("b/2", 0)),
        ("c/d/e/f", 4),
    ]
    for one in found:  # S3 has whole seconds
        assert before - 1.5 <= one.modified <= time.time() + 1.5


def test_a_prefix_is_whole_components(store: ObjectStore) -> None:
    for name in ("b/1/x", "b/2", "bb/3", "a/b/4", "b-"):
        store.put(name, b"")
    assert names(store, "b/") == ["b/1/x", "b/2"]
    assert names(store, "b/1/") == ["b/1/x"]
    assert names(store, "b/2/") == []
    assert names(store, "nix/") == []
    for prefix in ("b", "/", "b//", "b/../", "\0/"):
        with pytest.raises(ValueError, match=r"prefix|name"):
            store.list(prefix)


def test_delete_removes_what_is_there(store: ObjectStore) -> None:
    for name in ("a/1", "a/2", "a/b/3", "c"):
        store.put(name, b"x")
    store.delete(name for name in ("a/1", "nix", "nix/nix", "c", "a/nix"))
    assert names(store) == ["a/2", "a/b/3"]
    store.delete(["a/2", "a/b/3", "a/2"])
    store.delete([])
    assert names(store) == []
    store.put("a/b/4", b"y")
    assert names(store) == ["a/b/4"]


def test_a_directory_is_no_object(store: ObjectStore) -> None:
    store.put("a/b", b"x")
    store.delete(["a"])
    assert names(store) == ["a/b"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_is_plain_components(store: ObjectStore, name: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: store.get(name),
        lambda: store.get_range(name, 0, 1),
        lambda: store.put(name, b""),
        lambda: store.put_if_absent(name, b""),
        lambda: store.delete([name]),
        lambda: check_object_name(name),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="not the name of an object"):
            call()


def test_odd_names(store: ObjectStore) -> None:
    for name in ODD_NAMES:
        store.put_if_absent(name, name.encode())
    assert names(store) == sorted(ODD_NAMES)
    for name in ODD_NAMES:
        assert store.get(name) == name.encode()
        assert store.get_range(name, 1, 2) == name.encode()[1:3]
    store.delete(ODD_NAMES)
    assert names(store) == []


def test_a_second_close_has_no_effect(store: ObjectStore) -> None:
    store.close()
    store.close()


def test_urls_and_prefixes(store: ObjectStore) -> None:
    assert not store.url.endswith("/")
    assert store.url_of("a/b") == f"{store.url}/a/b"
    assert [check_prefix(prefix) for prefix in ("", "a/", "a/b/")] == ["", "a/", "a/b/"]
