"""``lsmkv dump``: its lines, its JSON, the annotation of every byte, and damaged files."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import lsmkv
from lsmkv.env.base import RandomAccessFile
from lsmkv.env.memory import MemoryEnv
from lsmkv.files import Filter
from lsmkv.filter.bloom import BloomFilterPolicy
from lsmkv.filter.bloom64 import Bloom64Policy
from lsmkv.filter.fuse import BinaryFusePolicy
from lsmkv.filter.prefix import DelimitedPrefix
from lsmkv.format.batch import HEADER_SIZE, encode_batch
from lsmkv.format.keys import pack
from lsmkv.format.log import BLOCK_SIZE, frame
from lsmkv.format.version_edit import FileMetaData, VersionEdit
from lsmkv.options import Options
from lsmkv.table.block_builder import BlockBuilder
from lsmkv.table.builder import TableBuilder
from lsmkv.table.format import BlockHandle, Footer, seal_block
from lsmkv.tools.app import app
from lsmkv.tools.dump.records import (
    Batch,
    Block,
    Entry,
    Fault,
    Handle,
    Operation,
    Piece,
    Record,
)
from lsmkv.tools.dump.sources import Wanted, dump_file
from lsmkv.tools.text import unescape
from lsmkv.util.checksum import masked_crc32c

Done = tuple[int, list[str], str]


def encode_put(key: bytes, value: bytes) -> bytes:
    return encode_batch(0, [(key, value)])[HEADER_SIZE:]


def encode_delete(key: bytes) -> bytes:
    return encode_batch(0, [(key, None)])[HEADER_SIZE:]


def batch_record(sequence: int, count: int, operations: bytes) -> bytes:
    return sequence.to_bytes(8, "little") + count.to_bytes(4, "little") + operations


def dump(*arguments: str | Path) -> Done:
    """Run the command: exit status, lines of stdout, stderr."""
    done = CliRunner().invoke(app, ["dump", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout_bytes.decode().splitlines(), done.stderr


def lines(text: str) -> list[str]:
    return text.strip("\n").split("\n")


class Bytes(RandomAccessFile):
    """A file's content, which records the largest read of it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)
        self.path = "bytes"
        self.longest_read = 0

    def read(self, offset: int, length: int) -> bytes:
        self.longest_read = max(self.longest_read, length)
        return self.data[offset : offset + length]

    def close(self) -> None:
        pass


def records(name: str, data: bytes, annotate: bool = False) -> list[Record]:
    """The records of a file of this name, without its heading."""
    return list(dump_file(Bytes(data), name, Wanted(annotate)))[1:]


def faults(name: str, data: bytes, annotate: bool = False) -> list[Fault]:
    return [one for one in records(name, data, annotate) if isinstance(one, Fault)]


# Files with known content


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
    data = b""
    for payload in payloads:
        data += frame(payload, len(data) % BLOCK_SIZE)
    return data


def edit(**fields: Any) -> VersionEdit:
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


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The directory of a store, written file by file."""
    path = tmp_path / "store"
    path.mkdir()
    (path / "CURRENT").write_bytes(b"MANIFEST-000002\n")
    (path / "MANIFEST-000002").write_bytes(MANIFEST)
    (path / "000009.log").write_bytes(LOG)
    (path / "000007.ldb").write_bytes(TABLE)
    (path / "000010.sst").write_bytes(make_table([(pack(b"k", 5, 1), b"v")], bits=0))
    for name in ("LOCK", "LOG", "LOG.old", "000001.dbtmp", "notes.txt", "my.log"):
        (path / name).write_bytes(b"no file to dump")
    return path


LOG_TEXT = r"""
--- offset 0; sequence 7
  put 'fig' 'green'
--- offset 30; sequence 8
  put 'é\t' '\xff\\'
  del 'old'
  del 'old'
"""
MANIFEST_TEXT = r"""
--- offset 0; VersionEdit {
  Comparator: leveldb.BytewiseComparator
  LogNumber: 3
  PrevLogNumber: 0
}
--- offset 39; VersionEdit {
  NextFile: 8
  LastSeq: 300
  CompactPointer: 1 'm' @ 9 : 1
  DeleteFile: 0 3
  DeleteFile: 0 5
  DeleteFile: 1 4
  AddFile: 2 7 1234 'a\n' @ 1 : 1 .. 'z' @ 300 : 0
}
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


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("000009.log", LOG_TEXT),
        ("MANIFEST-000002", MANIFEST_TEXT),
        ("000007.ldb", TABLE_TEXT),
        ("CURRENT", "--- offset 0; MANIFEST-000002"),
    ],
)
def test_the_lines_of_each_kind_of_file(store: Path, name: str, expected: str) -> None:
    assert dump(store / name) == (0, lines(expected), "")


def test_a_directory_is_dumped_file_by_file_in_order(store: Path) -> None:
    status, printed, err = dump(store)
    headings = [line for line in printed if line.startswith("=== ")]
    assert headings == [
        "=== CURRENT: the MANIFEST in force, 16 bytes",
        f"=== MANIFEST-000002: MANIFEST, {len(MANIFEST)} bytes",
        f"=== 000007.ldb: table, {len(TABLE)} bytes",
        f"=== 000009.log: write-ahead log, {len(LOG)} bytes",
        f"=== 000010.sst: table, {(store / '000010.sst').stat().st_size} bytes",
    ]
    at = printed.index(headings[2]) + 1
    assert printed[at : at + len(lines(TABLE_TEXT))] == lines(TABLE_TEXT)
    assert (status, err) == (0, "")


def test_manifests_come_before_logs_and_tables_of_any_number(store: Path) -> None:
    for name in ("MANIFEST-000100", "MANIFEST-20"):
        (store / name).write_bytes(MANIFEST)
    names = [one["file"] for one in objects(store) if one["record"] == "heading"]
    assert names[:4] == ["CURRENT", "MANIFEST-000002", "MANIFEST-20", "MANIFEST-000100"]
    assert names[4:] == ["000007.ldb", "000009.log", "000010.sst"]


def test_a_file_is_known_by_the_ending_of_its_name(store: Path) -> None:
    for name, copy in (("000009.log", "saved.log"), ("MANIFEST-000002", "MANIFEST-old")):
        (store / copy).write_bytes((store / name).read_bytes())
        assert dump(store / copy) == dump(store / name)


