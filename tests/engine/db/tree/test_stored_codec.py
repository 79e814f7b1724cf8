"""New tables get the codec of the store's, where that is one of Mojang's.

The blocks are read here with zlib alone, as Minecraft's Bedrock edition reads them: it knows the
types 0, 2 (zlib) and 4 (deflate without a header), and refuses a table with any other.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lsmkv
from lsmkv import DB

DATA = Path(__file__).resolve().parents[3] / "data"
TINY: dict[str, Any] = {"write_buffer_size": 16384, "max_file_size": 16384, "block_size": 1024}
CODECS = {"zlib": 2, "zlib-raw": 4}
UNPACK: dict[int, Callable[[bytes], bytes]] = {
    0: lambda data: data,
    2: zlib.decompress,
    4: lambda data: zlib.decompress(data, -15),
}


def state(first: int, stop: int) -> dict[bytes, bytes]:
    return {b"chunk%06d" % n: b"block state %d " % n * 8 for n in range(first, stop)}


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def entries(plain: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The entries of a block's content."""
    end = len(plain) - 4 - 4 * int.from_bytes(plain[-4:], "little")
    at, key = 0, b""
    while at < end:
        shared, at = varint(plain, at)
        rest, at = varint(plain, at)
        size, at = varint(plain, at)
        key = key[:shared] + plain[at : at + rest]
        yield key, plain[at + rest : at + rest + size]
        at += rest + size


class Game:
    """Reads tables as the game does, and notes the type of each block."""

    def __init__(self) -> None:
        self.types: set[int] = set()
        self.keys: set[bytes] = set()

    def block(self, table: bytes, handle: bytes) -> bytes:
        offset, at = varint(handle, 0)
        size, _ = varint(handle, at)
        kind = table[offset + size]
        self.types.add(kind)
        return UNPACK[kind](table[offset : offset + size])

    def read(self, path: Path) -> None:
        table = path.read_bytes()
        footer = table[-48:]
        _, at = varint(footer, 0)
        _, at = varint(footer, at)
        for _, handle in entries(self.block(table, footer)):
            self.block(table, handle)  # the metaindex: filters
        for _, handle in entries(self.block(table, footer[at:])):
            self.keys |= {key[:-8] for key, _ in entries(self.block(table, handle))}


def read_by_the_game(path: Path) -> Game:
    game = Game()
    for table in path.glob("*.ldb"):
        game.read(table)
    return game


def world(path: Path, codec: Any, first: int = 0, stop: int = 600) -> Path:
    """A store with tables of one codec and an empty log."""
    with DB(path, create_if_missing=not path.exists(), compression=codec, **TINY) as db:
        with db.write_batch() as batch:
            for key, value in state(first, stop).items():
                batch.put(key, value)
        db.flush()
    return path


