"""lsmkv and C++ LevelDB (as plyvel brings it) on the same directories."""

from __future__ import annotations

import pathlib
import random
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from numbered import changed, put_all
from processes import run_python

import lsmkv
from lsmkv import DB, BinaryFusePolicy, Bloom64Policy, LocalEnv, WriteBatch
from lsmkv.engine.format.batch import decode_batch
from lsmkv.engine.format.log import LogReader

plyvel = pytest.importorskip("plyvel")

State = dict[bytes, bytes]
Change = tuple[bytes, bytes | None]


def changes_of(seed: int, count: int, keys: int = 400, value_size: int = 60) -> list[Change]:
    """Puts, overwrites and deletions; empty keys and values among them."""
    rng = random.Random(seed)
    names = [b"", b"\0", b"\xff", b"\xff\xff"] + [b"key%05d" % n for n in range(keys)]
    changes: list[Change] = []
    for _ in range(count):
        key = rng.choice(names)
        deleted = rng.random() < 0.25
        changes.append((key, None if deleted else rng.randbytes(rng.randrange(value_size))))
    return changes


def check(db: Any, state: State, absent: int = 50) -> None:
    """By all ways of reading that both have."""
    entries = sorted(state.items())
    assert list(db.iterator()) == entries
    assert list(db.iterator(reverse=True)) == entries[::-1]
    for key, value in entries:
        assert db.get(key) == value
    for n in range(absent):
        assert db.get(b"key%05dx" % (n * 7)) is None
    middle = [entry for entry in entries if b"key00100" <= entry[0] < b"key00200"]
    assert list(db.iterator(start=b"key00100", stop=b"key00200")) == middle


def tables(path: pathlib.Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(path.glob("*.ldb"))}


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "db"


def open_leveldb(path: pathlib.Path, **options: Any) -> Any:
    """plyvel's DB, with checksums verified, as a context manager."""
    return closing(plyvel.DB(str(path), paranoid_checks=True, **options))


@contextmanager
def opened(engine: str, path: pathlib.Path, **options: Any) -> Iterator[Any]:
    """The store by either engine, checked at its end."""
    if engine == "leveldb":
        with open_leveldb(path, create_if_missing=True, **options) as db:
            yield db
    else:
        with DB(path, create_if_missing=True, paranoid_checks=True, **options) as db:
            yield db
            db.check()


@pytest.mark.parametrize("writer", ["lsmkv", "leveldb"])
@pytest.mark.parametrize("step", ["log only", "flushed", "compacted", "both"])
@pytest.mark.parametrize(
    ("compression", "bits"), [("snappy", 10), (None, 10), ("snappy", 0), (None, 1)]
)
def test_each_reads_what_the_other_wrote(
    path: pathlib.Path, writer: str, step: str, compression: Any, bits: int
) -> None:
    changes = changes_of(1, 1500)
    least = 16_000 if writer == "lsmkv" else 65536
    with opened(
        writer, path, compression=compression, bloom_filter_bits=bits,
        write_buffer_size=1 << 20 if step == "log only" else least,
        max_file_size=20_000 if writer == "lsmkv" else 1 << 20,
    ) as db:  # fmt: skip
        put_all(db, changes[:1000])
        if step == "flushed" and writer == "lsmkv":
            db.flush()
        elif step in ("compacted", "both"):
            db.compact_range()
        if step in ("log only", "both"):
            put_all(db, changes[1000:1250])
            with db.write_batch() as batch:
                put_all(batch, changes[1250:])
        else:
            changes = changes[:1000]
    state = changed({}, changes)
    readers = ["leveldb", "lsmkv"] if writer == "lsmkv" else ["lsmkv", "leveldb"]
    for reader in readers:
        with opened(reader, path, bloom_filter_bits=bits, lru_cache_size=0) as db:
            check(db, state)
            if [reader, writer, step, bits] == ["lsmkv", "leveldb", "compacted", 10]:
                stats = db.stats()
                assert stats.filters_asked > 200  # it found LevelDB's filters, and they are right
                assert stats.filter_negatives >= 45
            db.compact_range()
            check(db, state)


