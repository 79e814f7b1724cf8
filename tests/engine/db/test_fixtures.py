"""Databases that lsmkv had no part in: ``tests/data``, whose README says what each one is."""

from __future__ import annotations

import hashlib
import pathlib
import runpy
import shutil
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

import lsmkv
from lsmkv import DB

try:
    import plyvel
except ImportError:
    plyvel = None

DATA = pathlib.Path(__file__).resolve().parents[2] / "data"
CONTENTS: dict[str, dict[bytes, bytes]] = runpy.run_path(str(DATA / "contents.py"))["CONTENTS"]
SCRIPT: dict[str, Any] = runpy.run_path(str(DATA / "make_fixtures.py"))
FILES_AT = {
    "levels-snappy-bloom": [2, 1, 1],
    "levels-none": [2, 1, 1],
    "none-bloom": [0, 0, 1],
    "snappy": [0, 0, 1],
    "reverse-comparator": [0, 1, 1],
    "unflushed-log": [0, 0, 1],
    "old-sst": [0, 0, 1],
    "hand-zstd": [0, 1, 0],
    "hand-mojang-zlib": [0, 1, 0],
    "hand-mojang-deflate": [0, 1, 0],
    "hand-unknown-codec": [0, 1, 0],
}
BY_LEVELDB = [name for name in FILES_AT if not name.startswith("hand-")]
WITH_FILTERS = {"levels-snappy-bloom", "none-bloom", "unflushed-log", "old-sst"}
UNKNOWN = "hand-unknown-codec"
SOUND = [name for name in FILES_AT if name != UNKNOWN]
ABSENT = [b"key%05dx" % n for n in range(0, 180, 2)]

every_sound = pytest.mark.parametrize("name", SOUND)


def reverse(a: bytes, b: bytes) -> int:
    return (a < b) - (a > b)


def options_of(name: str) -> dict[str, Any]:
    if name == "reverse-comparator":
        return {"comparator": reverse, "comparator_name": "test.reverse"}
    return {}


