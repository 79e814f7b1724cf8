"""Every byte of a table, with its meaning."""

from __future__ import annotations

from pathlib import Path

import pytest
from dumped import (
    GOOD,
    ONE_RESTART,
    TABLE,
    covers,
    dump,
    faults,
    forged,
    make_table,
    meanings,
    records,
)

from lsmkv.engine.format.keys import pack
from lsmkv.engine.table.format import Footer
from lsmkv.files import Block
from lsmkv.tools.dump.records import Piece


def test_a_table_byte_by_byte() -> None:
    found = meanings("1.ldb", TABLE)
    assert found[:16] == [
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
    assert [(at, meaning) for at, _, meaning in found[16:]] == [
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


@pytest.mark.parametrize("compression", [1, 2])
def test_a_compressed_block_is_shown_stored_and_plain(compression: int, tmp_path: Path) -> None:
    entries = [(pack(b"key%03d" % n, n, 1), b"value") for n in range(50)]
    data = make_table(entries, bits=0, compression=compression)
    plain = make_table(entries, bits=0)
    heading, content = (records("1.ldb", one)[0] for one in (data, plain))
    assert isinstance(heading, Block)
    assert isinstance(content, Block)
    codec = ("snappy", "zstd")[compression - 1]
    assert (heading.codec, heading.plain) == (codec, content.plain)
    pieces = [one for one in records("1.ldb", data, annotate=True) if isinstance(one, Piece)]
    assert pieces[0].offset == 0
    assert pieces[0].data == data[: heading.place.size]
    assert codec in pieces[0].meaning
    decoded = [one for one in pieces if one.block == 0]
    assert b"".join(one.data for one in decoded) == heading.plain
    (tmp_path / "1.ldb").write_bytes(data)
    row = dump(tmp_path / "1.ldb", "--annotate", "--limit", "2")[1][-1]
    assert row.endswith("  00                       shared 0")
    assert row.startswith("    ")


def test_overlapping_blocks_are_a_fault_and_not_repeated() -> None:
    data = forged(GOOD + ONE_RESTART)
    footer = Footer.decode(data[-48:])
    twice = Footer(footer.index, footer.index).encode()
    covers("1.ldb", data[:-48] + twice, same_faults=False)
    reasons = [one.reason for one in faults("1.ldb", data[:-48] + twice, annotate=True)]
    assert "a metaindex block inside another one" in reasons