FILTERS: list[dict[str, Any]] = [
    *({"filter_layout": layout} for layout in ("block", "table", "both")),
    {"filter_policy": Bloom64Policy(10), "filter_layout": "block"},
    {"filter_policy": Bloom64Policy(10), "filter_layout": "both", "prefix_extractor": 6},
    {"filter_policy": BinaryFusePolicy(), "prefix_extractor": b"0"},
    {"bloom_filter_bits": "auto:10"},
    {"bloom_filter_bits": [14, 7, 0], "filter_last_level": False},
]


@pytest.mark.parametrize("options", FILTERS, ids=str)
def test_leveldb_reads_beside_filters_that_it_does_not_know(
    path: pathlib.Path, options: dict[str, Any]
) -> None:
    changes = changes_of(3, 3000, keys=3000)
    small = {"write_buffer_size": 1 << 16, "max_file_size": 1 << 18}
    with DB(path, create_if_missing=True, **small, **options) as db:
        put_all(db, changes)
        db.compact_range()
        assert len(db.tables()) == 1
    state = changed({}, changes)
    assert len(state) > 1000  # else there is no fuse filter
    with open_leveldb(path, bloom_filter_bits=10) as db:
        check(db, state)


@pytest.mark.parametrize("bits", [0, 10])
def test_uncompressed_tables_are_byte_identical(tmp_path: pathlib.Path, bits: int) -> None:
    """The same puts in the same order, then a flush: the same file."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    rng = random.Random(5)
    puts: list[Change] = [
        (b"%010d" % n, rng.randbytes(rng.randrange(200))) for n in rng.sample(range(10**6), 3000)
    ]
    puts += [(b"", b"empty key"), (b"\xff\xff", b""), (b"x" * 5000, b"y" * 70000)]
    options: dict[str, Any] = {"compression": None, "bloom_filter_bits": bits}
    with DB(ours, create_if_missing=True, **options) as db:
        put_all(db, puts)
        db.compact_range()
    with open_leveldb(theirs, create_if_missing=True, **options) as db:
        put_all(db, puts)
        db.compact_range()
    our_files, their_files = list(tables(ours).values()), list(tables(theirs).values())
    assert len(our_files) == len(their_files) == 1
    assert len(our_files[0]) > 300_000
    assert our_files == their_files


@pytest.mark.parametrize(
    "options",
    [
        {"block_size": 1500},
        {"block_size": 1 << 16, "block_restart_interval": 1},
        {"block_restart_interval": 3},
        {"max_file_size": 1 << 20},
    ],
)
def test_byte_identical_under_other_settings(
    tmp_path: pathlib.Path, options: dict[str, Any]
) -> None:
    """Overwrites and deletions too; and where one file ends and the next begins.

    What a flush keeps may differ, so each engine merges all that it has once more.
    """
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    changes = changes_of(6, 12_000, keys=9000, value_size=500)
    options = {"compression": None, "bloom_filter_bits": 10, "create_if_missing": True, **options}
    with DB(ours, **options) as db:
        for part in (changes[:6000], changes[6000:]):
            put_all(db, part)
            db.compact_range()
        assert dict(db) == changed({}, changes)
    with open_leveldb(theirs, **options) as db:
        for part in (changes[:6000], changes[6000:]):
            put_all(db, part)
            db.compact_range()
    assert list(tables(ours).values()) == list(tables(theirs).values())
    assert (len(tables(ours)) > 1) == ("max_file_size" in options)


def test_tables_named_sst(path: pathlib.Path) -> None:
    changes = changes_of(7, 500)
    state = changed({}, changes)
    with open_leveldb(path, create_if_missing=True, bloom_filter_bits=10) as db:
        put_all(db, changes)
        db.compact_range()
    for file in path.glob("*.ldb"):
        file.rename(file.with_suffix(".sst"))
    with DB(path) as db:
        check(db, state)
        db.check()
        assert list(path.glob("*.sst"))  # in use: kept
        db.put(b"more", b"1")
        db.compact_range()
    with DB(path) as db:
        check(db, {**state, b"more": b"1"})
    with open_leveldb(path) as db:
        check(db, {**state, b"more": b"1"})


def test_leveldb_repairs_what_lsmkv_wrote(path: pathlib.Path) -> None:
    """It rebuilds a MANIFEST from the tables and logs alone; LevelDB's repair takes every table."""
    state = {b"key%05d" % n: b"%d" % n for n in range(500)}
    with DB(path, create_if_missing=True) as db:
        for n, (key, value) in enumerate(state.items()):
            db.put(key, value)
            if n == 300:
                db.flush()
    for file in [*path.glob("MANIFEST-*"), path / "CURRENT"]:
        file.unlink()
    with pytest.raises(lsmkv.CorruptionError, match="CURRENT is missing"):
        DB(path)
    plyvel.repair_db(str(path))
    with DB(path) as db:
        check(db, state)
        db.check()
        db.put(b"k", b"v")
    with open_leveldb(path) as db:
        check(db, {**state, b"k": b"v"})


