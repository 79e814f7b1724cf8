"""Tables as records: filters of every layout, and damage in each kind of block."""

from __future__ import annotations

import json
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

from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.format.keys import pack
from lsmkv.engine.table.block_builder import BlockBuilder
from lsmkv.engine.table.format import BlockHandle, Footer, seal_block
from lsmkv.engine.util.checksum import masked_crc32c
from lsmkv.engine.util.comparator import ReverseBytewiseComparator
from lsmkv.files import Block, Filter
from lsmkv.tools.dump.records import Entry, Fault, Handle


def test_filters_of_every_layout() -> None:
    entries = [(pack(b"%05d" % n, n + 1, 1), bytes(40)) for n in range(300)]
    data = make_table(entries, filter_layout="both", block_size=512)
    shown = records("1.ldb", data)
    blocks = [one for one in shown if isinstance(one, Block) and "filter" in one.place.kind]
    assert [(one.place.kind, one.place.name) for one in blocks] == [
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


def test_a_flip_in_one_of_many_blocks(tmp_path: Path) -> None:
    entries = [(pack(b"%05d" % n, n + 1, 1), bytes(40)) for n in range(100)]
    data = bytearray(make_table(entries, block_size=500))
    sound = records("1.ldb", bytes(data))
    blocks = [
        one.place.offset for one in sound if isinstance(one, Block) and one.place.kind == "data"
    ]
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
    for at in (145, 100):
        broken = bytearray(TABLE)
        broken[at] ^= 1
        found = records("1.ldb", bytes(broken))
        assert sum(isinstance(one, Entry) for one in found) == 3
        (fault,) = [one for one in found if isinstance(one, Fault)]
        kind = "index" if at == 145 else "metaindex"
        assert fault.offset == {"index": 140, "metaindex": 88}[kind]
        searched = "; the data blocks are searched for" if kind == "index" else ""
        assert fault.reason == f"block checksum mismatch; it is the {kind}{searched}"
        assert type(found[-1]).__name__ == "Footer"


@pytest.mark.parametrize(
    ("block", "entries", "reason"),
    [
        (GOOD + b"\0\x09\x7f" + pack(b"b", 1, 1) + ONE_RESTART, 1, "an entry runs past the block"),
        (GOOD + b"\0\x09\4" + pack(b"b", 1, 1) + ONE_RESTART, 1, "an entry runs past the block"),
        (
            GOOD + b"\1\x08\0" + pack(b"", 9, 0) + bytes(4) + b"\x0d\0\0\0" + b"\2\0\0\0",
            2,
            "a restart point at 13, where no key is stored in full",
        ),
        (GOOD + b"\x0a\1\0xx" + ONE_RESTART, 1, "shares more than the previous key has"),
        (GOOD + b"\xff\xff\xff\xff\xff\xff" + ONE_RESTART, 1, "varint32"),
        (
            GOOD + bytes(4) + b"\1\0\0\0" + b"\2\0\0\0",
            1,
            "a restart point at 1, where no key is",
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


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "an entry without a valid handle, at byte 0 of the block"),
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
        (9, 0xFF, "filter offsets out of order"),
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
    (block,) = [one for one in found if isinstance(one, Block) and one.place.kind == "meta"]
    assert block.place.name == b"leveldb.properties"
    assert sum(isinstance(one, Handle) for one in found) == 2


def test_a_text_file_under_a_tables_name(tmp_path: Path) -> None:
    path = tmp_path / "a.ldb"
    path.write_bytes(b"Dear diary, " * 20)
    _, printed, _ = dump(path)
    reason = "not a table: its footer has no magic number; the data blocks are searched for"
    assert printed == [
        f"!!! offset 192; damage: {reason}",
        "!!! offset 0; damage: no block can be found here (240 bytes)",
    ]


@pytest.mark.parametrize("codec", [0, 1, 2])
def test_a_table_that_was_cut_shows_the_blocks_that_are_left(tmp_path: Path, codec: int) -> None:
    entries = [(pack(b"%05d" % n, n + 1, 1), b"%d" % n * 9) for n in range(400)]
    data = make_table(entries, block_size=500, compression=codec)
    sound = [one for one in records("1.ldb", data) if isinstance(one, (Block, Entry))]
    data_blocks = [one for one in sound if isinstance(one, Block) and one.place.kind == "data"]
    end = data_blocks[len(data_blocks) // 2].place.offset + 10
    path = tmp_path / "1.ldb"
    path.write_bytes(data[:end])
    found = records("1.ldb", data[:end])
    shown = [one for one in found if not isinstance(one, Fault)]
    assert len(shown) > 100
    for one, whole in zip(shown, sound, strict=False):
        assert one == whole or (isinstance(one, Block) and one.plain == whole.plain)  # type: ignore[union-attr]
    assert isinstance(sound[len(shown)], Block)  # the one that was cut
    status, printed, err = dump(path, "--keys-only")
    assert status == 2
    assert "the data blocks are searched for" in printed[0]
    assert len([line for line in printed if line.startswith("'")]) == len(
        [one for one in shown if isinstance(one, Entry)]
    )
    assert "damaged places" in err


def test_blocks_are_found_in_any_order_of_keys() -> None:
    """The file does not name its comparator."""
    entries = [(pack(b"%05d" % -n, n + 100, 1), b"v" * 9) for n in range(-99, 0)]
    data = make_table(entries, block_size=200, comparator=ReverseBytewiseComparator())
    sound = [one for one in records("1.ldb", data) if isinstance(one, Entry)]
    found = [one for one in records("1.ldb", data[:-1]) if isinstance(one, Entry)]
    assert found == sound


def test_a_search_that_meets_an_unknown_codec_says_so() -> None:
    broken = bytearray(TABLE)
    broken[145] ^= 1  # the index
    broken[135] = 9  # the codec of the metaindex
    broken[136:140] = masked_crc32c(bytes(broken[88:136])).to_bytes(4, "little")
    found = [one for one in records("1.ldb", bytes(broken)) if isinstance(one, Fault)]
    assert "codec" in [one.kind for one in found]
    assert found[-1].reason.endswith("it is the index; the data blocks are searched for")
