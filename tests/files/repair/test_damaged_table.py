"""What is found of a damaged table: all that is whole, nothing else, and bounds for the rest."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
from byte_files import BytesFile

from lsmkv.engine.env.base import RandomAccessFile
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.engine.format.keys import KIND_VALUE, TAG_SIZE, InternalKeyComparator, pack
from lsmkv.engine.options import Options, make_options
from lsmkv.engine.table.block_builder import BlockBuilder
from lsmkv.engine.table.builder import TableBuilder
from lsmkv.engine.table.format import (
    BLOCK_TRAILER_SIZE,
    FOOTER_SIZE,
    BlockHandle,
    Footer,
    open_block,
    seal_block,
)
from lsmkv.engine.util.checksum import masked_crc32c
from lsmkv.engine.util.comparator import BYTEWISE
from lsmkv.errors import CorruptionError, UnsupportedCompressionError
from lsmkv.files.repair.damaged_table import (
    OUT_OF_ORDER,
    FoundBlock,
    Hole,
    Salvage,
    may_begin_block,
)

Content = dict[bytes, bytes]
"""Values by internal key."""
Compression = Literal["snappy", "zstd"] | None
CODECS: tuple[Compression, ...] = (None, "snappy", "zstd")


INTERNAL = InternalKeyComparator(BYTEWISE)


def ik(user_key: bytes) -> bytes:
    """The internal key of the only version."""
    return pack(user_key, 1, KIND_VALUE)


def any_keys(keys: list[bytes]) -> None:
    """Every key will do, but for those of the metaindex (whose names are no internal keys)."""
    if any(key.startswith((b"filter.", b"fullfilter.")) for key in keys):
        raise CorruptionError("a filter's name")


class BadSectors(BytesFile):
    """A file of which some bytes cannot be read."""

    def __init__(self, data: bytes, bad: range, code: int = errno.EIO) -> None:
        super().__init__(data)
        self.bad = bad
        self.code = code

    def read(self, offset: int, length: int) -> bytes:
        if offset < self.bad.stop and offset + length > self.bad.start:
            raise OSError(self.code, os.strerror(self.code), self.path)
        return super().read(offset, length)


class Sample:
    """A table, and where everything in it lies."""

    def __init__(self, content: Content, **options: Any) -> None:
        self.options = options_of(**options)
        self.content = content
        env = MemoryEnv()
        with env.open_directory("/") as directory, directory.create("table") as file:
            builder = TableBuilder(self.options, file)
            for key in sorted(content, key=INTERNAL.sort_key):
                builder.add(key, content[key])
            builder.finish()
            with directory.open("table") as made:
                self.data = made.read(0, made.size)
        self.footer = Footer.decode(self.data[-FOOTER_SIZE:])
        self.blocks = [
            piece for piece in pieces(self.data, self.options) if isinstance(piece, FoundBlock)
        ]
        assert found_in(self.blocks) == content

    def block_at(self, offset: int) -> FoundBlock | None:
        """The data block that this byte is part of."""
        for block in self.blocks:
            if block.offset <= offset < block.offset + block.size:
                return block
        return None

    @property
    def data_end(self) -> int:
        last = self.blocks[-1]
        return last.offset + last.size


def options_of(
    compression: Compression = None, block_size: int = 120, bits: int | None = None, **more: Any
) -> Options:
    options = make_options(compression=compression, bloom_filter_bits=bits, **more)
    # ``make_options`` bounds what users may ask for; small blocks make small tests.
    return options._replace(block_size=block_size)


def pieces(
    data: bytes | RandomAccessFile,
    options: Options,
    check: Callable[[list[bytes]], None] = any_keys,
) -> list[FoundBlock | Hole]:
    file = BytesFile(data) if isinstance(data, bytes) else data
    return list(Salvage(options, file, check).pieces())


def found_in(found: list[Any]) -> Content:
    content: Content = {}
    for piece in found:
        if isinstance(piece, FoundBlock):
            content.update(zip(piece.keys, piece.values, strict=True))
    return content


def judge(sample: Sample, found: list[FoundBlock | Hole], most_lost: int) -> None:
    """Nothing is invented, and what is lost lies in holes that admit it."""
    content = found_in(found)
    assert content.items() <= sample.content.items()
    lost = set(sample.content) - set(content)
    assert len(lost) <= most_lost, f"{len(lost)} of {len(sample.content)} lost"
    holes = [piece for piece in found if isinstance(piece, Hole)]
    for key in lost:
        fitting = [
            hole
            for hole in holes
            if (hole.lower is None or INTERNAL.compare(hole.lower, key) < 0)
            and (hole.upper is None or INTERNAL.compare(key, hole.upper) <= 0)
        ]
        assert fitting, f"no hole admits {key!r}"
        assert any(hole.may_hold(key[:-TAG_SIZE]) for hole in fitting), f"all holes deny {key!r}"
    keys = [key for piece in found if isinstance(piece, FoundBlock) for key in piece.keys]
    assert keys == sorted(set(keys), key=INTERNAL.sort_key)


def content_of(count: int, seed: int = 1, width: int = 40) -> Content:
    rng = random.Random(seed)
    return {
        ik(b"key-%06d" % (number * 7)): rng.randbytes(rng.randrange(width))
        + b"abc" * rng.randrange(9)
        for number in range(count)
    }


def flipped(data: bytes, *offsets: int, mask: int = 0xFF) -> bytes:
    changed = bytearray(data)
    for offset in offsets:
        changed[offset] ^= mask
    return bytes(changed)


def without_index(data: bytes) -> bytes:
    return flipped(data, len(data) - 1)


# A sound table


@pytest.mark.parametrize("layout", ["block", "table", "both"])
@pytest.mark.parametrize("codec", CODECS)
def test_a_sound_table(codec: Compression, layout: Literal["block", "table", "both"]) -> None:
    sample = Sample(content_of(100), compression=codec, bits=10, filter_layout=layout)
    salvage = Salvage(sample.options, BytesFile(sample.data), any_keys)
    assert salvage.has_index
    assert salvage.problems == []
    assert len(sample.blocks) > 5
    by_search = pieces(without_index(sample.data), sample.options)
    assert [(piece.offset, piece.size) for piece in by_search] == [
        (block.offset, block.size) for block in sample.blocks
    ]
    assert found_in(by_search) == sample.content


# One byte


@pytest.mark.parametrize(
    ("codec", "mask"), [(None, 0xFF), (None, 0x01), (None, 0x80), ("snappy", 0xFF), ("zstd", 0xFF)]
)
def test_every_byte_flipped(codec: Compression, mask: int) -> None:
    sample = Sample(content_of(40), compression=codec, bits=10)
    biggest = max(len(block.keys) for block in sample.blocks)
    for offset in range(len(sample.data)):
        data = flipped(sample.data, offset, mask=mask)
        salvage = Salvage(sample.options, BytesFile(data), any_keys)
        found = list(salvage.pieces())
        block = sample.block_at(offset)
        if block is None:
            assert found_in(found) == sample.content
            assert not any(isinstance(piece, Hole) for piece in found)
            assert bool(salvage.problems) == (not same_footer(sample, data))
            continue
        assert salvage.problems == []
        (hole,) = [piece for piece in found if isinstance(piece, Hole)]
        assert (hole.offset, hole.size) == (block.offset, block.size)
        assert hole.has_filter
        assert set(sample.content) - set(found_in(found)) == set(block.keys)
        judge(sample, found, biggest)


def test_a_filter_spares_what_the_block_did_not_hold() -> None:
    sample = Sample(content_of(400), block_size=4096, bits=10)
    block = sample.blocks[1]
    found = pieces(flipped(sample.data, block.offset + 9), sample.options)
    (hole,) = [piece for piece in found if isinstance(piece, Hole)]
    others = [b"key-%06d" % number for number in range(1, 2800) if number % 7]
    assert sum(hole.may_hold(key) for key in others) < len(others) / 20
    assert all(hole.may_hold(key[:-TAG_SIZE]) for key in block.keys)


@pytest.mark.parametrize("codec", CODECS)
def test_every_byte_flipped_without_an_index(codec: Compression) -> None:
    """The next block is found, though nothing says where it begins."""
    sample = Sample(content_of(40), compression=codec, bits=10)
    blind = without_index(sample.data)
    for offset in range(0, sample.data_end, 7):
        block = sample.block_at(offset)
        assert block is not None
        found = pieces(flipped(blind, offset), sample.options)
        assert set(sample.content) - set(found_in(found)) == set(block.keys)
        judge(sample, found, len(block.keys))
        (hole,) = [piece for piece in found if isinstance(piece, Hole)]
        assert hole.offset == block.offset
        if block is not sample.blocks[-1]:
            assert hole.size == block.size
        assert not hole.has_filter


@pytest.mark.parametrize("codec", CODECS)
def test_cut_at_every_length(codec: Compression) -> None:
    sample = Sample(content_of(40), compression=codec, bits=10)
    for length in range(0, len(sample.data), 1 if codec is None else 3):
        salvage = Salvage(sample.options, BytesFile(sample.data[:length]), any_keys)
        assert salvage.problems
        found = list(salvage.pieces())
        whole = [block for block in sample.blocks if block.offset + block.size <= length]
        assert [piece.offset for piece in found if isinstance(piece, FoundBlock)] == [
            block.offset for block in whole
        ]
        judge(sample, found, len(sample.content))
        if length <= sample.data_end:
            assert isinstance(found[-1], Hole)
            assert found[-1].upper is None


# More than one


@pytest.mark.parametrize("indexed", [True, False], ids=["index", "no index"])
@pytest.mark.parametrize("codec", CODECS)
def test_several_blocks_damaged(codec: Compression, indexed: bool) -> None:
    sample = Sample(content_of(200, width=90), compression=codec, bits=10)
    rng = random.Random(5)
    for _ in range(12):
        victims = rng.sample(sample.blocks, rng.randrange(1, 9))
        data = flipped(
            sample.data if indexed else without_index(sample.data),
            *[block.offset + rng.randrange(block.size) for block in victims],
        )
        found = pieces(data, sample.options)
        lost = {key for block in victims for key in block.keys}
        assert set(sample.content) - set(found_in(found)) == lost
        judge(sample, found, len(lost))


def test_all_blocks_damaged() -> None:
    sample = Sample(content_of(60))
    data = flipped(sample.data, *[block.offset for block in sample.blocks])
    found = pieces(data, sample.options)
    assert len(found) == len(sample.blocks)
    judge(sample, found, 60)
    (hole,) = pieces(without_index(data), sample.options)
    assert isinstance(hole, Hole)
    assert (hole.lower, hole.upper) == (None, None)


@pytest.mark.parametrize(("size", "first"), [(30_000, 3), (200_000, 0), (1_100_000, 0)])
def test_big_blocks_without_an_index(size: int, first: int) -> None:
    """Of any size, behind a hole at the very beginning too."""
    content = {ik(b"key-%06d" % number): b"v" * size for number in range(first, first + 2)}
    content |= {ik(b"key-%06d" % number): b"small" for number in range(first)}
    sample = Sample(content, block_size=1 if first else 4096)
    for victim in sample.blocks[first : first + (2 if size < 1_000_000 else 1)]:
        data = without_index(flipped(sample.data, victim.offset + 20))
        found = pieces(data, sample.options)
        assert set(content) - set(found_in(found)) == set(victim.keys)
        judge(sample, found, len(victim.keys))


def test_a_page_of_zeros() -> None:
    sample = Sample(content_of(600, width=100), block_size=700)
    for blind in (False, True):
        data = bytearray(without_index(sample.data) if blind else sample.data)
        data[8192:12288] = bytes(4096)
        hit = {
            key
            for block in sample.blocks
            if block.offset < 12288 and block.offset + block.size > 8192
            for key in block.keys
        }
        found = pieces(bytes(data), sample.options)
        assert set(sample.content) - set(found_in(found)) == hit
        judge(sample, found, len(hit))


def test_a_block_of_one_entry_is_not_taken_for_an_index() -> None:
    """Its value reads as the handle of a block at the file's beginning."""
    for value in (b"\0\0", b"\0\x05", b"\0\x7f"):
        sample = Sample({ik(b"the only key"): value})
        assert found_in(pieces(without_index(sample.data), sample.options)) == sample.content