def test_the_names_of_comparators(tmp_path: pathlib.Path) -> None:
    def compare(a: bytes, b: bytes) -> int:
        return (a < b) - (a > b)

    changes = changes_of(8, 600)
    state = changed({}, changes)
    for first in ("lsmkv", "leveldb"):
        path = tmp_path / first
        options: dict[str, Any] = {"comparator": compare, "create_if_missing": True}
        if first == "lsmkv":
            written = DB(path, comparator_name="test.reverse", **options)
        else:
            written = open_leveldb(path, comparator_name=b"test.reverse", **options)
        with written as db:
            put_all(db, changes)
            db.compact_range()
        expected = sorted(state.items(), reverse=True)
        with DB(path, comparator_name="test.reverse", **options) as db:
            assert list(db) == expected
            db.check()
        with open_leveldb(path, comparator_name=b"test.reverse", **options) as db:
            assert list(db.iterator()) == expected
        with pytest.raises(lsmkv.ComparatorMismatchError, match=r"test\.reverse"):
            DB(path)


def test_leveldbs_snapshots_leave_versions_that_lsmkv_passes_over(path: pathlib.Path) -> None:
    """Many versions of one key, over several blocks of a table."""
    with open_leveldb(path, create_if_missing=True, block_size=1024) as db:
        snapshots = []
        for n in range(200):
            db.put(b"k", b"%d" % n * 50)
            snapshots.append(db.snapshot())
        db.put(b"l", b"1")
        db.compact_range()
        for snapshot in snapshots:
            snapshot.close()
    with DB(path, lru_cache_size=0) as db:
        check(db, {b"k": b"199" * 50, b"l": b"1"})
        iterator = db.iterator(include_value=False)
        assert [iterator.next(), iterator.next(), iterator.prev(), iterator.prev()] == [
            b"k", b"l", b"l", b"k",
        ]  # fmt: skip
        db.compact_range()
        check(db, {b"k": b"199" * 50, b"l": b"1"})


# Stops without a close


def killed(program: str, path: pathlib.Path) -> None:
    """Run a program that ends itself by ``os._exit``."""
    result = run_python("-c", textwrap.dedent(program), str(path), timeout=120)
    assert (result.returncode, result.stderr) == (9, "")


KILLED = """
    import os, sys, ENGINE
    db = ENGINE.DB(sys.argv[1], create_if_missing=True, write_buffer_size=65536)
    for n in range(3000):
        db.put(b"%d" % (n % 1000), b"%d" % n * 10)
    os._exit(9)
"""


@pytest.mark.parametrize("writer", ["lsmkv", "plyvel"])
@pytest.mark.parametrize("reader", ["lsmkv", "leveldb"])
def test_a_killed_process_loses_nothing(path: pathlib.Path, writer: str, reader: str) -> None:
    killed(KILLED.replace("ENGINE", writer), path)
    expected = {b"%d" % (n % 1000): b"%d" % n * 10 for n in range(2000, 3000)}
    for _ in range(2):
        with opened(reader, path) as db:
            assert dict(db.iterator()) == expected