def test_a_relative_path(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(store)
    assert dump("000009.log") == (0, lines(LOG_TEXT), "")
    assert dump(".") == dump(store)


def test_hex_and_keys_only_and_limit(store: Path) -> None:
    log = store / "000009.log"
    assert "  put 'c3a909' 'ff5c'" in dump(log, "--hex")[1]
    assert dump(log, "--keys-only")[1][1] == "  put 'fig'"
    assert dump(log, "--limit", "1")[1] == lines(LOG_TEXT)[:2]
    assert dump(log, "--limit", "2")[1] == lines(LOG_TEXT)
    assert dump(log, "--limit", "0") == (0, [], "")
    table = store / "000007.ldb"
    assert "'6170706c65' @ 1 : val => '726564'" in dump(table, "--hex")[1]
    assert "'apple' @ 1 : val" in dump(table, "--keys-only")[1]
    assert dump(table, "--limit", "1")[1] == lines(TABLE_TEXT)[:2]
    assert len(dump(store / "MANIFEST-000002", "--limit", "1")[1]) == 5
    status, out, err = dump(log, "--annotate", "--keys-only")
    assert (status, out, err.count("\n")) == (2, [], 1)
    assert dump(log, "--annotate", "--limit", "2")[1] == [
        " 0  ba bf 3b 8c              checksum of type and data",
        " 4  17 00                    length 23",
    ]


# Filters


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (Bloom64Policy(), r"  filter 0: 20,000 bits, [\d,]+ set, 7 probes"),
        (BinaryFusePolicy(), r"  filter 0: fuse, 4 slots a key, 38 \+ 3 segments of 64, seed \d"),
    ],
    ids=repr,
)
def test_filters_of_lsmkv_are_decoded(tmp_path: Path, policy: Any, told: str) -> None:
    entries = [(pack(b"%02d:%05d" % (n // 50, n), n + 1, 1), b"") for n in range(2000)]
    path = tmp_path / "1.ldb"
    extractor = DelimitedPrefix(b":")
    options = {"filter_layout": "table", "prefix_extractor": extractor}
    path.write_bytes(make_table(entries, filter_policy=policy, **options))
    lines = dump(path)[1]
    assert any(re.fullmatch(told, line) for line in lines)
    assert "  filter of prefixes, lsmkv.DelimitedPrefix.3a: 400 bits, " in "\n".join(lines)
    annotated = "\n".join(dump(path, "--annotate")[1])
    assert "filter of prefixes: 400 bits, " in annotated
    assert "meta block of an unknown kind" not in annotated
    by_kind = [json.loads(line) for line in dump(path, "--json")[1]]
    filters = [one for one in by_kind if one.get("policy", "").startswith("lsmkv.")]
    whole, prefixes = [one for one in filters if "bytes" in one]
    assert prefixes["extractor"] == "lsmkv.DelimitedPrefix.3a"
    assert prefixes["probes"] == 7
    if isinstance(policy, BinaryFusePolicy):
        assert (
            "filter for the whole table: fuse, 2,624 slots of a byte, 4 for each key" in annotated
        )
        assert (whole["arity"], whole["segments"], whole["segment_slots"]) == (4, 38, 64)
    else:
        assert (whole["bits"], whole["probes"]) == (20_000, 7)


def test_filters_of_every_layout() -> None:
    entries = [(pack(b"%05d" % n, n + 1, 1), bytes(40)) for n in range(300)]
    data = make_table(entries, filter_layout="both", block_size=512)
    shown = records("1.ldb", data)
    blocks = [one for one in shown if isinstance(one, Block) and "filter" in one.kind]
    assert [(one.kind, one.name) for one in blocks] == [
        ("filter", b"filter.leveldb.BuiltinBloomFilter2"),
        ("full filter", b"fullfilter.leveldb.BuiltinBloomFilter2"),
    ]
    filters = [one for one in shown if isinstance(one, Filter)]
    policy = BloomFilterPolicy(10)
    for one in filters:
        covered = [
            entry.key.user_key
            for entry in shown
            if isinstance(entry, Entry)
            and (one.first is None or one.first <= entry.block <= (one.last or 0))
        ]
        assert covered
        assert one.data == policy.create_filter(covered)
    assert filters[-1].first is None
    assert [(one.first, one.last) for one in filters[:2]] == [(0, 2047), (2048, 4095)]


def test_a_filter_without_keys_and_one_of_another_policy(tmp_path: Path) -> None:
    class Odd:
        name = "odd.\x1bpolicy"

        def create_filter(self, keys: Any, /) -> bytes:
            return b"\x01\x02\x03"

        def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
            return True

    entries = [(pack(b"%05d" % n, n + 1, 1), bytes(3000)) for n in range(3)]
    path = tmp_path / "1.ldb"
    path.write_bytes(make_table(entries, filter_policy=Odd()))
    _, printed, _ = dump(path)
    start = next(at for at, line in enumerate(printed) if "filter block" in line)
    expected = r"--- offset 9073; filter block 'filter.odd.\x1bpolicy'; size 27, uncompressed"
    assert printed[start] == expected
    assert printed[start + 1 : start + 4] == [
        "  filter 0, blocks at 0 to 2047: 010203",
        "  filter 1, blocks at 2048 to 4095: empty",
        "  filter 2, blocks at 4096 to 6143: 010203",
    ]


# Annotated


def test_a_log_byte_by_byte(store: Path) -> None:
    expected = r"""
 0  ba bf 3b 8c              checksum of type and data
 4  17 00                    length 23
 6  01                       type 1: FULL
 7  07 00 00 00 00 00 00 00  sequence 7
15  01 00 00 00              operations: 1
19  01                       put, sequence 7
20  03                       key length 3
21  66 69 67                 key 'fig'
24  05                       value length 5
25  67 72 65 65 6e           value 'green'
30  2a f8 fd 53              checksum of type and data
34  1e 00                    length 30
36  01                       type 1: FULL
37  08 00 00 00 00 00 00 00  sequence 8
45  03 00 00 00              operations: 3
49  01                       put, sequence 8
50  03                       key length 3
51  c3 a9 09                 key 'é\t'
54  02                       value length 2
55  ff 5c                    value '\xff\\'
57  00                       delete, sequence 9
58  03                       key length 3
59  6f 6c 64                 key 'old'
62  00                       delete, sequence 10
63  03                       key length 3
64  6f 6c 64                 key 'old'
"""
    assert dump(store / "000009.log", "--annotate") == (0, lines(expected), "")


def meanings(name: str, data: bytes) -> list[tuple[int, str, str]]:
    """The offset, hexadecimal bytes and meaning of each piece that covers the file."""
    return [
        (one.offset, one.data.hex(), one.meaning)
        for one in records(name, data, annotate=True)
        if isinstance(one, Piece) and one.block < 0
    ]


def test_a_manifest_byte_by_byte() -> None:
    assert meanings("MANIFEST-1", MANIFEST)[3:12] == [
        (7, "01", "tag 1: comparator"),
        (8, "1a", "length 26"),
        (9, b"leveldb.BytewiseComparator".hex(), "name 'leveldb.BytewiseComparator'"),
        (35, "02", "tag 2: log number"),
        (36, "03", "3"),
        (37, "09", "tag 9: previous log number"),
        (38, "00", "0"),
        (
            39,
            "16dc262a",
            "checksum of type and data",
        ),
        (43, "3400", "length 52"),
    ]
    assert [meaning for _, _, meaning in meanings("MANIFEST-1", MANIFEST)[13:]] == [
        "tag 3: next file number",
        "8",
        "tag 4: last sequence",
        "300",
        "tag 5: compact pointer",
        "level 1",
        "key, length 9",
        "key 'm'",
        "tag: sequence 9, val",
        *[
            one
            for level, number in ((0, 3), (0, 5), (1, 4))
            for one in ("tag 6: deleted file", f"level {level}", f"number {number}")
        ],
        "tag 7: new file",
        "level 2",
        "number 7",
        "size 1234",
        "smallest key, length 10",
        r"smallest key 'a\n'",
        "tag: sequence 1, val",
        "largest key, length 9",
        "largest key 'z'",
        "tag: sequence 300, del",
    ]


def test_a_table_byte_by_byte() -> None:
    told = meanings("1.ldb", TABLE)
    assert told[:16] == [
        (0, "00", "shared 0"),
        (1, "0d", "unshared 13"),
        (2, "00", "value length 0"),
        (3, b"apple".hex(), "key 'apple'"),
        (8, "002c010000000000", "tag: sequence 300, del"),
        (16, "05", "shared 5"),
        (17, "08", "unshared 8"),
        (18, "03", "value length 3"),
        (19, "0101000000000000", "tag of key 'apple' (shares 5): sequence 1, val"),
        (27, b"red".hex(), "value 'red'"),
        (30, "02", "shared 2"),
        (31, "0d", "unshared 13"),
        (32, "06", "value length 6"),
        (33, b"ricot".hex(), "key 'apricot' (shares 2)"),
        (38, "0102000000000000", "tag: sequence 2, val"),
        (46, b"orange".hex(), "value 'orange'"),
    ]
    assert [(at, meaning) for at, _, meaning in told[16:]] == [
        (52, "restart point 0: entry at 0"),
        (56, "restart points: 1"),
        (60, "end of the data block: uncompressed"),
        (61, "checksum"),
        (65, "filter 0, for blocks at 0 to 2047: 64 bits, 12 set"),
        (73, "probes: 6"),
        (74, "filter 0 starts at 0"),
        (78, "the filters end, and their offsets start, at 9"),
        (82, "one filter for each 2^11 bytes of the file"),
        (83, "end of the filter block: uncompressed"),
        (84, "checksum"),
        (88, "shared 0"),
        (89, "unshared 34"),
        (90, "value length 2"),
        (91, "name 'filter.leveldb.BuiltinBloomFilter2'"),
        (125, "block: offset 65"),
        (126, "block: size 18"),
        (127, "restart point 0: entry at 0"),
        (131, "restart points: 1"),
        (135, "end of the metaindex block: uncompressed"),
        (136, "checksum"),
        (140, "shared 0"),
        (141, "unshared 9"),
        (142, "value length 2"),
        (143, "separator 'b'"),
        (144, "tag: sequence 72057594037927935, val"),
        (152, "block: offset 0"),
        (153, "block: size 60"),
        (154, "restart point 0: entry at 0"),
        (158, "restart points: 1"),
        (162, "end of the index block: uncompressed"),
        (163, "checksum"),
        (167, "metaindex: offset 88"),
        (168, "metaindex: size 47"),
        (169, "index: offset 140"),
        (171, "index: size 22"),
        (172, "padding"),
        (207, "magic number"),
    ]


def test_versions_that_share_a_part_of_their_tags() -> None:
    data = make_table([(pack(b"k", 0x207, 1), b""), (pack(b"k", 7, 1), b"")], bits=0)
    told = [meaning for _, _, meaning in meanings("1.ldb", data)]
    assert "tag of key 'k' (shares 3): sequence 7, val, its last 6 bytes" in told


def test_a_batch_across_two_blocks(tmp_path: Path) -> None:
    first = batch_record(1, 1, encode_put(b"a", bytes(BLOCK_SIZE - 54)))
    second = batch_record(2, 1, encode_put(b"a longer key", b"its value, longer still"))
    data = make_log([first, second])
    border = BLOCK_SIZE
    told = [one for one in meanings("1.log", data) if one[0] > 100]
    offset = len(make_log([first]))
    assert [(at, meaning) for at, _, meaning in told] == [
        (offset, "checksum of type and data"),
        (offset + 4, f"length {border - offset - 7}"),
        (offset + 6, "type 2: FIRST"),
        (offset + 7, "sequence 2"),
        (offset + 15, "operations: 1"),
        (offset + 19, "put, sequence 2"),
        (offset + 20, "key length 12"),
        (offset + 21, "key 'a longer key'"),
        (border, "checksum of type and data"),
        (border + 4, f"length {len(data) - border - 7}"),
        (border + 6, "type 4: LAST"),
        (border + 7, "key 'a longer key' (goes on)"),
        (len(data) - 24, "value length 23"),
        (len(data) - 23, "value 'its value, longer still'"),
    ]
    (tmp_path / "1.log").write_bytes(data)
    assert dump(tmp_path / "1.log")[1][2:] == [
        f"--- offset {offset}; sequence 2",
        "  put 'a longer key' 'its value, longer still'",
    ]


def test_the_end_of_a_block_without_room_for_a_header() -> None:
    first = batch_record(1, 1, encode_put(b"a", bytes(BLOCK_SIZE - 30)))
    data = make_log([first, LOG[7:30]])
    filler = (BLOCK_SIZE - 5, "00" * 5, "the block's end: no room for a header")
    assert filler in meanings("1.log", data)
    assert len(records("1.log", data)) == 4


@pytest.mark.parametrize("compression", [1, 2])
def test_a_compressed_block_is_shown_stored_and_plain(compression: int, tmp_path: Path) -> None:
    entries = [(pack(b"key%03d" % n, n, 1), b"value") for n in range(50)]
    data = make_table(entries, bits=0, compression=compression)
    plain = make_table(entries, bits=0)
    heading = records("1.ldb", data)[0]
    assert isinstance(heading, Block)
    codec = ("snappy", "zstd")[compression - 1]
    assert (heading.codec, heading.plain_size) == (codec, records("1.ldb", plain)[0].plain_size)  # type: ignore[union-attr]
    pieces = [one for one in records("1.ldb", data, annotate=True) if isinstance(one, Piece)]
    assert pieces[0].offset == 0
    assert pieces[0].data == data[: heading.handle.size]
    assert codec in pieces[0].meaning
    decoded = [one for one in pieces if one.block == 0]
    assert b"".join(one.data for one in decoded) == plain[: heading.plain_size]
    (tmp_path / "1.ldb").write_bytes(data)
    row = dump(tmp_path / "1.ldb", "--annotate", "--limit", "2")[1][-1]
    assert row.endswith("  00                       shared 0")
    assert row.startswith("    ")


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
    plain_sizes = {one.handle.offset: one.plain_size for one in blocks}
    for block, size in inside.items():
        assert plain_sizes.get(block, size) == size
    if same_faults:
        assert bool(faults(name, data)) == bool(faults(name, data, annotate=True))


def random_file(rng: random.Random) -> tuple[str, bytes]:
    def text(longest: int) -> bytes:
        return bytes(rng.choices(b"abc\xff\0", k=rng.randrange(longest)))

    kind = rng.randrange(3)
    if kind == 0:
        payloads = []
        for _ in range(rng.randrange(8)):
            count = rng.randrange(5)
            size = rng.choice([20, 20, 300, 50_000])
            operations = [
                encode_put(text(20), text(size)) if rng.random() < 0.7 else encode_delete(text(20))
                for _ in range(count)
            ]
            payloads.append(batch_record(rng.randrange(1 << 40), count, b"".join(operations)))
        return "000001.log", make_log(payloads)
    if kind == 1:
        edits = []
        for _ in range(rng.randrange(6)):
            one = edit(last_sequence=rng.randrange(1 << 56), next_file_number=rng.randrange(99))
            for _ in range(rng.randrange(4)):
                one.delete_file(rng.randrange(7), rng.randrange(1 << 30))
                smallest, largest = pack(text(9), 1, 1), pack(text(30), 2, 0)
                one.add_file(rng.randrange(7), FileMetaData(5, 1 << 33, smallest, largest))
                one.compact_pointers.append((1, largest))
            edits.append(one.encode())
        return "MANIFEST-000001", make_log(edits)
    sequence = iter(range(1 << 20, 0, -1))
    keys = sorted(text(12) for _ in range(rng.randrange(150)))
    entries = [
        (pack(key, next(sequence), rng.randrange(2)), text(rng.choice([5, 200]))) for key in keys
    ]
    return "000001.ldb", make_table(
        entries,
        bits=rng.choice([0, 10]),
        compression=rng.randrange(3),
        filter_layout=rng.choice(["block", "table", "both"]),
        block_size=rng.choice([100, 1000, 4096]),
        block_restart_interval=rng.choice([1, 3, 16]),
    )


def damaged(rng: random.Random, data: bytes) -> bytes:
    content = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(content) + 1)
        match rng.randrange(4):
            case 0:
                del content[at:]
            case 1:
                content[at:at] = rng.randbytes(rng.randrange(20))
            case 2:
                content[at : at + 9] = bytes(9)
            case _:
                content[at : at + 1] = bytes([rng.randrange(256)])
    return bytes(content)


@pytest.mark.parametrize("seed", range(150))
def test_every_byte_is_in_exactly_one_piece(seed: int) -> None:
    rng = random.Random(seed)
    name, data = random_file(rng)
    covers(name, data)
    assert faults(name, data) == []
    for _ in range(2):
        covers(name, damaged(rng, data))
    covers(name, rng.randbytes(rng.randrange(500)))


def test_current_and_empty_files_are_covered_too() -> None:
    for content in (b"MANIFEST-000001\n", b"MANIFEST-1", b"x" * 1000, b"", b"\xff\n"):
        covers("CURRENT", content)
    for name in ("1.log", "MANIFEST-1", "1.ldb"):
        covers(name, b"")
    assert faults("1.log", b"") == []
    assert faults("1.ldb", b"") != []


def test_a_long_value_is_repeated_in_part_only() -> None:
    data = make_log([batch_record(1, 1, encode_put(b"k", b"v" * 5000))])
    assert meanings("1.log", data)[-1][2] == f"value '{'v' * 64}'... of 5,000 bytes"


# JSON


def objects(*arguments: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in dump(*arguments, "--json")[1]]


def test_json_of_a_log(store: Path) -> None:
    assert objects(store / "000009.log") == [
        {"file": "000009.log", "record": "heading", "kind": "write-ahead log", "size": 67},
        {"file": "000009.log", "record": "batch"}
        | {"offset": 0, "end": 30, "sequence": 7, "operations": 1},
        {"file": "000009.log", "record": "operation", "offset": 0, "sequence": 7}
        | {"kind": "put", "key": "fig", "value": "green"},
        {"file": "000009.log", "record": "batch"}
        | {"offset": 30, "end": 67, "sequence": 8, "operations": 3},
        {"file": "000009.log", "record": "operation", "offset": 30, "sequence": 8}
        | {"kind": "put", "key": r"é\t", "value": r"\xff\\"},
        {"file": "000009.log", "record": "operation", "offset": 30, "sequence": 9}
        | {"kind": "del", "key": "old"},
        {"file": "000009.log", "record": "operation", "offset": 30, "sequence": 10}
        | {"kind": "del", "key": "old"},
    ]


def test_json_of_a_manifest(store: Path) -> None:
    assert objects(store / "MANIFEST-000002", "--hex")[2] == {
        "file": "MANIFEST-000002",
        "record": "edit",
        "offset": 39,
        "end": len(MANIFEST),
        "next_file_number": 8,
        "last_sequence": 300,
        "compact_pointers": [{"level": 1, "key": "6d", "sequence": 9, "kind": "val"}],
        "deleted_files": [
            {"level": level, "number": number} for level, number in ((0, 3), (0, 5), (1, 4))
        ],
        "new_files": [
            {
                "level": 2,
                "number": 7,
                "size": 1234,
                "smallest": {"key": "610a", "sequence": 1, "kind": "val"},
                "largest": {"key": "7a", "sequence": 300, "kind": "del"},
            }
        ],
    }


def test_json_of_a_table(store: Path) -> None:
    found = [one for one in objects(store / "000007.ldb") if one.pop("file") == "000007.ldb"]
    assert found == [
        {"record": "heading", "kind": "table", "size": len(TABLE)},
        {"record": "block", "kind": "data", "name": "", "offset": 0, "size": 60}
        | {"compression": "uncompressed", "plain_size": 60, "restarts": [0]},
        {"record": "entry", "block": 0, "offset": 0, "restart": True}
        | {"key": "apple", "sequence": 300, "kind": "del", "value": ""},
        {"record": "entry", "block": 0, "offset": 16, "restart": False}
        | {"key": "apple", "sequence": 1, "kind": "val", "value": "red"},
        {"record": "entry", "block": 0, "offset": 30, "restart": False}
        | {"key": "apricot", "sequence": 2, "kind": "val", "value": "orange"},
        {"record": "block", "kind": "filter", "name": "filter.leveldb.BuiltinBloomFilter2"}
        | {"offset": 65, "size": 18, "compression": "uncompressed"}
        | {"plain_size": 18, "restarts": None},
        {"record": "filter", "block": 65, "offset": 0, "number": 0, "first": 0, "last": 2047}
        | {"policy": "leveldb.BuiltinBloomFilter2", "bits": 64, "set": 12, "probes": 6}
        | {"bytes": TABLE[65:74].hex()},
        {"record": "block", "kind": "metaindex", "name": "", "offset": 88, "size": 47}
        | {"compression": "uncompressed", "plain_size": 47, "restarts": [0]},
        {"record": "handle", "block": 88, "offset": 0, "restart": True}
        | {"key": "filter.leveldb.BuiltinBloomFilter2", "handle": {"offset": 65, "size": 18}},
        {"record": "block", "kind": "index", "name": "", "offset": 140, "size": 22}
        | {"compression": "uncompressed", "plain_size": 22, "restarts": [0]},
        {"record": "handle", "block": 140, "offset": 0, "restart": True, "key": "b"}
        | {"sequence": (1 << 56) - 1, "kind": "val", "handle": {"offset": 0, "size": 60}},
        {"record": "footer", "offset": 167, "metaindex": {"offset": 88, "size": 47}}
        | {"index": {"offset": 140, "size": 22}},
    ]


def test_json_agrees_with_the_text(tmp_path: Path) -> None:
    rng = random.Random(1)
    with lsmkv.DB(tmp_path / "db", create_if_missing=True, block_size=300) as db:
        for n in range(400):
            key = rng.randbytes(3)
            db.put(key, rng.randbytes(20))
            if n % 3 == 0:
                db.delete(key)
            if n == 300:
                db.flush()
    for options in ([], ["--hex"], ["--keys-only"]):
        status, printed, _ = dump(tmp_path / "db", *options)
        assert status == 0
        rebuilt = []
        for one in objects(tmp_path / "db", *options):
            value = "" if "value" not in one else f" '{one['value']}'"
            if one["record"] == "operation":
                rebuilt.append(f"  {one['kind']} '{one['key']}'{value}")
            elif one["record"] == "entry":
                value = value and f" =>{value}"
                rebuilt.append(f"'{one['key']}' @ {one['sequence']} : {one['kind']}{value}")
        assert len(rebuilt) > 400
        assert [line for line in printed if line.startswith(("'", "  put", "  del"))] == rebuilt


def test_keys_and_values_in_json_can_be_unescaped(store: Path) -> None:
    plain = objects(store / "000009.log")
    for one, other in zip(plain, objects(store / "000009.log", "--hex"), strict=True):
        for name in ("key", "value"):
            if name in one:
                assert unescape(one[name].encode()) == bytes.fromhex(other[name])


def test_control_characters_are_always_escaped(tmp_path: Path) -> None:
    path = tmp_path / "\x9b[31m.log"
    path.write_bytes(LOG[:-1])
    manifest = tmp_path / "MANIFEST-1"
    manifest.write_bytes(make_log([edit(comparator="\x9b\\x").encode()]))
    for file in (path, manifest):
        for options in ([], ["--json"], ["--annotate"], ["--annotate", "--json"]):
            _, printed, err = dump(file, *options)
            assert all(line.isprintable() for line in [*printed, *err.splitlines()])
    assert objects(manifest)[1]["comparator"] == r"\xc2\x9b\\x"
    assert dump(manifest)[1][1] == r"  Comparator: \xc2\x9b\\x"


def test_json_of_annotations(store: Path) -> None:
    for name, content in (
        ("000007.ldb", TABLE),
        ("000009.log", LOG),
        ("MANIFEST-000002", MANIFEST),
    ):
        heading, *pieces = objects(store / name, "--annotate")
        assert heading["size"] == len(content)
        assert b"".join(bytes.fromhex(one["bytes"]) for one in pieces) == content
        assert {one["record"] for one in pieces} == {"piece"}
        assert pieces[-1]["offset"] + pieces[-1]["size"] == len(content)


# Damage


def test_every_flipped_byte_of_a_table_is_detected() -> None:
    for name, content in (("1.log", LOG), ("MANIFEST-1", MANIFEST), ("1.ldb", TABLE)):
        for at in range(len(content)):
            broken = bytearray(content)
            broken[at] ^= 0x40
            found = faults(name, bytes(broken))
            if name == "1.ldb" and 172 <= at < 207:  # the footer's padding has no meaning
                assert found == []
            else:
                assert found != []
                assert {one.kind for one in found} <= {"damage", "torn"}


def test_every_truncation_of_a_table_is_detected() -> None:
    for cut in range(len(TABLE)):
        (fault,) = faults("1.ldb", TABLE[:cut])
        assert fault.offset == max(0, cut - 48)
    for name, content, borders in (("1.log", LOG, {0, 30}), ("MANIFEST-1", MANIFEST, {0, 39})):
        for cut in range(len(content)):
            assert [one.kind for one in faults(name, content[:cut])] == (
                [] if cut in borders else ["torn"]
            )
            assert faults(name, content[:cut], annotate=True) == faults(name, content[:cut])


def test_a_flip_in_one_of_many_blocks(tmp_path: Path) -> None:
    entries = [(pack(b"%05d" % n, n + 1, 1), bytes(40)) for n in range(100)]
    data = bytearray(make_table(entries, block_size=500))
    sound = records("1.ldb", bytes(data))
    blocks = [one.handle.offset for one in sound if isinstance(one, Block) and one.kind == "data"]
    data[blocks[3] + 5] ^= 1
    path = tmp_path / "1.ldb"
    path.write_bytes(data)
    status, printed, err = dump(path)
    mark = f"!!! offset {blocks[3]}; damage: block checksum mismatch"
    assert printed[printed.index(mark) + 1].startswith(f"--- offset {blocks[4]}; data block")
    lost = [one for one in sound if isinstance(one, Entry) and one.block == blocks[3]]
    assert sum(line.startswith("'") for line in printed) == 100 - len(lost)
    assert (status, err) == (2, f"lsmkv: {path}: 1 damaged place\n")
    assert json.loads(dump(path, "--json")[1][printed.index(mark) + 1]) == {
        "file": "1.ldb",
        "record": "fault",
        "kind": "damage",
        "offset": blocks[3],
        "reason": "block checksum mismatch",
    }
    status, printed, err = dump(path, "--annotate")
    assert mark in printed
    assert [line for line in printed if line.endswith("checksum, wrong")] != []
    assert sum("end of the data block" in line for line in printed) == len(blocks)
    assert (status, err) == (2, f"lsmkv: {path}: 1 damaged place\n")


def test_a_damaged_index_and_metaindex() -> None:
    for at, missing in ((145, Entry), (100, type(None))):
        broken = bytearray(TABLE)
        broken[at] ^= 1
        found = records("1.ldb", bytes(broken))
        assert not any(isinstance(one, missing) for one in found)
        (fault,) = [one for one in found if isinstance(one, Fault)]
        kind = "index" if at == 145 else "metaindex"
        assert fault.offset == {"index": 140, "metaindex": 88}[kind]
        assert fault.reason == f"block checksum mismatch; it is the {kind}"
        assert type(found[-1]).__name__ == "Footer"
    assert any(isinstance(one, Entry) for one in found)


def test_a_log_is_read_on_after_a_bad_record(tmp_path: Path) -> None:
    path = tmp_path / "1.log"
    path.write_bytes(LOG[:20] + b"\xff" + LOG[21:])
    status, printed, err = dump(path)
    assert printed == [
        "!!! offset 0; damage: fragment checksum mismatch",
        *lines(LOG_TEXT)[2:],
    ]
    assert (status, err) == (2, f"lsmkv: {path}: 1 damaged place\n")


def test_a_torn_log(tmp_path: Path) -> None:
    path = tmp_path / "1.log"
    path.write_bytes(LOG[:-5])
    for zeros in (1, 4, 40, BLOCK_SIZE, 3 * BLOCK_SIZE):  # room for more records
        covers("1.log", LOG + bytes(zeros))
        assert faults("1.log", LOG + bytes(zeros)) == []
        torn = LOG[:-5] + bytes(5 + zeros)
        covers("1.log", torn)
        assert faults("1.log", torn) == [Fault("torn", 30, "fragment checksum mismatch")]
    status, printed, err = dump(path)
    assert printed == [
        *lines(LOG_TEXT)[:2],
        "!!! offset 30; torn: a fragment runs past its block",
    ]
    assert (status, err) == (2, f"lsmkv: {path}: 1 torn write\n")
    long = make_log([batch_record(1, 1, encode_put(b"k", b"v" * 90_000))])
    for half in (
        bytes(7) + long[7:],  # a copy whose first bytes are stored last
        bytes(64) + long[64:50_000],
        long[:BLOCK_SIZE] + bytes(6) + long[BLOCK_SIZE + 6 :],
        long[: BLOCK_SIZE + 6],
    ):
        half += bytes(-len(half) % BLOCK_SIZE)
        covers("1.log", half)
        assert [one.kind for one in faults("1.log", half)] == ["torn"]
    path.write_bytes(make_log([batch_record(1, 1, encode_put(b"k", bytes(90_000)))])[:BLOCK_SIZE])
    assert dump(path)[1] == ["!!! offset 0; torn: a record without its end"]
    assert dump(path, "--annotate")[1][0] == "!!! offset 0; torn: a record without its end"


@pytest.mark.parametrize(
    ("payload", "shown", "reason"),
    [
        (b"short", 0, "a record of 5 bytes, too short for a batch"),
        (batch_record(1, 2, encode_put(b"a", b"b")), 1, "a batch of 1 operation states 2"),
        (
            batch_record(1, 2, encode_put(b"a", b"b") + b"\x07"),
            1,
            "a batch operation of kind 7, at byte 17 of the record",
        ),
        (
            batch_record(1, 2, encode_delete(b"a") + b"\x01\x7fk"),
            1,
            "string runs past the end, at byte 16 of the record",
        ),
    ],
)
def test_a_sound_record_with_a_bad_batch(payload: bytes, shown: int, reason: str) -> None:
    data = make_log([payload, LOG[7:30]])
    found = records("1.log", data)
    assert found[:-2] != []
    assert [one for one in found if isinstance(one, Fault)] == [Fault("damage", 0, reason)]
    assert sum(isinstance(one, Operation) for one in found) == shown + 1
    assert isinstance(found[-2], Batch)
    covers("1.log", data)


def test_a_sound_record_with_a_bad_edit() -> None:
    data = make_log([b"\x07\x80\x04", SMALL.encode(), b"\x06\x80\x04\x01"])
    first, good, last = records("MANIFEST-1", data)
    assert first == Fault("damage", 0, "a level of 512, at byte 1 of the record")
    assert last == Fault("damage", 10 + 39, "a level of 512, at byte 1 of the record")
    assert type(good).__name__ == "Edit"
    covers("MANIFEST-1", data)
    covers("MANIFEST-1", make_log([b"\x06\x80\x04\x01"]))


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


@pytest.mark.parametrize(
    ("block", "entries", "reason"),
    [
        (GOOD + b"\0\x09\x7f" + pack(b"b", 1, 1) + ONE_RESTART, 1, "an entry runs past the block"),
        (GOOD + b"\0\x09\4" + pack(b"b", 1, 1) + ONE_RESTART, 1, "an entry runs past the block"),
        (
            GOOD + b"\1\x08\0" + pack(b"", 9, 0) + bytes(4) + b"\x0d\0\0\0" + b"\2\0\0\0",
            2,
            "a restart point at 13, where there is no whole key",
        ),
        (GOOD + b"\x0a\1\0xx" + ONE_RESTART, 1, "shares more than the key before it has"),
        (GOOD + b"\xff\xff\xff\xff\xff\xff" + ONE_RESTART, 1, "varint32"),
        (
            GOOD + bytes(4) + b"\1\0\0\0" + b"\2\0\0\0",
            1,
            "a restart point at 1, where there is no",
        ),
        (GOOD + b"\xff\0\0\0", 0, "the block is too small for 255 restart points"),
        (b"", 0, "truncated fixed32"),
        (b"\0\3\1key" + b"v" + ONE_RESTART, 1, "a key that is not an internal key"),
        (b"\0\x09\1" + pack(b"a", 1, 7) + b"v" + ONE_RESTART, 1, "not an internal key"),
    ],
)
def test_a_sound_block_with_bad_content(block: bytes, entries: int, reason: str) -> None:
    data = forged(block)
    found = records("1.ldb", data)
    assert sum(isinstance(one, Entry) for one in found) == entries
    (fault,) = [one for one in found if isinstance(one, Fault)]
    assert reason in fault.reason
    assert fault.offset == 0
    covers("1.ldb", data)


def test_a_bad_key_is_printed_as_leveldb_does(tmp_path: Path) -> None:
    path = tmp_path / "1.ldb"
    path.write_bytes(forged(b"\0\3\1key" + b"v" + ONE_RESTART))
    assert "badkey 'key' => 'v'" in dump(path)[1]
    assert dump(path, "--json")[0] == 2


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "an entry that holds no handle, at byte 0 of the block"),
        (BlockHandle(10, 1 << 40).encode(), "a block of 1,099,511,627,776 bytes beyond the end"),
        (BlockHandle(1 << 63, 5).encode(), "beyond the end of the file"),
        (BlockHandle(3, 4).encode(), "block checksum mismatch"),
    ],
)
def test_an_index_with_bad_handles(value: bytes, reason: str) -> None:
    data = forged(GOOD + ONE_RESTART, value)
    assert [reason in one.reason for one in faults("1.ldb", data)] == [True]
    covers("1.ldb", data)
    unexplained = [one for one in meanings("1.ldb", data) if "no handle points" in one[2]]
    assert unexplained or b"\3\4" in value