def in_order(name: str, state: dict[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    return sorted(state.items(), reverse=name == "reverse-comparator")


def fingerprint(path: pathlib.Path) -> dict[str, str]:
    """A hash of every file."""
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(path.iterdir())
    }


def check(db: Any, entries: list[tuple[bytes, bytes]], every: int = 1) -> None:
    """By all ways of reading that plyvel has too; Gets of one key in ``every``."""
    assert list(db.iterator()) == entries
    assert list(db.iterator(reverse=True)) == entries[::-1]
    middle = entries[len(entries) // 3 : len(entries) // 2]
    start, stop = middle[0][0], entries[len(entries) // 2][0]
    assert list(db.iterator(start=start, stop=stop)) == middle
    assert list(db.iterator(start=start, stop=stop, reverse=True)) == middle[::-1]
    for key, value in entries[::every]:
        assert db.get(key) == value
    for key in ABSENT[::every]:
        assert db.get(key) is None


def check_by_leveldb(
    name: str, path: pathlib.Path, state: dict[bytes, bytes], compact: bool
) -> None:
    """LevelDB reads the copy of the fixture ``name`` that lsmkv has changed."""
    entries = in_order(name, state)
    options = options_of(name)
    every = 1
    if options:
        options["comparator_name"] = options["comparator_name"].encode()
        # Wasted reads start a compaction in LevelDB's thread.  If it is running when plyvel closes
        # the database, it waits for the lock of the interpreter, which close() holds.
        every = 12
    with closing(plyvel.DB(str(path), paranoid_checks=True, **options)) as db:
        check(db, entries, every)
        if compact:
            db.compact_range(start=entries[0][0], stop=entries[-1][0])
            check(db, entries, every)


@pytest.fixture
def copy_of(tmp_path: pathlib.Path) -> Callable[[str], pathlib.Path]:
    """Makes a copy of a database that can be written to."""

    def copy(name: str) -> pathlib.Path:
        return pathlib.Path(shutil.copytree(DATA / name, tmp_path / name))

    return copy


def test_all_of_them_are_there() -> None:
    assert set(CONTENTS) == set(FILES_AT)
    assert len(BY_LEVELDB) == 7
    for name, state in CONTENTS.items():
        assert len(state) > 100
        names = {file.name for file in (DATA / name).iterdir() if file.stat().st_size > 0}
        assert "CURRENT" in names
        assert any(file.endswith((".ldb", ".sst")) for file in names)
        assert not names & {"LOG", "LOCK"}
    assert list((DATA / "old-sst").glob("*.sst"))
    assert not list((DATA / "old-sst").glob("*.ldb"))
    assert (DATA / "unflushed-log" / "000007.log").stat().st_size > 40_000


@every_sound
def test_reading_only(name: str) -> None:
    before = fingerprint(DATA / name)
    entries = in_order(name, CONTENTS[name])
    with DB(DATA / name, read_only=True, lru_cache_size=0, **options_of(name)) as db:
        assert [level.files for level in db.stats().levels[:3]] == FILES_AT[name]
        check(db, entries)
        assert db.multi_get([key for key, _ in entries]) == [value for _, value in entries]
        assert db.verify() == []
        db.check()
    assert fingerprint(DATA / name) == before


@every_sound
def test_filters(name: str) -> None:
    """LevelDB's filters are found, and say no; without them, a block is read."""
    with DB(DATA / name, read_only=True, lru_cache_size=0, **options_of(name)) as db:
        before = db.stats()
        for key in ABSENT:
            assert db.get(key) is None
        asked = db.stats() - before
    if name in WITH_FILTERS:
        assert asked.filters_asked >= len(ABSENT)
        assert asked.filter_negatives >= 0.9 * asked.filters_asked
        assert asked.blocks_read == asked.filters_asked - asked.filter_negatives
    else:
        assert asked.filters_asked == 0
        assert asked.blocks_read >= len(ABSENT)


@every_sound
def test_writing(name: str, copy_of: Callable[[str], pathlib.Path]) -> None:
    """Open, write, compact, open again; then LevelDB reads it, where it is there."""
    path = copy_of(name)
    options = options_of(name) | {"compression": "snappy"}  # else that of the store's tables
    state = dict(CONTENTS[name])
    with DB(path, paranoid_checks=True, **options) as db:
        db.check()
        check(db, in_order(name, state))
        for n, key in enumerate([*sorted(state)[::3], b"\0\0", b"\xff\xff\xff"]):
            state[key] = b"by lsmkv %d" % n
            db.put(key, state[key])
        for key in sorted(state)[1::7]:
            db.delete(key)
            del state[key]
        check(db, in_order(name, state))
    with DB(path, paranoid_checks=True, **options) as db:
        db.check()
        check(db, in_order(name, state))
        db.compact_range()
        check(db, in_order(name, state))
        db.check()
        state[b"key"] = b"last"
        db.put(b"key", b"last")
    with DB(path, read_only=True, **options) as db:
        check(db, in_order(name, state))
    if plyvel is not None:  # every block is rewritten, and none in a foreign codec
        check_by_leveldb(name, path, state, compact=True)


@pytest.mark.parametrize("name", BY_LEVELDB)
def test_leveldb_reads_what_lsmkv_added(name: str, copy_of: Callable[[str], pathlib.Path]) -> None:
    """Its own tables and log, and lsmkv's beside them."""
    pytest.importorskip("plyvel")
    path = copy_of(name)
    options = options_of(name)
    state = dict(CONTENTS[name])
    with DB(path, seek_compaction=False, **options) as db:
        for key in sorted(state)[::5]:
            db.put(key, b"beside")
            state[key] = b"beside"
        db.flush()
        for key in sorted(state)[::6]:
            db.delete(key)
            del state[key]
    assert fingerprint(path).items() & fingerprint(DATA / name).items()  # some are LevelDB's still
    check_by_leveldb(name, path, state, compact=False)


@pytest.mark.parametrize("name", FILES_AT)
def test_the_script_writes_these_bytes(name: str, tmp_path: pathlib.Path) -> None:
    if name in BY_LEVELDB and getattr(plyvel, "__version__", None) != "1.5.1":
        pytest.skip("another LevelDB than the one that wrote them")
    assert fingerprint(SCRIPT["make"](name, tmp_path)) == fingerprint(DATA / name)


def test_the_hands_know_the_format(tmp_path: pathlib.Path) -> None:
    """A table put together in the same way, but plain, is one that LevelDB reads."""
    pytest.importorskip("plyvel")
    plain = SCRIPT["plain"]
    SCRIPT["by_hand"](tmp_path / "plain", [plain], plain)
    with closing(plyvel.DB(str(tmp_path / "plain"), paranoid_checks=True)) as db:
        check(db, sorted(CONTENTS["hand-zstd"].items()))


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    ("name", "given", "ours", "theirs"),
    [
        ("reverse-comparator", {}, "leveldb.BytewiseComparator", "test.reverse"),
        ("reverse-comparator", {"comparator_name": "my.own"}, "my.own", "test.reverse"),
        ("snappy", {"comparator_name": "my.own"}, "my.own", "leveldb.BytewiseComparator"),
    ],
)
def test_another_comparator(
    copy_of: Callable[[str], pathlib.Path],
    name: str,
    given: dict[str, Any],
    ours: str,
    theirs: str,
    read_only: bool,
) -> None:
    path = copy_of(name)
    options = {"comparator": reverse, **given} if given else {}
    with pytest.raises(lsmkv.ComparatorMismatchError) as caught:
        DB(path, read_only=read_only, **options)
    assert f"{ours!r}" in str(caught.value)
    assert f"{theirs!r}" in str(caught.value)
    kept = fingerprint(DATA / name)
    assert {file: fingerprint(path)[file] for file in kept} == kept
    with DB(path, **options_of(name)) as db:
        assert dict(db) == CONTENTS[name]


# A codec that nobody knows is no damage

ENTRIES = sorted(CONTENTS[UNKNOWN].items())
UNREADABLE = [key for at, (key, _) in enumerate(ENTRIES) if at // 20 % 4 == 1]
"""Each fourth block of 20 entries."""


def is_reported(caught: pytest.ExceptionInfo[BaseException], path: pathlib.Path) -> None:
    assert type(caught.value) is lsmkv.UnsupportedCompressionError
    assert "compression type 9" in str(caught.value)
    assert str(path / "000005.ldb") in str(caught.value)
    assert "corrupt" not in str(caught.value).lower()


def test_an_unknown_codec() -> None:
    path = DATA / UNKNOWN
    before = fingerprint(path)
    assert 20 < len(UNREADABLE) < len(ENTRIES) / 2
    with DB(path, read_only=True) as db:
        for key, value in ENTRIES:
            if key not in UNREADABLE:
                assert db.get(key) == value
        attempts: list[Callable[[], object]] = [
            lambda: list(db),
            lambda: list(db.iterator(reverse=True)),
            lambda: list(db.iterator(start=UNREADABLE[3], include_value=False)),
            lambda: db.multi_get([ENTRIES[0][0], UNREADABLE[0]]),
            lambda: UNREADABLE[0] in db,
            db.verify,
            db.check,
            lambda: db.explain(UNREADABLE[-1]),
        ]
        attempts += [lambda key=key: db.get(key) for key in UNREADABLE]
        for attempt in attempts:
            with pytest.raises(lsmkv.UnsupportedCompressionError) as caught:
                attempt()
            is_reported(caught, path)
        # What lies in the first block needs no other.
        assert list(db.iterator(stop=ENTRIES[15][0])) == ENTRIES[:15]
    assert fingerprint(path) == before


def test_an_unknown_codec_stops_a_compaction(copy_of: Callable[[str], pathlib.Path]) -> None:
    """The error is reported, the table stays as it is, and the rest remains readable."""
    path = copy_of(UNKNOWN)
    table = fingerprint(path)["000005.ldb"]
    new = {ENTRIES[0][0]: b"new", ENTRIES[-1][0]: b"new"}
    with DB(path) as db:
        for key, value in new.items():
            db.put(key, value)
        attempts: list[Callable[[], object]] = [db.compact_range, lambda: db.put(b"k", b"v")]
        for attempt in attempts:
            with pytest.raises(lsmkv.UnsupportedCompressionError) as caught:
                attempt()
            is_reported(caught, path)
    with DB(path) as db:
        for key, value in ENTRIES:
            if key not in UNREADABLE:
                assert db.get(key) == new.get(key, value)
    assert fingerprint(path)["000005.ldb"] == table


def test_an_index_in_an_unknown_codec(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "index"
    SCRIPT["by_hand"](path, [SCRIPT["plain"]], SCRIPT["unknown"])
    with DB(path, read_only=True) as db:
        with pytest.raises(lsmkv.UnsupportedCompressionError) as caught:
            db.get(ENTRIES[0][0])
        is_reported(caught, path)
    with DB(path) as db:
        attempts: list[Callable[[], object]] = [
            lambda: db.get(ENTRIES[0][0]),
            lambda: list(db),
            db.verify,
        ]
        for attempt in attempts:
            with pytest.raises(lsmkv.UnsupportedCompressionError) as caught:
                attempt()
            is_reported(caught, path)


def test_a_damaged_block_of_an_unknown_codec(copy_of: Callable[[str], pathlib.Path]) -> None:
    """The checksum comes first: this is damage."""
    path = copy_of(UNKNOWN)
    with pytest.raises(lsmkv.UnsupportedCompressionError) as caught, DB(path) as db:
        db.get(UNREADABLE[0])
    offset = int(str(caught.value).rpartition("offset ")[2].rstrip(")"))
    table = bytearray((path / "000005.ldb").read_bytes())
    table[offset + 10] ^= 1
    (path / "000005.ldb").write_bytes(table)
    with DB(path) as db, pytest.raises(lsmkv.CorruptionError, match="checksum") as damaged:
        db.get(UNREADABLE[0])
    assert damaged.value.offset == offset


# A directory of another engine


def by_rocksdb(path: pathlib.Path) -> None:
    rocksdict = pytest.importorskip("rocksdict")
    db = rocksdict.Rdict(str(path), rocksdict.Options(raw_mode=True))
    for n in range(100):
        db[b"%d" % n] = b"value"
    db.flush()
    db.close()


def like_rocksdb(path: pathlib.Path) -> None:
    """Its names, and a MANIFEST with a field that LevelDB does not know."""
    masked, varint, string = SCRIPT["masked"], SCRIPT["varint"], SCRIPT["string"]
    edit = varint(1) + string(b"leveldb.BytewiseComparator") + varint(200) + varint(1)
    record = masked(b"\x01" + edit) + len(edit).to_bytes(2, "little") + b"\x01" + edit
    path.mkdir()
    for name, content in {
        "MANIFEST-000005": record,
        "CURRENT": b"MANIFEST-000005\n",
        "IDENTITY": b"5c0a8f1e-0000-4000-8000-000000000000",
        "OPTIONS-000007": b"[Version]\n  rocksdb_version=9.0.0\n",
        "000009.sst": b"a block-based table",
        "000004.log": b"",
        "LOG": b"what RocksDB did\n",
        "LOCK": b"",
    }.items():
        (path / name).write_bytes(content)


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("maker", [by_rocksdb, like_rocksdb])
def test_rocksdbs_directory(
    tmp_path: pathlib.Path, maker: Callable[[pathlib.Path], None], read_only: bool
) -> None:
    path = tmp_path / "rocks"
    maker(path)
    before = fingerprint(path)
    assert "IDENTITY" in before
    with pytest.raises(lsmkv.ForeignFormatError, match="RocksDB") as caught:
        DB(path, read_only=read_only)
    assert str(path) in str(caught.value)
    with pytest.raises(lsmkv.ForeignFormatError, match="RocksDB"):
        DB(path, read_only=read_only, create_if_missing=not read_only)
    assert fingerprint(path) == before