FAILING = """
import os, resource, sys, plyvel
with plyvel.DB(sys.argv[1], create_if_missing=True) as db:
    db.put(b"a", b"1")
db = plyvel.DB(sys.argv[1])  # "a" goes into a table, and a new log is begun
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
for key in (b"b", b"c"):
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, unlimited[1]))
    try:
        db.put(b"refused", b"")
    except plyvel.IOError:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        db.put(key, b"1")
os._exit(9)
"""


@pytest.mark.parametrize("paranoid", [False, True])
def test_writes_that_leveldb_could_not_write_leave_gaps(path: pathlib.Path, paranoid: bool) -> None:
    """They take a sequence all the same, also that of the first batch behind the tables."""
    killed(FAILING, path)
    first = next(iter(LogReader(LocalEnv().open_directory(str(path)).open("000006.log"))))
    assert decode_batch(first.payload)[0] == 3  # 2 was never acknowledged
    state = {b"a": b"1", b"b": b"1", b"c": b"1"}
    with DB(path, read_only=True, paranoid_checks=paranoid) as db:
        assert dict(db) == state
    with DB(path, paranoid_checks=paranoid) as db:
        assert dict(db) == state
        assert not (path / "lost").exists()


def test_a_log_that_leveldb_left_is_continued(path: pathlib.Path) -> None:
    with open_leveldb(path, create_if_missing=True) as db:
        db.put(b"a", b"1")
    with DB(path, reuse_logs=True) as db:
        db.put(b"b", b"2")
        db.put(b"large", b"x" * 100_000)
    with open_leveldb(path) as db:
        assert dict(db.iterator()) == {b"a": b"1", b"b": b"2", b"large": b"x" * 100_000}


# The lock


def test_leveldb_is_locked_out(path: pathlib.Path) -> None:
    """By a second process, since LevelDB's own table of locks knows this one's only."""
    program = """
        import os, sys, plyvel
        try:
            plyvel.DB(sys.argv[1])
        except plyvel.IOError as error:
            os._exit(9 if "lock" in str(error) else 8)
        os._exit(7)
    """
    with DB(path, create_if_missing=True) as db:
        db.put(b"k", b"v")
        killed(program, path)
        with pytest.raises(plyvel.IOError, match="lock"):
            plyvel.DB(str(path))
        killed(program, path)  # the refused attempt in this process did not drop the lock
        db.put(b"k", b"w")
    with open_leveldb(path) as db:
        assert db.get(b"k") == b"w"


@pytest.fixture
def holder(path: pathlib.Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that holds the store by LevelDB."""
    program = """
        import sys, plyvel
        db = plyvel.DB(sys.argv[1], create_if_missing=True)
        db.put(b"k", b"v")
        print("ready", flush=True)
        sys.stdin.read()
        db.put(b"last", b"1")
        db.close()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == b"ready\n"
    yield process
    process.stdin.close()
    process.wait()
    process.stdout.close()


def test_lsmkv_is_locked_out(path: pathlib.Path, holder: subprocess.Popen[bytes]) -> None:
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    attempts: list[Callable[[], object]] = [
        lambda: DB(path),
        lambda: DB(path, create_if_missing=True),
        lambda: lsmkv.destroy_db(path),
    ]
    for attempt in attempts:
        with pytest.raises(lsmkv.LockedError) as caught:
            attempt()
        assert caught.value.pid == holder.pid
        assert f"process {holder.pid}" in str(caught.value)
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before
    assert holder.stdin is not None
    holder.stdin.close()
    holder.wait()
    with DB(path) as db:
        assert dict(db) == {b"k": b"v", b"last": b"1"}


# Sizes


def test_approximate_sizes_agree(path: pathlib.Path) -> None:
    with DB(path, create_if_missing=True, compression=None, max_file_size=1 << 20) as db:
        batch = WriteBatch()
        rng = random.Random(9)
        for n in range(20_000):
            batch.put(b"%06d" % n, rng.randbytes(100))
        db.write(batch)
        db.compact_range()
        ranges = [(b"%06d" % a, b"%06d" % (a + b)) for a, b in [(0, 20_000), (5, 10), (100, 9000)]]
        ours = db.approximate_sizes(*ranges)
    with open_leveldb(path) as db:
        assert db.approximate_sizes(*ranges) == ours