def test_overlapping_blocks_are_a_fault_and_not_repeated() -> None:
    data = forged(GOOD + ONE_RESTART)
    footer = Footer.decode(data[-48:])
    twice = Footer(footer.index, footer.index).encode()
    covers("1.ldb", data[:-48] + twice, same_faults=False)
    told = [one.reason for one in faults("1.ldb", data[:-48] + twice, annotate=True)]
    assert "a metaindex block inside another one" in told


def test_an_unknown_codec_is_not_damage(tmp_path: Path) -> None:
    path = tmp_path / "1.ldb"
    path.write_bytes(forged(b"whatever", kind=7))
    status, printed, err = dump(path)
    assert printed[0] == "!!! offset 0; codec: a block of unknown compression type 7"
    assert not any("damage" in line for line in printed)
    assert (status, err) == (2, f"lsmkv: {path}: 1 unknown-codec block\n")
    assert "end of the data block: compression type 7" in "\n".join(dump(path, "--annotate")[1])
    covers("1.ldb", path.read_bytes())


def test_bad_filters() -> None:
    block = TABLE[65:83]
    for at, value, reason in (
        (13, 0xFF, "filter offsets beyond the filter block"),
        (9, 0xFF, "filter offsets that fall"),
    ):
        bad = bytearray(block)
        bad[at] = value
        body = bytes(bad) + b"\0"
        stored = body + masked_crc32c(body).to_bytes(4, "little")
        data = TABLE[:65] + stored + TABLE[88:]
        (fault,) = faults("1.ldb", data)
        assert reason in fault.reason
        assert fault.offset == 65
        covers("1.ldb", data)


