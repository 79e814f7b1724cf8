"""Every read of a table is counted, once and under its kind.

The reads are those of the process: ``os.pread``, by file and offset.  So this holds whatever the
handle: a store of one process, one that is open for reading only, a member of a shared store.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from stores import settle

import lsmkv
from lsmkv import DB, MemoryEnv, SharedDB, Stats
from lsmkv.files import StoreFiles, Table

pytestmark = pytest.mark.skipif(not hasattr(os, "pread"), reason="the system has no pread")

Handle = DB | SharedDB
LAYOUTS: dict[str, dict[str, Any]] = {
    "block": {"filter_layout": "block"},
    "table": {"filter_layout": "table"},
    "all filters": {"filter_layout": "both", "prefix_extractor": lsmkv.FixedPrefix(4)},
    "none": {"bloom_filter_bits": 0},
    "fuse and prefixes": {
        "filter_policy": lsmkv.BinaryFusePolicy(),
        "filter_layout": "table",
        "prefix_extractor": lsmkv.FixedPrefix(4),
    },
}
METADATA = {"block": 4, "table": 4, "all filters": 6, "none": 2, "fuse and prefixes": 5}
"""Reads that open a table, before its first data block is read."""
CACHES = {"a cache": 8 << 20, "a small cache": 3000, "no cache": 0}
TABLES = 4
PAGE = Path(__file__).parents[3] / "docs" / "how" / "read.md"


def key_of(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).hexdigest()[:16].encode()


PRESENT = sorted(map(key_of, range(800)))
ABSENT = sorted(key_of(number) for number in range(800, 840))
VALUE = b"v" * 40
OPTIONS: dict[str, Any] = {"block_size": 512, "seek_compaction": False}


class Spans(NamedTuple):
    """A table's file: which it is, and where its data blocks lie."""

    inode: tuple[int, int]
    blocks: list[tuple[int, int]]
    """Offset and end of each, trailers included."""


def spans_of(path: Path) -> list[Spans]:
    found: list[Spans] = []
    with StoreFiles(str(path)) as files:
        for name in sorted(os.listdir(path)):
            if name.endswith(".ldb"):
                with Table(files.open(name)) as table:
                    places = [one for one in table.places() if one.kind == "data"]
                status = os.stat(path / name)
                blocks = [(one.offset, one.end) for one in places]
                found.append(Spans((status.st_dev, status.st_ino), blocks))
    return found


class Counted(NamedTuple):
    """Reads by kind; the same whether lsmkv or the system has counted them."""

    metadata: int
    metadata_bytes: int
    data_blocks: int
    """Those of lookups, and those that the identity checks read."""
    data_bytes: int


class Preads:
    """The reads of this process, by table."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._reads: list[tuple[tuple[int, int], int, int]] = []
        self.read = os.pread
        monkeypatch.setattr(os, "pread", self._counting)

    def _counting(self, fd: int, length: int, offset: int) -> bytes:
        data = self.read(fd, length, offset)
        status = os.fstat(fd)
        self._reads.append(((status.st_dev, status.st_ino), offset, len(data)))
        return data

    def clear(self) -> None:
        self._reads.clear()

    def system_calls(self, tables: list[Spans]) -> int:
        """How many calls read a table."""
        inodes = {table.inode for table in tables}
        return sum(inode in inodes for inode, _, _ in self._reads)

    def counted(self, tables: list[Spans]) -> Counted:
        """The reads by kind; a read of several data blocks is as many."""
        blocks_of = {table.inode: table.blocks for table in tables}
        metadata = metadata_bytes = data = data_bytes = 0
        for inode, offset, length in self._reads:
            if inode not in blocks_of:
                continue
            inside = [b for b in blocks_of[inode] if offset <= b[0] and b[1] <= offset + length]
            if inside:
                assert offset == inside[0][0]
                assert length == sum(end - begin for begin, end in inside)
                data += len(inside)
                data_bytes += length
            else:
                metadata += 1
                metadata_bytes += length
        return Counted(metadata, metadata_bytes, data, data_bytes)


def counted_by(change: Stats) -> Counted:
    return Counted(
        change.metadata_reads,
        change.metadata_bytes_read,
        change.blocks_read + change.identity_check_reads,
        change.bytes_read + change.identity_check_bytes_read,
    )


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same keys with filters of each layout, in tables that overlap."""
    paths: dict[str, Path] = {}
    for layout, options in LAYOUTS.items():
        paths[layout] = tmp_path_factory.mktemp("reads") / "db"
        with DB(paths[layout], create_if_missing=True, **OPTIONS, **options) as db:
            for at in range(TABLES):
                for key in PRESENT[at::TABLES]:
                    db.put(key, VALUE)
                db.flush()
            settle(db)
            assert len(db.tables()) == TABLES
    return paths


