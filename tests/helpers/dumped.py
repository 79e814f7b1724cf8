"""Files with known content, and what ``lsmkv dump`` says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from batches import batch_record, encode_delete, encode_put
from byte_files import BytesFile
from made_files import log_of
from typer.testing import CliRunner

from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.format.keys import pack
from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit
from lsmkv.engine.options import Options
from lsmkv.engine.table.block_builder import BlockBuilder
from lsmkv.engine.table.builder import TableBuilder
from lsmkv.engine.table.format import BlockHandle, Footer, seal_block
from lsmkv.engine.util.checksum import masked_crc32c
from lsmkv.files import Block
from lsmkv.tools.app import app
from lsmkv.tools.dump.records import Fault, Piece, Record
from lsmkv.tools.dump.sources import Wanted, dump_file

Done = tuple[int, list[str], str]


def dump(*arguments: str | Path) -> Done:
    """Run the command: exit status, lines of stdout, stderr."""
    done = CliRunner().invoke(app, ["dump", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout_bytes.decode().splitlines(), done.stderr


def lines(text: str) -> list[str]:
    """The lines of a text, without the empty ones around it."""
    return text.strip("\n").split("\n")


def records(name: str, data: bytes, annotate: bool = False) -> list[Record]:
    """The records of a file of this name, without its heading."""
    return list(dump_file(BytesFile(data), name, Wanted(annotate)))[1:]


def faults(name: str, data: bytes, annotate: bool = False) -> list[Fault]:
    """The faults among the records of a file of this name."""
    return [one for one in records(name, data, annotate) if isinstance(one, Fault)]


def make_table(entries: list[tuple[bytes, bytes]], bits: int = 10, **options: Any) -> bytes:
    """A table of a store, with internal keys."""
    policy = BloomFilterPolicy(bits) if bits else None
    settings = {"compression": 0, "filter_policy": policy} | options
    with MemoryEnv().open_directory("/") as directory:
        with directory.create("t") as file:
            builder = TableBuilder(Options(**settings), file)
            for key, value in entries:
                builder.add(key, value)
            builder.finish()
        return directory.read_file("t", 1 << 30)


def make_log(payloads: list[bytes]) -> bytes:
    return log_of(*payloads)


def edit(**fields: Any) -> VersionEdit:
    """A version edit with these fields."""
    made = VersionEdit()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


LOG = make_log(
    [
        batch_record(7, 1, encode_put(b"fig", b"green")),
        batch_record(8, 3, encode_put("é\t".encode(), b"\xff\\") + encode_delete(b"old") * 2),
    ]
)
TABLE = make_table(
    [
        (pack(b"apple", 300, 0), b""),
        (pack(b"apple", 1, 1), b"red"),
        (pack(b"apricot", 2, 1), b"orange"),
    ]
)
SMALL = edit(comparator="leveldb.BytewiseComparator", log_number=3, prev_log_number=0)
LARGE = edit(
    next_file_number=8,
    last_sequence=300,
    compact_pointers=[(1, pack(b"m", 9, 1))],
    deleted_files={(1, 4), (0, 5), (0, 3)},
    new_files=[(2, FileMetaData(7, 1234, pack(b"a\n", 1, 1), pack(b"z", 300, 0)))],
)
MANIFEST = make_log([SMALL.encode(), LARGE.encode()])


LOG_TEXT = r"""
--- offset 0; sequence 7
  put 'fig' 'green'
--- offset 30; sequence 8
  put 'é\t' '\xff\\'
  del 'old'
  del 'old'
"""
TABLE_TEXT = r"""
--- offset 0; data block; size 60, uncompressed; restart points: 0
'apple' @ 300 : del => ''
'apple' @ 1 : val => 'red'
'apricot' @ 2 : val => 'orange'
--- offset 65; filter block 'filter.leveldb.BuiltinBloomFilter2'; size 18, uncompressed
  filter 0, blocks at 0 to 2047: 64 bits, 12 set, 6 probes
     0  00000010 10100000 00000000 00000000 00000101 01000000 00000011 11110000
--- offset 88; metaindex block; size 47, uncompressed; restart points: 0
  'filter.leveldb.BuiltinBloomFilter2' => offset 65, size 18
--- offset 140; index block; size 22, uncompressed; restart points: 0
  'b' @ 72057594037927935 : val => offset 0, size 60
--- offset 167; footer; metaindex at offset 88, size 47; index at offset 140, size 22
"""


def meanings(name: str, data: bytes) -> list[tuple[int, str, str]]:
    """The offset, hexadecimal bytes and meaning of each piece that covers the file."""
    return [
        (one.offset, one.data.hex(), one.meaning)
        for one in records(name, data, annotate=True)
        if isinstance(one, Piece) and one.block < 0
    ]


def covers(name: str, data: bytes, same_faults: bool = True) -> None:
    """Check that pieces cover each byte once, and that the faults are those of a plain dump."""
    at = 0
    found = records(name, data, annotate=True)
    inside: dict[int, int] = {}
    for one in found:
        if not isinstance(one, Piece):
            assert isinstance(one, Fault)
            continue
        assert one.data
        assert one.meaning
        if one.block < 0:
            assert one.offset == at
            assert one.data == data[at : at + len(one.data)]
            at += len(one.data)
        else:
            assert one.offset == inside.get(one.block, 0)
            inside[one.block] = one.offset + len(one.data)
    assert at == len(data)
    blocks = [one for one in records(name, data) if isinstance(one, Block)]
    plain_sizes = {one.place.offset: len(one.plain) for one in blocks}
    for block, size in inside.items():
        assert plain_sizes.get(block, size) == size
    if same_faults:
        assert bool(faults(name, data)) == bool(faults(name, data, annotate=True))


def objects(*arguments: str | Path) -> list[dict[str, Any]]:
    """The records that the command prints as JSON."""
    return [json.loads(line) for line in dump(*arguments, "--json")[1]]


def forged(data_block: bytes, index_value: bytes | None = None, kind: int = 0) -> bytes:
    """A table of one data block with any content and sound checksums."""
    body = data_block + bytes([kind])
    stored = body + masked_crc32c(body).to_bytes(4, "little")
    index = BlockBuilder(1)
    handle = BlockHandle(0, len(data_block)).encode()
    index.add(pack(b"z", 1, 1), handle if index_value is None else index_value)
    sealed = seal_block(index.finish(), 0)
    empty = seal_block(BlockBuilder(1).finish(), 0)
    at = len(stored)
    footer = Footer(BlockHandle(at, len(empty) - 5), BlockHandle(at + len(empty), len(sealed) - 5))
    return stored + empty + sealed + footer.encode()


GOOD = b"\0\x09\1" + pack(b"a", 1, 1) + b"v"
ONE_RESTART = bytes(4) + b"\1\0\0\0"