def test_a_filter_block_that_begins_with_other_bytes() -> None:
    block = bytearray(TABLE[65:83])
    block[9] = 2
    body = bytes(block) + b"\0"
    data = TABLE[:65] + body + masked_crc32c(body).to_bytes(4, "little") + TABLE[88:]
    (told,) = [one for one in records("1.ldb", data) if isinstance(one, Filter)]
    assert (told.offset, told.data) == (2, TABLE[67:74])
    assert (65, "4005", "bytes before the first filter") in meanings("1.ldb", data)
    covers("1.ldb", data)
    assert faults("1.ldb", data) == []


def test_a_meta_block_of_another_kind() -> None:
    start = len(GOOD + ONE_RESTART) + 5
    data = forged(GOOD + ONE_RESTART)
    metaindex = BlockBuilder(1)
    metaindex.add(b"leveldb.properties", BlockHandle(0, start - 5).encode())
    sealed = seal_block(metaindex.finish(), 0)
    footer = Footer.decode(data[-48:])
    moved = len(data) - 48
    data = data[:-48] + sealed + Footer(BlockHandle(moved, len(sealed) - 5), footer.index).encode()
    found = records("1.ldb", data)
    (block,) = [one for one in found if isinstance(one, Block) and one.kind == "meta"]
    assert block.name == b"leveldb.properties"
    assert sum(isinstance(one, Handle) for one in found) == 2