def test_values_that_are_blocks() -> None:
    """A table of tables: what lies inside a value is no entry."""
    inner = Sample(content_of(8)).data
    sample = Sample({ik(b"key-%06d" % number): inner for number in range(9)}, block_size=2000)
    assert found_in(pieces(without_index(sample.data), sample.options)) == sample.content


# Hostile files


def sealed(pairs: list[tuple[bytes, bytes]], kind: int = 0) -> bytes:
    block = BlockBuilder(1)
    for key, value in pairs:
        block.add(key, value)
    return seal_block(block.finish(), kind)


def crafted(handles: list[tuple[bytes, BlockHandle]], data: bytes) -> bytes:
    """A table with this index over these data blocks; all its checksums are good."""
    return indexed_by([(key, handle.encode()) for key, handle in handles], data)


def indexed_by(entries: list[tuple[bytes, bytes]], data: bytes) -> bytes:
    """The same with any entries in its index."""
    metaindex, index = sealed([]), sealed(entries)
    footer = Footer(
        BlockHandle(len(data), len(metaindex) - BLOCK_TRAILER_SIZE),
        BlockHandle(len(data) + len(metaindex), len(index) - BLOCK_TRAILER_SIZE),
    )
    return data + metaindex + index + footer.encode()


@pytest.mark.parametrize(
    "handle",
    [
        BlockHandle(0, 2**64 - 1),
        BlockHandle(2**64 - 1, 2**64 - 1),
        BlockHandle(2**63, 7),
        BlockHandle(10, 5),
        BlockHandle(1 << 40, 1 << 40),
    ],
    ids=repr,
)
def test_handles_that_point_anywhere(handle: BlockHandle) -> None:
    data = sealed([(ik(b"key-a-long"), b"1")])
    options = options_of()
    good = BlockHandle(0, len(data) - BLOCK_TRAILER_SIZE)
    found = pieces(crafted([(ik(b"key-b-long"), good), (ik(b"key-d-long"), handle)], data), options)
    assert found_in(found) == {ik(b"key-a-long"): b"1"}
    # The same in the footer, for the index, for the metaindex, and for both.
    table = crafted([(ik(b"key-b-long"), good)], data)
    footer = Footer.decode(table[-FOOTER_SIZE:])
    for metaindex, index in ((footer.metaindex, handle), (handle, footer.index), (handle, handle)):
        hostile = table[:-FOOTER_SIZE] + Footer(metaindex, index).encode()
        salvage = Salvage(options, BytesFile(hostile), any_keys)
        assert salvage.problems
        assert found_in(list(salvage.pieces())) == {ik(b"key-a-long"): b"1"}


