"""lsmkv.shards.remote.table_pieces: what META holds of a table."""

from __future__ import annotations

import pytest

from lsmkv import DB, CorruptionError, MemoryEnv
from lsmkv.engine.env.base import Directory
from lsmkv.engine.options import Options
from lsmkv.engine.table.reader import Table
from lsmkv.shards.remote.meta import FilePieces
from lsmkv.shards.remote.table_pieces import table_pieces


def pieces_in(directory: Directory) -> dict[str, FilePieces]:
    tables = [name for name in directory.names() if name.endswith(".ldb")]
    return {name: table_pieces(directory, name, Options()) for name in tables}


def filled(env: MemoryEnv, count: int) -> Directory:
    with DB("db", create_if_missing=True, env=env, bloom_filter_bits=10, block_size=512) as db:
        for n in range(count):
            db.put(b"key%05d" % n, b"value %d" % n * 5)
        db.compact_range()
    return env.open_directory("db")


def test_every_piece_is_what_the_file_has_there() -> None:
    directory = filled(MemoryEnv(), 500)
    found = pieces_in(directory)
    assert any(len(file.pieces) == 2 for file in found.values())
    for name, file in found.items():
        content = directory.read_file(name, 1 << 30)
        assert file.size == len(content)
        for offset, data in file.pieces:
            assert content[offset : offset + len(data)] == data


def test_a_table_gives_its_first_block_and_its_end() -> None:
    directory = filled(MemoryEnv(), 500)
    name, file = next(iter(pieces_in(directory).items()))
    with directory.open(name) as handle:
        index = Table(Options(), handle).index
        assert [piece.offset for piece in file.pieces] == [0, index.end(len(index) - 1)]
        assert len(file.pieces[0].data) == index.end(0)
        assert file.pieces[1].offset + len(file.pieces[1].data) == file.size


def test_a_table_of_one_block_is_one_piece() -> None:
    (file,) = pieces_in(filled(MemoryEnv(), 3)).values()
    assert [(piece.offset, len(piece.data)) for piece in file.pieces] == [(0, file.size)]


def test_a_damaged_table_is_refused() -> None:
    directory = filled(MemoryEnv(), 500)
    name = next(name for name in directory.names() if name.endswith(".ldb"))
    content = directory.read_file(name, 1 << 30)
    directory.remove(name)
    with directory.create(name) as file:
        file.append(content[:-1])
    with pytest.raises(CorruptionError, match=name):
        table_pieces(directory, name, Options())
