"""lsmkv.table.meta: what META holds of a finished directory."""

from __future__ import annotations

import pytest

from lsmkv import DB, CorruptionError, MemoryEnv
from lsmkv.env.base import Directory
from lsmkv.format.meta import FilePieces, decode_meta
from lsmkv.options import Options
from lsmkv.table.meta import meta_of
from lsmkv.table.reader import Table


def pieces_in(directory: Directory) -> dict[str, FilePieces]:
    return {file.name: file for file in decode_meta(meta_of(directory, Options()))}


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


def test_files_that_are_not_read_are_left_out() -> None:
    directory = filled(MemoryEnv(), 10)
    directory.create("MANIFEST-000000").close()
    directory.create("notes.txt").close()
    directory.create("000000.dbtmp").close()
    found = pieces_in(directory)
    assert {"CURRENT"} < set(found)
    assert not {"LOCK", "LOG", "MANIFEST-000000", "notes.txt", "000000.dbtmp"} & set(found)
    manifest = directory.read_file("CURRENT", 64).decode().strip()
    assert found[manifest].pieces == [(0, directory.read_file(manifest, 1 << 20))]


def test_a_table_gives_its_first_block_and_its_end() -> None:
    directory = filled(MemoryEnv(), 500)
    name, file = next((n, f) for n, f in pieces_in(directory).items() if n.endswith(".ldb"))
    with directory.open(name) as handle:
        index = Table(Options(), handle).index
        assert [piece.offset for piece in file.pieces] == [0, index.end(len(index) - 1)]
        assert len(file.pieces[0].data) == index.end(0)
        assert file.pieces[1].offset + len(file.pieces[1].data) == file.size


def test_a_table_of_one_block_is_one_piece() -> None:
    found = pieces_in(filled(MemoryEnv(), 3))
    (file,) = [file for name, file in found.items() if name.endswith(".ldb")]
    assert [(piece.offset, len(piece.data)) for piece in file.pieces] == [(0, file.size)]


def test_a_log_is_one_piece() -> None:
    env = MemoryEnv()
    with DB("db", create_if_missing=True, env=env) as db:
        db.put(b"k", b"v")
    directory = env.open_directory("db")
    (log,) = [name for name in directory.names() if name.endswith(".log")]
    assert pieces_in(directory)[log].pieces == [(0, directory.read_file(log, 1 << 20))]


def test_a_damaged_table_is_refused() -> None:
    directory = filled(MemoryEnv(), 500)
    name = next(name for name in directory.names() if name.endswith(".ldb"))
    content = directory.read_file(name, 1 << 30)
    directory.remove(name)
    with directory.create(name) as file:
        file.append(content[:-1])
    with pytest.raises(CorruptionError, match=name):
        meta_of(directory, Options())