def test_one_block_named_a_thousand_times() -> None:
    """It is read a few times at most: an index cannot make much work of little."""
    data = sealed([(ik(b"key-a-long"), bytes(10_000))])
    handle = BlockHandle(0, len(data) - BLOCK_TRAILER_SIZE)
    table = crafted([(ik(b"key-%06d" % number), handle) for number in range(1000)], data)

    file = BytesFile(table)
    assert found_in(pieces(file, options_of())) == {ik(b"key-a-long"): bytes(10_000)}
    assert sum(length for _, length in file.reads) < 10 * len(table)


def test_blocks_that_name_the_index_itself() -> None:
    data = sealed([(ik(b"key-a-long"), b"1")])
    for offset in range(0, 200, 5):
        for size in range(0, 60, 5):
            handles = [(ik(b"key-b-long"), BlockHandle(offset, size))]
            found = pieces(crafted(handles, data), options_of())
            assert set(found_in(found)) <= {ik(b"key-a-long"), ik(b"key-b-long")}


@pytest.mark.parametrize(
    "index",
    [
        [(ik(b"key-b"), b"")],
        [(ik(b"key-b"), b"\xff" * 10)],
        [(ik(b"key-c"), b"\0\x05"), (ik(b"key-b"), b"\x0a\x05")],
        [(ik(b"key-b"), b"\0\x05"), (ik(b"key-b"), b"\x0a\x05")],
    ],
)
def test_an_index_that_is_none(index: list[tuple[bytes, bytes]]) -> None:
    data = sealed([(ik(b"key-a-long"), b"1")])
    salvage = Salvage(options_of(), BytesFile(indexed_by(index, data)), any_keys)
    assert not salvage.has_index
    assert [problem.reason.startswith("index") for problem in salvage.problems] == [True]
    assert found_in(list(salvage.pieces())) == {ik(b"key-a-long"): b"1"}