@pytest.fixture(params=CODECS)
def codec(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("background", ["thread", "process"])
def test_a_world_stays_readable_by_the_game(tmp_path: Path, codec: str, background: Any) -> None:
    path = world(tmp_path / "db", codec)
    assert read_by_the_game(path).types == {0, CODECS[codec]}  # filters are never compressed
    with lsmkv.TableWriter(tmp_path / "more.ldb") as more:
        for key, value in state(900, 1000).items():
            more.add(key, value)
    with DB(path, background=background, **TINY) as db:
        assert db.stats().compression == codec
        for key, value in state(600, 800).items():
            db.put(key, value)
        db.flush()
        db.ingest([tmp_path / "more.ldb"])
        for key, value in state(800, 900).items():
            db.put(key, value)
        db.compact_range()
        db.rewrite_tables()
        for key, value in state(1000, 1100).items():  # the next open makes a table of the log
            db.put(key, value)
    with DB(path, **TINY) as db:
        db.verify()
        db.check()
        assert dict(db) == state(0, 1100)
    game = read_by_the_game(path)
    assert game.types == {0, CODECS[codec]}
    assert game.keys == set(state(0, 1100))


@pytest.mark.parametrize("name", ["hand-mojang-zlib", "hand-mojang-deflate"])
def test_databases_with_blocks_of_mojangs(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    shutil.copytree(DATA / name, path)
    with DB(path) as db:
        held = dict(db)
        db.put(b"new", b"value " * 100)
        db.compact_range()
    game = read_by_the_game(path)
    assert game.types <= {0, 2 if name.endswith("zlib") else 4}
    assert game.keys == {*held, b"new"}


def test_a_world_with_snappy_tables_is_healed_by_rewriting(tmp_path: Path, codec: str) -> None:
    """Other programs, and lsmkv before 0.3, wrote Snappy into worlds."""
    path = world(tmp_path / "db", codec, 0, 300)
    for n in range(12):
        world(path, "snappy", 300 + 50 * n, 350 + 50 * n)
    assert 1 in {table.read_bytes()[-53] for table in path.glob("*.ldb")}  # the index's type
    with DB(path, **TINY) as db:
        assert db.stats().compression == codec
        db.rewrite_tables()
    game = read_by_the_game(path)
    assert game.types == {0, CODECS[codec]}
    assert game.keys == set(state(0, 900))


def test_the_newest_table_of_mojangs_decides(tmp_path: Path) -> None:
    """A world that the game has upgraded has tables under both codecs."""
    path = world(tmp_path / "db", "zlib", 0, 300)
    world(path, "zlib-raw", 300, 600)
    with DB(path) as db:
        assert db.stats().compression == "zlib-raw"


@pytest.mark.parametrize("stored", ["snappy", "zstd", None])
def test_other_codecs_of_a_store_decide_nothing(tmp_path: Path, stored: Any) -> None:
    path = world(tmp_path / "db", stored)
    with DB(path) as db:
        assert db.stats().compression == "snappy"


def test_a_store_without_tables_is_written_with_snappy(tmp_path: Path) -> None:
    with DB(tmp_path / "db", create_if_missing=True) as db:
        assert db.stats().compression == "snappy"


@pytest.mark.parametrize("given", ["snappy", "zstd", None])
def test_a_compression_that_is_given_is_used(tmp_path: Path, codec: str, given: Any) -> None:
    path = world(tmp_path / "db", codec)
    with DB(path, compression=given) as db:
        assert db.stats().compression == (given or "none")


def test_a_read_only_store_names_the_codec_too(tmp_path: Path, codec: str) -> None:
    path = world(tmp_path / "db", codec)
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    with DB(path, read_only=True) as db:
        assert db.stats().compression == codec
        found = db.explain(b"chunk000100")
        assert {step.block.compression for step in found.tables if step.block} == {codec}
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before


def test_tables_under_the_old_name_show_their_codec(tmp_path: Path, codec: str) -> None:
    path = world(tmp_path / "db", codec)
    for table in path.glob("*.ldb"):
        table.rename(table.with_suffix(".sst"))
    with DB(path) as db:
        assert db.stats().compression == codec


@pytest.mark.parametrize("damage", ["index", "cut", "missing", "link"])
def test_a_damaged_table_shows_no_codec(tmp_path: Path, damage: str) -> None:
    """Opening goes on as it did: the damage is raised by what reads the table."""
    path = world(tmp_path / "db", "zlib-raw", 0, 20)
    (table,) = path.glob("*.ldb")
    stored = table.read_bytes()
    if damage == "missing":
        table.unlink()
    elif damage == "link":
        table.symlink_to(table.rename(tmp_path / "elsewhere"))
    elif damage == "cut":
        table.write_bytes(stored[:40])
    else:
        table.write_bytes(stored[:-48] + bytes(40) + stored[-8:])
    with DB(path) as db:
        assert db.stats().compression == "snappy"
        with pytest.raises(lsmkv.Error):
            db.get(b"chunk000010")


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("lost", ["CURRENT", "a block"])
def test_a_repair_writes_what_the_game_reads(
    tmp_path: Path, codec: str, in_place: bool, lost: str
) -> None:
    path = world(tmp_path / "db", codec)
    with DB(path, **TINY) as db:
        for key, value in state(600, 650).items():
            db.put(key, value)
    if lost == "CURRENT":
        (path / "CURRENT").unlink()
    else:
        table = sorted(path.glob("*.ldb"))[0]
        stored = bytearray(table.read_bytes())
        stored[700] ^= 1
        table.write_bytes(stored)
    repaired = path if in_place else tmp_path / "sound"
    lsmkv.repair_db(path, into=None if in_place else repaired, **TINY)
    with DB(repaired, **TINY) as db:
        held = set(db.iterator(include_value=False))
    assert len(held) > 600
    game = read_by_the_game(repaired)
    assert game.types == {0, CODECS[codec]}
    assert game.keys == held