def ends_of(db: Handle) -> list[bytes]:
    return [key for key, _ in [next(iter(db)), next(iter(db.iterator(reverse=True)))]]


def snapshot_of(db: Handle) -> object:
    with db.snapshot() as snapshot:
        return [snapshot.get(key) for key in PRESENT[::50] + ABSENT]


OPERATIONS: dict[str, Callable[[Handle], object]] = {
    "Get of an absent key": lambda db: [db.get(ABSENT[7])],
    "Gets of absent keys": lambda db: [db.get(key) for key in ABSENT],
    "may_contain": lambda db: [db.may_contain(key) for key in ABSENT],
    "Get of a key": lambda db: db.get(PRESENT[123]),
    "Gets": lambda db: [db.get(key) for key in PRESENT[::9]],
    "Gets that fill no cache": lambda db: [db.get(k, fill_cache=False) for k in PRESENT[::7]],
    "multi_get": lambda db: db.multi_get([*PRESENT[::5], *ABSENT]),
    "scan": list,
    "scan that fills no cache": lambda db: list(db.iterator(fill_cache=False)),
    "scan back": lambda db: list(db.iterator(reverse=True)),
    "scans of prefixes": lambda db: [list(db.iterator(prefix=key[:4])) for key in ABSENT],
    "seek": lambda db: [next(iter(db.iterator(start=key))) for key in ABSENT[:5]],
    "ends": ends_of,
    "snapshot": snapshot_of,
}


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_counters_are_the_reads_of_the_process(
    stores: dict[str, Path],
    opening: Callable[..., Handle],
    monkeypatch: pytest.MonkeyPatch,
    layout: str,
    cache: str,
) -> None:
    """Each operation on a store that was just opened, and again; then all, one after the other."""
    path = stores[layout]
    tables = spans_of(path)
    options = OPTIONS | LAYOUTS[layout] | {"lru_cache_size": CACHES[cache]}
    names = list(OPERATIONS)
    with opening(path, **options) as db:
        preads = Preads(monkeypatch)
        for name in names + names[::-1]:
            before = db.stats()
            preads.clear()
            OPERATIONS[name](db)
            counted = preads.counted(tables)  # before stats(), which looks for codecs
            assert (name, counted_by(db.stats() - before)) == (name, counted)
        stats = db.stats()
        assert stats.identity_check_reads == stats.tables_opened == TABLES
        assert stats.metadata_reads == TABLES * METADATA[layout]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_counters_of_a_first_operation_are_its_reads(
    stores: dict[str, Path], monkeypatch: pytest.MonkeyPatch, layout: str, operation: str
) -> None:
    tables = spans_of(stores[layout])
    with DB(stores[layout], **OPTIONS, **LAYOUTS[layout]) as db:
        preads = Preads(monkeypatch)
        OPERATIONS[operation](db)
        stats = db.stats()
        assert counted_by(stats) == preads.counted(tables)
        assert 0 < stats.identity_check_reads == stats.tables_opened <= TABLES
        again = db.stats()
        preads.clear()
        OPERATIONS[operation](db)
        assert counted_by(db.stats() - again) == preads.counted(tables)