def test_a_block_in_disorder() -> None:
    """Whole, but its keys fall: as a table looks under another comparator."""
    good = sealed([(ik(b"key-a-long"), b"1")])
    fallen = sealed([(ik(b"key-d-long"), b"2"), (ik(b"key-c-long"), b"3")])
    last = sealed([(ik(b"key-e-long"), b"4")])
    handles: list[tuple[bytes, BlockHandle]] = []
    at = 0
    for key, block in ((ik(b"key-b"), good), (ik(b"key-d-longer"), fallen), (ik(b"key-f"), last)):
        handles.append((key, BlockHandle(at, len(block) - BLOCK_TRAILER_SIZE)))
        at += len(block)
    table = crafted(handles, good + fallen + last)
    for data in (table, without_index(table)):
        found = pieces(data, options_of())
        assert found_in(found) == {ik(b"key-a-long"): b"1", ik(b"key-e-long"): b"4"}
        assert [piece.reason for piece in found if isinstance(piece, Hole)] == [OUT_OF_ORDER]


def test_keys_that_the_caller_refuses() -> None:
    def check(keys: list[bytes]) -> None:
        if ik(b"key-000007") in keys:
            raise CorruptionError("a seven")

    sample = Sample({ik(b"key-%06d" % number): b"v" * 30 for number in range(30)}, block_size=200)
    found = pieces(sample.data, sample.options, check)
    (block,) = [block for block in sample.blocks if ik(b"key-000007") in block.keys]
    assert block.keys[-1] != ik(b"key-000007")
    assert set(sample.content) - set(found_in(found)) == set(block.keys)
    assert [piece.reason for piece in found if isinstance(piece, Hole)] == ["a seven"]


