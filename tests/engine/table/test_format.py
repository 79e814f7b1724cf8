"""lsmkv.engine.table.format: handles, footer and trailer, byte by byte."""

from __future__ import annotations

import random
import zlib

import pytest
from byte_files import BytesFile
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.engine.table.format import (
    BLOCK_TRAILER_SIZE,
    FOOTER_SIZE,
    MAGIC,
    BlockHandle,
    Footer,
    open_block,
    read_block,
    seal_block,
    unpack_block,
    unseal_block,
)
from lsmkv.engine.util.compression import NO_COMPRESSION, SNAPPY, ZLIB, ZLIB_RAW, ZSTD, compress
from lsmkv.errors import CorruptionError, UnsupportedCompressionError

MIB = 1 << 20
numbers = st.integers(0, 2**64 - 1) | st.sampled_from([0, 127, 128, 2**32, 2**63, 2**64 - 1])


def masked_crc(data: bytes) -> int:
    """CRC-32C bit by bit (reflected polynomial 82f63b78), then masked: nothing of lsmkv's."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF


def trailed(body: bytes, kind: int) -> bytes:
    typed = body + bytes([kind])
    return typed + masked_crc(typed).to_bytes(4, "little")


# Block handles


@pytest.mark.parametrize(
    ("offset", "size", "encoded"),
    [
        (0, 0, "0000"),
        (0, 8, "0008"),
        (127, 128, "7f8001"),
        (300, 4096, "ac028020"),
        (2**32, 2**64 - 1, "8080808010ffffffffffffffffff01"),
    ],
)
def test_handle_bytes(offset: int, size: int, encoded: str) -> None:
    handle = BlockHandle(offset, size)
    assert handle.encode().hex() == encoded
    assert BlockHandle.decode(bytes.fromhex(encoded)) == (handle, len(encoded) // 2)


@given(numbers, numbers, st.binary(max_size=3), st.binary(max_size=3))
def test_handle_round_trip(offset: int, size: int, before: bytes, after: bytes) -> None:
    encoded = BlockHandle(offset, size).encode()
    assert 2 <= len(encoded) <= 20
    handle, end = BlockHandle.decode(before + encoded + after, len(before))
    assert (handle.offset, handle.size) == (offset, size)
    assert end == len(before) + len(encoded)


def test_handle_cut_anywhere() -> None:
    encoded = BlockHandle(2**64 - 1, 2**40).encode()
    for length in range(len(encoded)):
        with pytest.raises(CorruptionError):
            BlockHandle.decode(encoded[:length])


@pytest.mark.parametrize("data", ["ff" * 10 + "0100", "00" + "ff" * 9 + "02", "80" * 11, ""])
def test_handle_of_more_than_64_bits(data: str) -> None:
    with pytest.raises(CorruptionError):
        BlockHandle.decode(bytes.fromhex(data))


def test_handles_compare_by_value() -> None:
    assert BlockHandle(1, 2) == BlockHandle(1, 2)
    assert len({BlockHandle(1, 2), BlockHandle(1, 2), BlockHandle(2, 1)}) == 2
    assert BlockHandle(1, 2) != BlockHandle(1, 3)
    assert BlockHandle(1, 2) != (1, 2)
    assert repr(BlockHandle(1, 2)) == "BlockHandle(offset=1, size=2)"


# Footer


def test_footer_bytes() -> None:
    footer = Footer(BlockHandle(300, 8), BlockHandle(313, 22)).encode()
    assert footer.hex() == "ac0208" + "b90216" + "00" * 34 + "57fb808b247547db"
    assert int.from_bytes(MAGIC, "little") == 0xDB4775248B80FB57
    decoded = Footer.decode(footer)
    assert decoded.metaindex == BlockHandle(300, 8)
    assert decoded.index == BlockHandle(313, 22)


@given(numbers, numbers, numbers, numbers)
def test_footer_round_trip(a: int, b: int, c: int, d: int) -> None:
    encoded = Footer(BlockHandle(a, b), BlockHandle(c, d)).encode()
    assert len(encoded) == FOOTER_SIZE == 48
    footer = Footer.decode(encoded)
    assert (footer.metaindex, footer.index) == (BlockHandle(a, b), BlockHandle(c, d))


def test_footer_cut_or_longer() -> None:
    footer = Footer(BlockHandle(300, 8), BlockHandle(313, 22)).encode()
    for wrong in [footer[:length] for length in range(48)] + [footer[1:], b"\0" + footer]:
        with pytest.raises(CorruptionError, match="magic"):
            Footer.decode(wrong)


def test_footer_with_any_bit_flipped() -> None:
    footer = Footer(BlockHandle(300, 8), BlockHandle(313, 22)).encode()
    for at in range(48):
        for bit in range(8):
            damaged = bytearray(footer)
            damaged[at] ^= 1 << bit
            if at >= 40:
                with pytest.raises(CorruptionError, match="magic"):
                    Footer.decode(bytes(damaged))
            elif at >= 6 or (at, bit) == (5, 7):  # padding, or a varint that goes on into it
                assert Footer.decode(bytes(damaged)).encode() == footer
            else:  # another place, which the block's checksum will judge
                assert Footer.decode(bytes(damaged)).encode() != footer


def test_footer_without_room_for_two_handles() -> None:
    for handles in ["80" * 40, "00" * 3 + "80" * 37, "ff" * 40]:
        with pytest.raises(CorruptionError):
            Footer.decode(bytes.fromhex(handles) + MAGIC)


# Trailers


def test_the_checksum_of_these_tests() -> None:
    unmasked = (masked_crc(b"123456789") - 0xA282EAD8) & 0xFFFFFFFF
    assert (unmasked >> 17 | unmasked << 15) & 0xFFFFFFFF == 0xE3069283  # the textbook's value


@pytest.mark.parametrize("raw", [b"", b"\0", b"hello", bytes(range(256)) * 20])
def test_uncompressed_trailer(raw: bytes) -> None:
    stored = seal_block(raw, NO_COMPRESSION)
    assert stored == trailed(raw, 0)
    assert len(stored) == len(raw) + BLOCK_TRAILER_SIZE
    assert open_block(stored, 0) == raw
    assert unseal_block(stored, 0, False) == (stored, len(raw))  # not copied


@pytest.mark.parametrize("kind", [SNAPPY, ZSTD])
def test_compressed_trailer(kind: int) -> None:
    raw = b"leveldb " * 200
    stored = seal_block(raw, kind)
    assert stored == trailed(compress(raw, kind), kind)
    assert len(stored) < len(raw) // 8
    assert open_block(stored, len(raw)) == raw


def test_zstd_level_is_passed_on() -> None:
    raw = b"".join(b"%d " % (number * number) for number in range(5000))
    assert len(seal_block(raw, ZSTD, 19)) < len(seal_block(raw, ZSTD, 1))


def compressible_to(size: int, packed_size: int) -> bytes:
    """``size`` bytes that snappy turns into exactly ``packed_size``."""
    noise = random.Random(7).randbytes(size)
    for cut in range(size):
        raw = noise[:cut].rjust(size, b"x")
        if len(compress(raw, SNAPPY)) == packed_size:
            return raw
    raise AssertionError("no such block found")


@pytest.mark.parametrize(("size", "limit"), [(800, 700), (807, 707)])
def test_compression_must_save_more_than_an_eighth(size: int, limit: int) -> None:
    raw = compressible_to(size, limit)
    assert seal_block(raw, SNAPPY) == trailed(raw, 0)
    raw = compressible_to(size, limit - 1)
    assert seal_block(raw, SNAPPY) == trailed(compress(raw, SNAPPY), 1)


def test_an_incompressible_block_is_stored_plain() -> None:
    raw = random.Random(1).randbytes(4096)
    for codec in (SNAPPY, ZSTD, ZLIB, ZLIB_RAW):
        assert seal_block(raw, codec) == trailed(raw, 0)


def test_blocks_of_minecraft() -> None:
    raw = b"chunk " * 100
    stored = seal_block(raw, ZLIB)
    assert stored[-5] == 2
    assert zlib.decompress(stored[:-5]) == raw
    stored = seal_block(raw, ZLIB_RAW)
    assert stored[-5] == 4
    assert zlib.decompress(stored[:-5], -15) == raw
    assert open_block(trailed(zlib.compress(raw), 2), MIB) == raw
    deflate = zlib.compressobj(wbits=-15)
    assert open_block(trailed(deflate.compress(raw) + deflate.flush(), ZLIB_RAW), MIB) == raw


@pytest.mark.parametrize("kind", [NO_COMPRESSION, SNAPPY, ZSTD])
def test_trailer_cut_or_flipped_anywhere(kind: int) -> None:
    stored = seal_block(b"abcdefgh" * 20, kind)
    for length in range(len(stored)):
        with pytest.raises(CorruptionError):
            open_block(stored[:length], MIB)
    for at in range(len(stored)):
        for bit in range(8):
            damaged = bytearray(stored)
            damaged[at] ^= 1 << bit
            with pytest.raises(CorruptionError, match="checksum"):
                open_block(bytes(damaged), MIB)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", SNAPPY),
        (b"\xff\xff\xff\xff\x0f", SNAPPY),  # promises 4 GiB
        (b"\xff\xff\xff\xff\x0f" + b"\0" * 100, SNAPPY),
        (b"\xff\xff\xff\xff\xff\xff", SNAPPY),
        (b"\x64" + b"\0" * 3, SNAPPY),
        (b"", ZSTD),
        (b"\x28\xb5\x2f\xfd", ZSTD),
        (b"\x28\xb5\x2f\xfd\xe0" + b"\xff" * 8, ZSTD),  # promises 2^64 - 1 bytes
        (compress(bytes(2 * MIB), ZSTD), ZSTD),
        (zlib.compress(bytes(2 * MIB)), ZSTD),
        (zlib.compress(b"cut" * 100)[:-5], ZSTD),
        (b"plain", ZSTD),
        (b"", ZLIB_RAW),
        (b"\xff" * 20, ZLIB_RAW),
    ],
)
def test_hostile_compressed_blocks(body: bytes, kind: int) -> None:
    with pytest.raises(CorruptionError):
        open_block(trailed(body, kind), MIB)


def test_the_bound_on_a_block_is_inclusive() -> None:
    for stored in (seal_block(bytes(MIB), SNAPPY), seal_block(bytes(MIB), ZSTD)):
        assert open_block(stored, MIB) == bytes(MIB)
        with pytest.raises(CorruptionError):
            open_block(stored, MIB - 1)


@pytest.mark.parametrize("kind", [3, 5, 7, 255])
def test_an_unknown_codec_is_no_damage(kind: int) -> None:
    with pytest.raises(UnsupportedCompressionError, match=f"type {kind}"):
        open_block(trailed(b"x", kind), MIB)
    with pytest.raises(UnsupportedCompressionError, match=r"000005\.ldb: .*offset 4096"):
        unpack_block(trailed(b"x", kind), BytesFile(b""), 4096, MIB, False)


# Reading a block from a file


def test_read_block_takes_one_read() -> None:
    file = BytesFile(b"before" + seal_block(b"content", NO_COMPRESSION) + b"after")
    assert read_block(file, BlockHandle(6, 7), MIB) == b"content"
    assert file.reads == [(6, 12)]


@pytest.mark.parametrize(
    ("offset", "size"),
    [(1, 7), (0, 8), (12, 0), (13, 0), (2**64 - 1, 2**64 - 1), (0, 2**64 - 1), (2**63, 0)],
)
def test_a_handle_beyond_the_file_is_not_followed(offset: int, size: int) -> None:
    file = BytesFile(seal_block(b"content", NO_COMPRESSION))
    with pytest.raises(CorruptionError, match="beyond the end") as caught:
        read_block(file, BlockHandle(offset, size), MIB)
    assert (caught.value.path, caught.value.offset) == ("db/000005.ldb", offset)
    assert not file.reads


def test_a_file_that_shrank_since_it_was_opened() -> None:
    stored = seal_block(b"content", NO_COMPRESSION)
    for length in range(len(stored)):
        with pytest.raises(CorruptionError, match="cut short") as caught:
            read_block(BytesFile(stored[:length], len(stored)), BlockHandle(0, 7), MIB)
        assert caught.value.path == "db/000005.ldb"


def test_damage_is_reported_with_its_offset() -> None:
    damaged = bytearray(b"before" + seal_block(b"content", NO_COMPRESSION))
    damaged[8] ^= 1
    with pytest.raises(CorruptionError) as caught:
        read_block(BytesFile(bytes(damaged)), BlockHandle(6, 7), MIB)
    assert str(caught.value) == "db/000005.ldb: block checksum mismatch (at offset 6)"
