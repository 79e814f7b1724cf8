"""Reading a shard set where it lies: answers, requests, versions, damage, closing."""

from __future__ import annotations

import gc
import pickle
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from small_sets import PAIRS, build, requests

import lsmkv
import lsmkv.bulk
import lsmkv.shards
from lsmkv.engine.options import KIB
from lsmkv.shards.remote.objects.local import LocalObjects


def test_every_key_is_found_and_no_other(shards: lsmkv.shards.Shards) -> None:
    rng = random.Random(1)
    for n in rng.sample(range(12_000), 3000):
        key = b"%06d" % n
        assert shards.get(key) == PAIRS.get(key)
        assert (key in shards) == (key in PAIRS)
        assert shards.may_contain(key) or key not in PAIRS
    assert shards.get(b"", b"nothing") == b"nothing"
    assert shards.get(b"\xff") is None
    assert list(shards) == sorted(PAIRS.items())
    assert list(shards.iterator(reverse=True)) == sorted(PAIRS.items(), reverse=True)


@pytest.mark.parametrize("connections", [1, 8])
def test_many_keys_at_once(url: Path, connections: int) -> None:
    rng = random.Random(2)
    keys = [b"%06d" % rng.randrange(12_100) for _ in range(2000)]
    limits = lsmkv.shards.Limits(connections=connections)
    with lsmkv.shards.open(url, limits=limits) as s:
        assert s.multi_get(keys) == [PAIRS.get(key) for key in keys]
        assert s.multi_get([]) == []
        assert s.multi_get(iter([b"000000", bytearray(b"000001")])) == [PAIRS[b"000000"], None]


def test_warming_opens_every_shard(tmp_path: Path) -> None:
    lsmkv.bulk.build(((b"%02d" % n, b"v") for n in range(40)), tmp_path, shards=20)
    with lsmkv.shards.open(tmp_path) as s:
        s.warm()
        assert s.stats().shards_open == s.stats().shards == 20


def test_an_open_shard_holds_no_copy_of_its_meta(url: Path) -> None:
    with lsmkv.shards.open(url, lru_cache_size=0) as s:
        s.warm()
        before = requests(s)
        assert s.get(b"000000") == PAIRS[b"000000"]  # of a table's first block, which META has
        assert requests(s) == before + 1


def test_a_version_that_a_refresh_leaves_behind_keeps_no_threads(tmp_path: Path) -> None:
    def threads() -> list[threading.Thread]:
        named = "lsmkv-fetch-ahead"
        return [one for one in threading.enumerate() if one.name.startswith(named)]

    rng = random.Random(4)
    pairs = {b"%06d" % n: rng.randbytes(1000) for n in range(3000)}
    build(tmp_path, pairs, shards=1, table_bytes=4096 * KIB)
    with lsmkv.shards.open(tmp_path) as s:
        assert list(s) == list(pairs.items())
        scanning = threads()
        assert scanning
        build(tmp_path, pairs)
        assert s.refresh()
        gc.collect()
        for thread in scanning:
            thread.join(30)
            assert not thread.is_alive()


def test_scans_of_absent_prefixes_ask_for_nothing(url: Path) -> None:
    with lsmkv.shards.open(url, prefix_extractor=4) as s:
        s.warm()
        before = requests(s)
        for n in range(200):
            assert list(s.iterator(prefix=b"%04d" % (2000 + n))) == []
        assert requests(s) - before <= 4
        assert list(s.iterator(prefix=b"0042")) == [
            (key, value) for key, value in PAIRS.items() if key.startswith(b"0042")
        ]


def test_a_refresh_takes_the_newest_version(tmp_path: Path) -> None:
    build(tmp_path)
    newer = {**PAIRS, b"000000": b"changed"}
    with lsmkv.shards.open(tmp_path) as s:
        assert not s.refresh()
        iterator = s.iterator()
        assert next(iterator) == (b"000000", PAIRS[b"000000"])
        build(tmp_path, newer)
        assert s.get(b"000000") == PAIRS[b"000000"]
        assert (s.version, s.versions()) == (1, [1, 2])
        assert s.refresh()
        assert (s.version, s.get(b"000000")) == (2, b"changed")
        assert list(iterator) == sorted(PAIRS.items())[1:]
        assert s.refresh(1)
        assert s.get(b"000000") == PAIRS[b"000000"]
        with pytest.raises(lsmkv.NotFoundError):
            s.refresh(7)
        assert s.version == 1


def test_it_is_refreshed_while_others_read(tmp_path: Path) -> None:
    for n in range(3):
        build(tmp_path, dict.fromkeys(list(PAIRS)[:2000], b"%d" % n), shards=2)
    with lsmkv.shards.open(tmp_path) as s:
        stop = threading.Event()

        def read() -> int:
            count = 0
            while not stop.is_set():
                assert s.get(b"000002") in (b"0", b"1", b"2")
                values = {value for _, value in s.iterator(start=b"0010", stop=b"0012")}
                assert len(values) == 1
                count += 1
            return count

        with ThreadPoolExecutor(3) as pool:
            readers = [pool.submit(read) for _ in range(3)]
            try:
                for n in range(60):
                    s.refresh(n % 3 + 1)
            finally:
                stop.set()
            assert sum(reader.result() for reader in readers) > 3