@pytest.mark.parametrize("layout", [one for one in LAYOUTS if one != "none"])
def test_a_get_of_an_absent_key_reads_no_data_block_but_those_of_identity_checks(
    stores: dict[str, Path], monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    tables = spans_of(stores[layout])
    with DB(stores[layout], **OPTIONS, **LAYOUTS[layout]) as db:
        ruled_out = [key for key in ABSENT if not db.explain(key).blocks_searched]
        assert len(ruled_out) > 30
        preads = Preads(monkeypatch)
        assert db.get(ruled_out[0]) is None
        first = db.stats()
        assert first.blocks_read == 0
        assert first.identity_check_reads == TABLES
        assert preads.system_calls(tables) == TABLES * (METADATA[layout] + 1)
        preads.clear()
        assert db.multi_get(ruled_out) == [None] * len(ruled_out)
        assert preads.system_calls(tables) == 0
        assert counted_by(db.stats()) == counted_by(first)


@pytest.mark.parametrize("cache", ["a cache", "no cache"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_explain_predicts_the_reads_of_the_next_get(
    stores: dict[str, Path], monkeypatch: pytest.MonkeyPatch, layout: str, cache: str
) -> None:
    """Whatever is open and cached by then; explaining opens and caches nothing."""
    tables = spans_of(stores[layout])
    options = OPTIONS | LAYOUTS[layout] | {"lru_cache_size": CACHES[cache]}
    with DB(stores[layout], **options) as db:
        preads = Preads(monkeypatch)
        opened = 0
        for key in [PRESENT[0], ABSENT[3], *PRESENT[:6], *ABSENT, *PRESENT[::40], *PRESENT[:6]]:
            before = db.stats()
            explained = db.explain(key)
            assert db.stats() == before
            preads.clear()
            assert db.get(key) == (VALUE if explained.found else None)
            change = db.stats() - before
            assert counted_by(change) == preads.counted(tables)
            opened += change.tables_opened
            assert explained.metadata_reads == change.metadata_reads
            assert explained.identity_check_reads == change.identity_check_reads
            if not explained.at_hand:
                assert explained.blocks_read == change.blocks_read
                assert explained.bytes_read == change.bytes_read
        assert opened == TABLES


@pytest.mark.parametrize("layout", LAYOUTS)
def test_explain_leaves_a_full_cache_as_it_is(stores: dict[str, Path], layout: str) -> None:
    """Which keeps blocks compressed; one that is used often it would keep decompressed."""
    cache = lsmkv.BlockCache[Any, Any](CACHES["a small cache"])
    with DB(stores[layout], block_cache=cache, **OPTIONS, **LAYOUTS[layout]) as db:
        assert db.multi_get(PRESENT) == [VALUE] * len(PRESENT)
        before = db.stats()
        keys = PRESENT[::5]  # a block has more entries than that
        read = [[db.explain(key).blocks_read for key in keys] for _ in range(12)]
        assert db.stats() == before
        assert read == [read[0]] * 12
        assert 0 in read[0]


def test_the_block_of_an_identity_check_is_not_read_again(stores: dict[str, Path]) -> None:
    with DB(stores["block"], **OPTIONS) as db:
        assert db.get(ABSENT[0]) is None
        begun = [table.smallest for table in db.tables()]
        before = db.stats()
        assert db.multi_get(begun) == [VALUE] * TABLES
        change = db.stats() - before
        assert (change.blocks_read, change.block_cache_hits) == (0, TABLES)


@pytest.mark.parametrize(
    "read",
    [
        lambda db: db.get(PRESENT[0], fill_cache=False),
        lambda db: list(db.iterator(fill_cache=False)),
        lambda db: next(iter(db.iterator(fill_cache=False, reverse=True))),
        lambda db: db.explain(PRESENT[0]),
        lambda db: db.verify(),
    ],
    ids=["get", "scan", "scan back", "explain", "verify"],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_what_fills_no_cache_opens_tables_without_filling_it(
    read: Callable[[DB], object], read_only: bool
) -> None:
    env = MemoryEnv()
    with DB("db", create_if_missing=True, env=env) as db:
        for key in PRESENT:
            db.put(key, VALUE)
        db.flush()
        for key in PRESENT[::2]:
            db.put(key, VALUE)
        db.flush()
    with DB("db", env=env, read_only=read_only) as db:
        read(db)
        assert db.stats().block_cache_bytes == 0


def test_identity_checks_stay_within_a_small_cache(stores: dict[str, Path]) -> None:
    cache = lsmkv.BlockCache[Any, Any](600)
    with DB(stores["block"], block_cache=cache, **OPTIONS) as db:
        assert db.multi_get(ABSENT) == [None] * len(ABSENT)
        assert db.stats().identity_check_reads == TABLES
        assert 0 < len(cache) < TABLES
        assert cache.usage <= cache.capacity
        cache.check()


def test_the_page_states_how_many_reads_open_a_table() -> None:
    """Its table adds up to what it says, which is the least and the most of all layouts."""
    if not PAGE.is_file():
        pytest.skip("the tests are not in the repository")
    page = PAGE.read_text(encoding="utf-8").partition("## Opening a table")[2]
    rows = [re.findall(r"\d+", cell) for cell in re.findall(r"(?m)^\| (\d[^|]*) \|", page)]
    stated = re.search(r"That costs (\d+)\s+to (\d+) reads", page)
    assert stated is not None
    least, most = (sum(int(row[at]) for row in rows) for at in (0, -1))
    assert (int(stated[1]), int(stated[2])) == (least, most)
    opening = [reads + 1 for reads in METADATA.values()]  # the identity check
    assert (min(opening), max(opening)) == (least, most)
