"""``lsmkv doctor`` of stores: every broken one is named, and no sound one."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import lsm
from stores import flip, log_of, put_numbered

import lsmkv
import lsmkv.bulk
from lsmkv.indexeddb import IndexedDBComparator
from lsmkv.tools.doctor.stored import examine_store

SMALL: dict[str, Any] = {"block_size": 512, "compression": None}
DATA = Path(__file__).parents[2] / "data"


def fill(path: Path, **options: Any) -> None:
    """Three tables on two levels, a deletion, and forty writes in the log."""
    with lsmkv.DB(path, create_if_missing=True, **SMALL | options) as db:
        for part in range(3):
            put_numbered(db, b"k%04d", range(part, 120, part + 1), b"%d" % part * 30)
            db.delete(b"k0007")
            db.flush()
        put_numbered(db, b"log%04d", range(40), b"v" * 30)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("doctor") / "store"
    fill(path)
    return path


@pytest.fixture
def store(sound: Path, tmp_path: Path) -> Path:
    """A copy of the sound store."""
    return Path(shutil.copytree(sound, tmp_path / "store"))


def table_of(path: Path, at: int = 0) -> Path:
    return sorted(path.glob("*.ldb"))[at]


def manifest_of(path: Path) -> Path:
    (manifest,) = path.glob("MANIFEST-*")
    return manifest


def change(path: Path, start: float, end: float, data: bytes | None = None) -> None:
    """Replace a part of a file, by default with zeros; the bounds are shares of its length."""
    whole = path.read_bytes()
    first, last = int(start * len(whole)), int(end * len(whole))
    path.write_bytes(whole[:first] + (bytes(last - first) if data is None else data) + whole[last:])


def exchange(path: Path) -> None:
    """Give two tables each other's names."""
    one, other = table_of(path), table_of(path, 1)
    one.rename(path / "kept")
    other.rename(one)
    (path / "kept").rename(other)