@pytest.mark.parametrize("seed", range(3))
def test_noise(seed: int) -> None:
    """Random bytes, and random damage of all sorts: no error, and nothing invented."""
    rng = random.Random(seed)
    options = options_of(bits=10)
    for size in (0, 1, 4, 47, 48, 49, 300, 5000):
        assert found_in(pieces(rng.randbytes(size), options)) == {}
        assert found_in(pieces(bytes(size), options)) == {}
    sample = Sample(content_of(100), compression=CODECS[seed], bits=10)
    for _ in range(60):
        data = bytearray(sample.data)
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(len(data))
            end = min(len(data), at + rng.choice([1, 5, 60, 600]))
            way = rng.randrange(4)
            if way == 0:
                data[at:end] = rng.randbytes(end - at)
            elif way == 1:
                data[at:end] = bytes(end - at)
            elif way == 2:
                del data[at:end]
            else:
                other = rng.randrange(len(data))
                data[at:at] = data[other : other + 200]
        assert found_in(pieces(bytes(data), sample.options)).items() <= sample.content.items()


def same_footer(sample: Sample, data: bytes) -> bool:
    """Zeros behind the handles mean nothing, nor do longer ways to write the same number."""
    if data[:-FOOTER_SIZE] != sample.data[:-FOOTER_SIZE] or data[-8:] != sample.data[-8:]:
        return False
    footer = Footer.decode(data[-FOOTER_SIZE:])
    ours = sample.footer
    return (footer.index, footer.metaindex) == (ours.index, ours.metaindex)


