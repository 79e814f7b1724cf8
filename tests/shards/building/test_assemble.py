"""A shard: LevelDB's files, whatever the pairs, and the entry that describes them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import lsmkv
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.options import KIB, TableArguments
from lsmkv.shards.building.assemble import write_shard
from lsmkv.shards.building.merging import Chunk
from lsmkv.shards.building.tables import table_settings
from lsmkv.shards.remote.meta import META, decode_meta
from lsmkv.shards.remote.objects.local import LocalObjects
from lsmkv.shards.version import ShardEntry

PATH = "shards/b/0000-0"
SMALL: TableArguments = {"block_size": 2 * KIB}

Pairs = dict[bytes, bytes]


def chunks(pairs: Pairs, size: int) -> Iterator[Chunk]:
    keys = sorted(pairs)
    for at in range(0, len(keys), size):
        some = keys[at : at + size]
        yield some, [pairs[key] for key in some]


def written(root: Path, pairs: Pairs, size: int = 700, table_bytes: int = 64 * KIB) -> ShardEntry:
    with LocalObjects(LocalEnv(), str(root), True) as objects:
        settings = table_settings(table_bytes, SMALL)
        return write_shard(chunks(pairs, size), objects, PATH, b"", settings)


def some(count: int) -> Pairs:
    rng = random.Random(count)
    return {b"%06d" % n: rng.randbytes(rng.randrange(300)) for n in range(count)}


@pytest.mark.parametrize("count", [0, 1, 2, 5000])
def test_leveldb_reads_a_shard_and_writes_to_it(tmp_path: Path, count: int) -> None:
    plyvel = pytest.importorskip("plyvel")
    pairs = some(count)
    written(tmp_path, pairs)
    with plyvel.DB(str(tmp_path / PATH)) as db:
        assert dict(db.iterator()) == pairs
        db.put(b"000000", b"newer")
        assert db.get(b"000000") == b"newer"
        db.compact_range()
        assert dict(db.iterator()) == {**pairs, b"000000": b"newer"}


@pytest.mark.parametrize("count", [0, 1, 2, 5000])
def test_lsmkv_reads_a_shard_and_finds_nothing_wrong(tmp_path: Path, count: int) -> None:
    pairs = some(count)
    entry = written(tmp_path, pairs)
    assert (entry.path, entry.first, entry.pairs) == (PATH, b"", count)
    with lsmkv.DB(tmp_path / PATH, read_only=True) as db:
        assert dict(db) == pairs
        assert db.verify() == []
        levels = [(level.level, level.files) for level in db.stats().levels if level.files]
        tables = sum(file.name.endswith(".ldb") for file in entry.files)
        assert levels == ([(6, tables)] if count else [])
        assert (tables > 5) == (count == 5000)
    with lsmkv.DB(tmp_path / PATH) as db:  # for writing: nothing is moved or lost
        db.put(b"k", b"v")
        assert dict(db) == {**pairs, b"k": b"v"}
        assert db.stats().compactions == 0


def test_the_entry_describes_every_file(tmp_path: Path) -> None:
    entry = written(tmp_path, some(3000))
    there = {path.name: path.read_bytes() for path in (tmp_path / PATH).iterdir()}
    stated = {file.name: (file.size, file.sha256) for file in (entry.meta, *entry.files)}
    assert stated == {
        name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in there.items()
    }
    assert {file.name for file in decode_meta(there[META])} == set(there) - {META}


def test_the_same_pairs_make_the_same_bytes_however_they_come(tmp_path: Path) -> None:
    pairs = some(4000)
    entries = [written(tmp_path / str(size), pairs, size) for size in (1, 7, 4000)]
    assert entries[0] == entries[1] == entries[2]


def test_tables_end_at_their_size(tmp_path: Path) -> None:
    entry = written(tmp_path, some(5000), table_bytes=64 * KIB)
    sizes = [file.size for file in entry.files if file.name.endswith(".ldb")]
    assert all(64 * KIB <= size < 96 * KIB for size in sizes[:-1])