def read_some(s: lsmkv.shards.Shards) -> None:
    for key in list(PAIRS)[:1000:7]:
        assert s.get(key) == PAIRS[key]


def test_damage_is_named(tmp_path: Path) -> None:
    build(tmp_path)
    with lsmkv.shards.open(tmp_path) as s:
        entry = s.document.shards[0]
    table = tmp_path / entry.path / next(f.name for f in entry.files if f.name.endswith(".ldb"))
    whole = table.read_bytes()
    meta = tmp_path / entry.path / "META"
    meta_bytes = meta.read_bytes()

    def fails(match: str) -> None:
        with lsmkv.shards.open(tmp_path, lru_cache_size=0) as s:
            with pytest.raises(lsmkv.CorruptionError, match=match):
                read_some(s)
            assert s.get(b"011998") == PAIRS[b"011998"]  # in another shard

    table.write_bytes(whole[:5000])
    fails(table.name)
    table.write_bytes(whole[:5000] + bytes([whole[5000] ^ 4]) + whole[5001:])
    fails(table.name)
    table.unlink()
    fails(table.name)
    table.write_bytes(whole)
    meta.write_bytes(meta_bytes[:100] + bytes([meta_bytes[100] ^ 4]) + meta_bytes[101:])
    fails("META")
    meta.write_bytes(meta_bytes[:-1])
    fails("META")
    meta.unlink()  # which only repeats bytes of the files
    with lsmkv.shards.open(tmp_path) as s:
        assert dict(s) == PAIRS
    meta.write_bytes(meta_bytes)
    with lsmkv.shards.open(tmp_path) as s:
        assert dict(s) == PAIRS


def test_nothing_there(tmp_path: Path) -> None:
    for where in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(lsmkv.NotFoundError):
            lsmkv.shards.open(where)
    build(tmp_path)
    with pytest.raises(lsmkv.NotFoundError):
        lsmkv.shards.open(tmp_path, version=2)


def test_no_pairs(tmp_path: Path) -> None:
    lsmkv.bulk.build([], tmp_path)
    with lsmkv.shards.open(tmp_path) as s:
        assert (list(s), s.get(b"k"), s.multi_get([b"k"]), s.explain(b"k").requests) == (
            [],
            None,
            [None],
            0,
        )


def test_it_is_pickled_by_its_url_and_version(tmp_path: Path) -> None:
    build(tmp_path)
    with lsmkv.shards.open(tmp_path, cache_dir=tmp_path / "cache") as s:
        sent = pickle.dumps(s)
        build(tmp_path, {b"k": b"v"})
        with pickle.loads(sent) as there:
            assert (there.version, there.get(b"000002")) == (1, PAIRS[b"000002"])
            assert there.stats().cache is not None


def test_it_is_unpickled_in_another_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "set")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with lsmkv.shards.open("set", cache_dir="cache") as s:
        sent = pickle.dumps(s)
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pickle.loads(sent) as there:
        assert there.get(b"000002") == PAIRS[b"000002"]
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_refresh_that_waits_for_the_store_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path)
    found = LocalObjects.list
    asked, answered = threading.Event(), threading.Event()

    def wait(self: LocalObjects, prefix: str) -> Any:
        asked.set()
        assert answered.wait(60)
        return found(self, prefix)

    with ThreadPoolExecutor(1) as threads, lsmkv.shards.open(tmp_path) as s:
        monkeypatch.setattr(LocalObjects, "list", wait)
        refreshed = threads.submit(s.refresh)
        try:
            assert asked.wait(60)
            keys = list(PAIRS)[::500]
            reading = threading.Thread(target=lambda: (s.warm(), s.multi_get(keys), s.close()))
            reading.start()
            reading.join(30)
            assert s.closed
        finally:
            answered.set()
        with pytest.raises(lsmkv.ClosedError):
            refreshed.result()


def test_closed(url: Path) -> None:
    s = lsmkv.shards.open(url)
    iterator = s.iterator()
    next(iterator)
    s.multi_get([b"000000", b"000002"])
    s.close()
    s.close()
    assert s.closed
    assert "closed" in repr(s)
    uses: list[Any] = [
        lambda: s.get(b"k"),
        lambda: s.multi_get([b"k"]),
        lambda: b"k" in s,
        lambda: s.may_contain(b"k"),
        s.iterator,
        lambda: s.explain(b"k"),
        s.stats,
        s.refresh,
        s.versions,
        s.warm,
        lambda: s.document,
        lambda: list(iterator),
    ]
    for use in uses:
        with pytest.raises(lsmkv.ClosedError):
            use()


def test_wrong_types(shards: lsmkv.shards.Shards) -> None:
    with pytest.raises(TypeError):
        shards.get("text")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        shards.multi_get(["text"])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        lsmkv.shards.open(7)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        lsmkv.shards.open("x", block_size=5)  # type: ignore[call-arg]