def test_a_large_file_without_any_block() -> None:
    """Every place in it might begin a block; all are tried in one pass."""
    rng = random.Random(7)
    hostile = b"\0\x08\x01" * 30_000 + rng.randbytes(100_000) + b"\x78" * 50_000
    file = BytesFile(hostile)
    (hole,) = pieces(file, options_of())
    assert isinstance(hole, Hole)
    assert (hole.offset, hole.size) == (0, len(hostile))
    assert sum(length for _, length in file.reads) < 3 * len(hostile)


def test_a_file_that_shrinks_meanwhile() -> None:
    sample = Sample(content_of(100))

    class Shrinking(BytesFile):
        def read(self, offset: int, length: int) -> bytes:
            data = super().read(offset, length)
            self.data = self.data[: max(0, len(self.data) - 40)]
            return data

    for data in (sample.data, without_index(sample.data)):
        found = found_in(pieces(Shrinking(data), sample.options))
        assert found.items() <= sample.content.items()


# Errors of the system


def sector_ranges(size: int) -> Iterator[range]:
    for first in range(0, size, 4096):
        yield range(first, first + 4096)


@pytest.mark.parametrize("indexed", [True, False], ids=["index", "no index"])
def test_sectors_that_cannot_be_read(indexed: bool) -> None:
    sample = Sample(content_of(900, width=60), block_size=1000, bits=10)
    data = sample.data if indexed else without_index(sample.data)
    for bad in sector_ranges(len(data)):
        hit = {
            key
            for block in sample.blocks
            if block.offset < bad.stop and block.offset + block.size > bad.start
            for key in block.keys
        }
        salvage = Salvage(sample.options, BadSectors(data, bad), any_keys)
        found = list(salvage.pieces())
        assert set(sample.content) - set(found_in(found)) == hit
        judge(sample, found, len(hit))
        if bad.stop > len(data) - FOOTER_SIZE:
            assert "cannot be read" in salvage.problems[0].reason


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOMEM, errno.EACCES, errno.ESTALE])
def test_other_failures_are_no_damage(code: int) -> None:
    sample = Sample(content_of(100), bits=10)
    for bad in (
        range(0, 1),
        range(len(sample.data) - 1, len(sample.data)),
        range(sample.footer.index.offset, sample.footer.index.offset + 1),
        range(sample.data_end, sample.data_end + 1),
    ):
        with pytest.raises(OSError, match=os.strerror(code)) as failed:
            pieces(BadSectors(sample.data, bad, code), sample.options)
        assert failed.value.errno == code
        if bad.start < sample.data_end:
            with pytest.raises(OSError, match=os.strerror(code)):
                pieces(BadSectors(without_index(sample.data), bad, code), sample.options)


@pytest.mark.parametrize("part", ["data", "index"])
def test_a_codec_that_nobody_here_knows(part: str) -> None:
    sample = Sample(content_of(30))
    handle = sample.footer.index
    if part == "data":
        handle = BlockHandle(0, sample.blocks[0].size - BLOCK_TRAILER_SIZE)
    end = handle.offset + handle.size
    body = sample.data[handle.offset : end] + b"\x09"
    strange = body + masked_crc32c(body).to_bytes(4, "little")
    data = sample.data[: handle.offset] + strange + sample.data[end + BLOCK_TRAILER_SIZE :]
    assert len(data) == len(sample.data)
    with pytest.raises(UnsupportedCompressionError, match=f"ldb.*offset {handle.offset}"):
        pieces(data, sample.options)


# Where blocks may begin


def test_every_block_that_is_written_may_begin() -> None:
    rng = random.Random(3)
    for codec in CODECS:
        for _ in range(40):
            width = rng.choice([0, 1, 5, 50])
            content = {
                ik(rng.choice([b"", b"\0" * 9, b"same" * 30]) + b"%08d" % number): rng.choice(
                    [b"", bytes(width), rng.randbytes(width)]
                )
                for number in range(rng.randrange(1, 40))
            }
            sample = Sample(content, compression=codec, block_size=rng.choice([1, 60, 4000]))
            for block in sample.blocks:
                assert may_begin_block(sample.data, block.offset)
                stored = sample.data[block.offset : block.offset + block.size]
                assert open_block(stored, 1 << 20)