# Paths, and what is not a store's


def fails(done: Done, *words: str) -> None:
    status, printed, err = done
    assert (status, printed, err.count("\n")) == (2, [], 1)
    for word in words:
        assert word in err


def test_paths_without_a_file_of_a_store_are_errors(tmp_path: Path, store: Path) -> None:
    fails(dump(tmp_path / "none.log"), "none.log: No such file or directory")
    fails(dump(tmp_path / "nowhere"), "nowhere: No such file or directory")
    fails(dump(tmp_path / "none" / "1.log"), "none/1.log: No such file or directory")
    fails(dump(tmp_path), "no database here")
    reason = "notes.txt: not the name of a store's file"
    fails(dump(store / "notes.txt"), reason, "*.ldb", "MANIFEST-*")
    fails(dump(store / "LOCK"), "not the name of a store's file")
    assert sorted(tmp_path.iterdir()) == [store]


def test_a_text_file_under_a_tables_name(tmp_path: Path) -> None:
    path = tmp_path / "a.ldb"
    path.write_bytes(b"Dear diary, " * 20)
    _, printed, _ = dump(path)
    reason = "not a table: its footer has no magic number; nothing can be found without it"
    assert printed == [f"!!! offset 192; damage: {reason}"]


def test_a_rocksdb_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "1.sst"
    path.write_bytes(bytes(60) + bytes.fromhex("f7cff485b741e288"))
    fails(dump(path), "1.sst is a RocksDB table")
    status, printed, err = dump(tmp_path)
    assert printed[-1] == f"!!! unreadable: {path} is a RocksDB table"
    assert status == 2
    assert "1 unreadable file" in err
    (tmp_path / "IDENTITY").write_bytes(b"")
    fails(dump(tmp_path), "is a RocksDB database")