def set_log_aside(path: Path) -> None:
    """Open a store whose log is damaged: the opening moves it to ``lost/``."""
    flip(log_of(path), 300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lsmkv.DB(path).close()


BROKEN: dict[str, Callable[[Path], Any]] = {
    "CURRENT is missing": lambda path: (path / "CURRENT").unlink(),
    "CURRENT is empty": lambda path: (path / "CURRENT").write_bytes(b""),
    "CURRENT is garbage": lambda path: (path / "CURRENT").write_bytes(b"\0" * 16),
    "CURRENT names nothing": lambda path: (path / "CURRENT").write_bytes(b"MANIFEST-000099\n"),
    "the MANIFEST is missing": lambda path: manifest_of(path).unlink(),
    "the MANIFEST is empty": lambda path: manifest_of(path).write_bytes(b""),
    "the MANIFEST is zeros": lambda path: change(manifest_of(path), 0, 1),
    "a bit of the MANIFEST": lambda path: flip(manifest_of(path), 20, 1),
    "the MANIFEST is cut": lambda path: change(manifest_of(path), 0.4, 1, b""),
    "a table is missing": lambda path: table_of(path).unlink(),
    "all tables are missing": lambda path: [one.unlink() for one in path.glob("*.ldb")],
    "a table is empty": lambda path: table_of(path).write_bytes(b""),
    "a table is cut": lambda path: change(table_of(path), 0.6, 1, b""),
    "a table is zeros": lambda path: change(table_of(path), 0, 1),
    "a table has more bytes": lambda path: change(table_of(path), 1, 1, b"more"),
    "a data block": lambda path: flip(table_of(path), 100),
    "an index or filter block": lambda path: flip(table_of(path), -100),
    "a footer": lambda path: change(table_of(path), 0.99, 1),
    "two tables exchanged": exchange,
    "a table of another store": lambda path: table_of(path).write_bytes(
        next((DATA / "levels-none").rglob("*.ldb")).read_bytes()
    ),
    "the log is missing": lambda path: log_of(path).unlink(),
    "a bit of the log": lambda path: flip(log_of(path), 700, 1),
    "the first half of the log is zeros": lambda path: change(log_of(path), 0, 0.5),
    "the middle of the log is zeros": lambda path: change(log_of(path), 0.3, 0.7),
    "a log was set aside": set_log_aside,
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_store_is_named(store: Path, kind: str) -> None:
    BROKEN[kind](store)
    found = examine_store(str(store))
    assert found.verdict == "broken"
    assert found.damage


def crashed(path: Path) -> None:
    """A copy of a store that is open, as a kill leaves it, with a torn record at the log's end."""
    with lsmkv.DB(path.with_name("open"), create_if_missing=True, mapped_log=False) as db:
        put_numbered(db, b"k%04d", range(50), b"v" * 30)
        shutil.copytree(path.with_name("open"), path)
    change(log_of(path), 0.99, 1, b"")


def killed(path: Path) -> None:
    """The same with the space that a mapped log reserves, where there is such a log."""
    with lsmkv.DB(path.with_name("open"), create_if_missing=True) as db:
        put_numbered(db, b"k%04d", range(50), b"v" * 30)
        shutil.copytree(path.with_name("open"), path)


def by_leveldb(path: Path) -> None:
    plyvel = pytest.importorskip("plyvel")
    with plyvel.DB(str(path), create_if_missing=True, bloom_filter_bits=10) as db:
        put_numbered(db, b"k%04d", range(500), b"v" * 30)
    with plyvel.DB(str(path)) as db:
        db.put(b"more", b"v")


def shared(path: Path) -> None:
    with lsmkv.SharedDB(path, create_if_missing=True) as db:
        put_numbered(db, b"k%04d", range(50), b"v" * 30)


def checkpoint(path: Path) -> None:
    fill(path.with_name("first"))
    with lsmkv.DB(path.with_name("first")) as db:
        db.checkpoint(path)


def with_old_names(path: Path) -> None:
    fill(path)
    for table in path.glob("*.ldb"):
        table.rename(table.with_suffix(".sst"))


def repaired(path: Path) -> None:
    fill(path)
    (path / "CURRENT").unlink()
    lsmkv.repair_db(path)


def with_reused_log(path: Path) -> None:
    for _ in range(3):
        fill(path, reuse_logs=True)


def compacted(path: Path) -> None:
    fill(path)
    with lsmkv.DB(path) as db:
        db.compact_range()


def only_deletions(path: Path) -> None:
    with lsmkv.DB(path, create_if_missing=True) as db:
        for number in range(50):
            db.delete(b"z%04d" % number)
        db.flush()


SOUND: dict[str, Callable[[Path], None]] = {
    "empty": lambda path: lsmkv.DB(path, create_if_missing=True).close(),
    "LevelDB's": by_leveldb,
    "shared": shared,
    "crashed": crashed,
    "killed": killed,
    "checkpoint": checkpoint,
    "old names": with_old_names,
    "repaired": repaired,
    "reused log": with_reused_log,
    "only deletions": only_deletions,
    "compacted": compacted,
    "no filter": lambda path: fill(path, bloom_filter_bits=0),
    "reverse": lambda path: fill(path, comparator=lsmkv.ReverseBytewiseComparator()),
    "IndexedDB": lambda path: lsmkv.DB(
        path, create_if_missing=True, comparator=IndexedDBComparator()
    ).close(),
    "fuse": lambda path: fill(path, filter_policy=lsmkv.BinaryFusePolicy()),
    "prefixes": lambda path: fill(path, prefix_extractor=3),
    "small log": lambda path: fill(path, write_buffer_size=4096, max_file_size=4096),
    **{
        f"filters per {layout}": lambda path, layout=layout: fill(path, filter_layout=layout)
        for layout in ("block", "table", "both")
    },
    **{
        str(codec): lambda path, codec=codec: fill(path, compression=codec)
        for codec in ("snappy", "zstd", "zlib", "zlib-raw")
    },
}


@pytest.mark.parametrize("kind", SOUND)
def test_a_sound_store_is_called_sound(tmp_path: Path, kind: str) -> None:
    SOUND[kind](tmp_path / "store")
    found = examine_store(str(tmp_path / "store"))
    assert (found.verdict, found.damage, found.possible, found.reason) == ("sound", (), (), "")
    assert ("crashed" in kind) == any("ends at" in remark for remark in found.remarks)


def test_the_command_for_a_broken_store_is_the_last_line(store: Path) -> None:
    for table in store.glob("*.ldb"):
        change(table, 0, 1)
    (store / "CURRENT").unlink()
    done = lsm("doctor", store)
    assert done.status == 3
    lines = done.out.splitlines()
    assert lines[-1] == f"broken: lsmkv rescue {store}"
    assert "  store           broken" in lines
    assert "The store is broken: CURRENT: missing; 0000" in done.out.replace("\n  ", " ")
    assert "All is well" not in done.out
    assert "Stores work here" not in done.out
    plain = json.loads(lsm("doctor", store, "--json").out)
    assert plain["directory"]["store"]["verdict"] == "broken"
    assert plain["directory"]["store"]["damage"][0] == "CURRENT: missing"
    assert f"lsmkv rescue {store}" in plain["problems"][0]["do"]


def test_few_files_are_named_the_worst_first(tmp_path: Path) -> None:
    store = tmp_path / "store"
    fill(store, write_buffer_size=1024, max_file_size=1024)
    tables = sorted(store.glob("*.ldb"))
    assert len(tables) > 6
    for table in tables:
        flip(table, 10)
    change(tables[3], 0, 1)
    found = examine_store(str(store))
    assert len(found.damage) == len(tables)
    assert found.damage[0].startswith(f"{tables[3].name}: ")
    text = " ".join(lsm("doctor", store).out.split())
    named = sum(table.name in text for table in tables)
    assert named == 5
    assert f"and {len(tables) - 5} more, which lsmkv verify" in text


def test_a_sound_store_is_said_to_be_sound(store: Path) -> None:
    done = lsm("doctor", store)
    assert done.status == 0
    assert "  store           sound\n" in done.out
    assert "  3 tables, " in done.out
    assert "; 40 writes in the log" in done.out
    assert "rescue" not in done.out


def test_half_a_log_of_zeros_may_be_lost_writes(store: Path) -> None:
    change(log_of(store), 0.5, 1)
    done = lsm("doctor", store)
    assert done.status == 1
    text = " ".join(done.out.split())
    assert "Writes may be lost: 000" in text
    assert f"lsmkvrescue{store}" in "".join(done.out.split())  # a line may end in a long path
    assert "All is well" not in text


def test_a_remark_is_said_in_a_line(tmp_path: Path) -> None:
    crashed(tmp_path / "store")
    done = lsm("doctor", tmp_path / "store")
    assert done.status == 0
    assert ".log: ends at " in done.out
    assert "All is well" not in done.out


def test_nothing_is_written_into_the_store(store: Path) -> None:
    def state() -> dict[str, tuple[bytes, int]]:
        return {one.name: (one.read_bytes(), one.stat().st_mtime_ns) for one in store.iterdir()}

    flip(table_of(store), 100)
    before = state()
    assert lsm("doctor", store).status == 3
    assert state() == before


def test_a_store_that_is_open_is_surveyed(store: Path) -> None:
    with lsmkv.DB(store) as db:
        db.put(b"k", b"v")
        found = examine_store(str(store))
    assert found.verdict == "sound"
    assert found.open_in is None  # this process


def test_a_folder_of_stores_names_them(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(store.parent)
    for number in range(7):
        shutil.copytree(store, f"profile/my store {number}")
    done = lsm("doctor", ".")
    assert done.status == 0
    text = " ".join(done.out.split())
    assert "No store is in this directory, but 8 stores are below it" in text
    assert "lsmkv doctor 'profile/my store 0'; lsmkv doctor" in text
    assert "All is well" not in text


def test_other_places_are_answered_in_words(store: Path, tmp_path: Path) -> None:
    assert "Not a directory" in lsm("doctor", store / "CURRENT").out
    assert "No such file" in lsm("doctor", tmp_path / "none").out
    (tmp_path / "empty").mkdir()
    assert examine_store(str(tmp_path / "empty")).verdict == ""


def test_the_store_of_another_engine_is_not_called_broken(tmp_path: Path) -> None:
    for name in ("CURRENT", "IDENTITY", "OPTIONS-000007", "MANIFEST-000004", "000009.sst"):
        (tmp_path / name).write_bytes(b"MANIFEST-000004\n")
    done = lsm("doctor", tmp_path)
    assert done.status == 1
    assert "RocksDB" in done.out
    assert "rescue" not in done.out


class ByLength:
    name = "example.ByLength"

    def compare(self, a: bytes, b: bytes) -> int:
        return (len(a), a).__lt__((len(b), b)) * -1 or (len(a), a).__gt__((len(b), b)) * 1


def test_a_store_of_an_unknown_order_is_not_called_broken(tmp_path: Path) -> None:
    lsmkv.DB(tmp_path / "store", create_if_missing=True, comparator=ByLength()).close()
    found = examine_store(str(tmp_path / "store"))
    assert found.verdict == "not checked"
    assert "example.ByLength" in found.reason
    assert "comparator=" in found.advice
    assert lsm("doctor", tmp_path / "store").status == 1


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="everything may be read")
def test_a_store_that_may_not_be_read_is_not_called_broken(store: Path) -> None:
    table_of(store).chmod(0)
    found = examine_store(str(store))
    assert (found.verdict, found.reason) == ("not checked", "Permission denied")


def test_a_shard_set_is_verified(tmp_path: Path) -> None:
    lsmkv.bulk.build([(b"%04d" % n, b"v") for n in range(100)], tmp_path / "set", shards=2)
    found = examine_store(str(tmp_path / "set"))
    assert (found.verdict, found.content) == ("sound", "a shard set, 2 shards, 100 pairs")
    flip(next((tmp_path / "set").rglob("*.ldb")), 10)
    found = examine_store(str(tmp_path / "set"))
    assert found.verdict == "broken"
    assert found.damage[0].startswith("shard ")