def test_links_and_fifos_are_refused(store: Path) -> None:
    (store / "000020.log").symlink_to(store / "000009.log")
    os.mkfifo(store / "000021.ldb")
    fails(dump(store / "000020.log"), "000020.log", "symbolic link")
    fails(dump(store / "000021.ldb"), "000021.ldb", "not a regular file")
    (store / "000000.ldb").mkdir()
    status, printed, err = dump(store)
    assert [line for line in printed if line.startswith("!!!")] == [
        "!!! unreadable: a directory, where a file is expected",
        printed[-3],
        "!!! unreadable: not a regular file",
    ]
    assert "symbolic link" in printed[-3]
    assert lines(TABLE_TEXT)[1] in printed  # and the rest is there
    assert (status, err) == (2, f"lsmkv: {store}: 3 unreadable files\n")


def test_a_directory_without_current(store: Path) -> None:
    (store / "CURRENT").unlink()
    status, printed, err = dump(store)
    assert printed[:2] == [
        "=== CURRENT: the MANIFEST in force, 0 bytes",
        "!!! damage: CURRENT is missing",
    ]
    assert lines(TABLE_TEXT)[1] in printed
    assert (status, err) == (2, f"lsmkv: {store}: 1 damaged place\n")


def test_a_current_that_names_a_missing_manifest(store: Path) -> None:
    (store / "CURRENT").write_bytes(b"MANIFEST-000077\n")
    for options in ([], ["--annotate"]):
        status, printed, _ = dump(store, *options)
        assert "!!! offset 0; damage: MANIFEST-000077 is missing" in printed
        assert status == 2
    (store / "CURRENT").write_bytes(b"../MANIFEST-2\n")
    status, printed, _ = dump(store / "CURRENT")
    assert printed == [r"!!! offset 0; damage: it does not name a MANIFEST: b'../MANIFEST-2\n'"]
    assert status == 2
    (store / "CURRENT").write_bytes(b"MANIFEST-000002")
    assert dump(store / "CURRENT")[0] == 2


def test_nothing_is_written(store: Path) -> None:
    def everything() -> dict[str, tuple[bytes, int]]:
        return {one.name: (one.read_bytes(), one.stat().st_mtime_ns) for one in store.iterdir()}

    (store / "LOCK").unlink()
    before = everything()
    for options in ([], ["--annotate"], ["--json"]):
        assert dump(store, *options)[0] == 0
    assert everything() == before


def test_dump_beside_a_writer(tmp_path: Path) -> None:
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"new", b"one")
        status, printed, err = dump(tmp_path / "db")
        assert "  put 'new' 'one'" in printed
        assert (status, err) == (0, "")


# Size


def test_large_files_are_read_in_small_parts() -> None:
    rng = random.Random(1)
    log = Bytes(make_log([batch_record(n, 1, encode_put(b"k", bytes(1000))) for n in range(2000)]))
    entries = [(pack(b"%06d" % n, n + 1, 1), rng.randbytes(100)) for n in range(8000)]
    table = Bytes(make_table(entries, compression=1))
    for file, name, most in ((log, "1.log", BLOCK_SIZE), (table, "1.ldb", 30_000)):
        assert file.size > 20 * most
        for annotate in (False, True):
            stream: Iterator[Record] = dump_file(file, name, Wanted(annotate))
            assert sum(1 for _ in stream) > 4000
            assert file.longest_read <= most


def test_dump_into_a_closed_pipe_exits_like_sigpipe(tmp_path: Path) -> None:
    path = tmp_path / "1.log"
    path.write_bytes(make_log([batch_record(1, 9000, encode_put(b"k", b"v" * 50) * 9000)]))
    environment = os.environ | {"PYTHONPATH": str(Path(lsmkv.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, "-m", "lsmkv", "dump", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"--- offset 0; sequence 1\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 128 + signal.SIGPIPE
