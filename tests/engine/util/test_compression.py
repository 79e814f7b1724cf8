"""lsmkv.engine.util.compression: each codec, its damage, and what promises more than it should."""

from __future__ import annotations

import sys
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import run_python

from lsmkv.engine.util.coding import encode_varint
from lsmkv.engine.util.compression import (
    DEFAULT_MAX_BLOCK_BYTES,
    NO_COMPRESSION,
    SNAPPY,
    ZLIB,
    ZLIB_RAW,
    ZSTD,
    codec_name,
    codec_named,
    codec_of,
    compress,
    decompress,
)
from lsmkv.errors import CorruptionError, UnsupportedCompressionError

TEXT = b"the quick brown fox jumps over the lazy dog; " * 100
MAGIC = bytes.fromhex("28b52ffd")
RAW, RLE = 0, 1


def zstd_frame(content_size: bytes, flags: int, *blocks: tuple[int, int, bytes]) -> bytes:
    """A zstd frame by hand (RFC 8878): blocks of (type, size, bytes); no checksum.

    ``flags`` is the frame header descriptor, ``content_size`` all of the header that follows it.
    """
    body = b"".join(
        (size << 3 | kind << 1 | (at == len(blocks) - 1)).to_bytes(3, "little") + data
        for at, (kind, size, data) in enumerate(blocks)
    )
    return MAGIC + bytes([flags]) + content_size + body


def zlib_stream(data: bytes, level: int = 6) -> bytes:
    return zlib.compress(data, level)


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


STORED = [
    pytest.param(SNAPPY, compress(TEXT, SNAPPY), id="snappy"),
    pytest.param(ZSTD, compress(TEXT, ZSTD), id="zstd"),
    pytest.param(ZSTD, zlib_stream(TEXT), id="zlib"),
    pytest.param(ZLIB_RAW, raw_deflate(TEXT), id="deflate"),
]


def test_names() -> None:
    assert codec_named(None) == NO_COMPRESSION == 0
    assert codec_named("none") == 0
    assert codec_named("snappy") == SNAPPY == 1
    assert codec_named("zstd") == ZSTD == 2
    assert codec_named("zlib-raw") == ZLIB_RAW == 4
    assert codec_named("zlib") == ZLIB
    for name in ("none", "snappy", "zstd", "zlib", "zlib-raw"):
        assert codec_name(codec_named(name)) == name


def test_a_type_byte_of_two_codecs() -> None:
    """Type 2 is zstd in LevelDB, and zlib in Mojang's fork."""
    assert codec_of(2, compress(TEXT, ZLIB)[:1]) == ZLIB
    assert codec_of(2, compress(TEXT, ZSTD)[:1]) == codec_of(2, b"") == ZSTD
    assert codec_of(4, b"\x78") == ZLIB_RAW
    assert codec_of(0, b"\x78") == NO_COMPRESSION
    assert ZLIB & 0xFF == 2


@pytest.mark.parametrize("name", ["lz4", "", "Snappy", "deflate", "auto"])
def test_an_unknown_name_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name!r}.*'snappy'.*'zstd'"):
        codec_named(name)


@pytest.mark.parametrize("kind", [3, 5, 255, 257, -1])
def test_blocks_are_not_written_in_other_codecs(kind: int) -> None:
    with pytest.raises(ValueError, match=str(kind)):
        compress(b"data", kind)


@pytest.mark.parametrize("kind", [3, 5, 64, 255])
def test_an_unknown_type_is_not_called_damage(kind: int) -> None:
    with pytest.raises(UnsupportedCompressionError, match=str(kind)) as caught:
        decompress(b"data", kind)
    assert not isinstance(caught.value, CorruptionError)


def test_no_compression_is_the_bytes_themselves() -> None:
    assert compress(TEXT, NO_COMPRESSION) == TEXT
    assert decompress(TEXT, NO_COMPRESSION) == TEXT


def test_snappy_by_its_format() -> None:
    """A literal of five bytes, then a copy of ten from five back."""
    data = bytes([15, (5 - 1) << 2]) + b"hello" + bytes([(10 - 4) << 2 | 1, 5])
    assert decompress(data, SNAPPY) == b"hello" * 3
    assert compress(b"", SNAPPY) == b"\x00"


def test_zstd_by_its_format() -> None:
    frame = zstd_frame(b"\x08", 0x20, (RAW, 5, b"hello"), (RLE, 3, b"!"))
    assert decompress(frame, ZSTD) == b"hello!!!"


@pytest.mark.parametrize("kind", [NO_COMPRESSION, SNAPPY, ZSTD])
@pytest.mark.parametrize("size", [0, 1, 2, 100, 255, 256, 257, 4096, 65535, 65792, 70000])
def test_round_trip_by_size(kind: int, size: int) -> None:
    data = (bytes(range(251)) * 300)[:size]
    stored = compress(data, kind)
    assert decompress(stored, kind) == data
    assert type(stored) is type(decompress(stored, kind)) is bytes


@pytest.mark.parametrize("level", [-5, 1, 3, 19])
@pytest.mark.parametrize("size", [0, 255, 256, 65791, 65792, 200_000])
def test_zstd_states_its_size_at_every_level(level: int, size: int) -> None:
    data = bytes(size)
    assert decompress(compress(data, ZSTD, level), ZSTD, size) == data


def test_the_zstd_level_counts() -> None:
    data = b"".join(str(n * n).encode() for n in range(20_000))
    assert len(compress(data, ZSTD, 19)) < len(compress(data, ZSTD, 1))


@settings(deadline=None)
@given(st.binary(max_size=2000))
def test_any_bytes_survive(data: bytes) -> None:
    for codec in (NO_COMPRESSION, SNAPPY, ZSTD, ZLIB, ZLIB_RAW):
        assert decompress(compress(data, codec), codec & 0xFF) == data


@settings(deadline=None)
@given(st.binary(max_size=2000), st.integers(0, 9))
def test_zlib_of_any_level_is_read(data: bytes, level: int) -> None:
    stored = zlib_stream(data, level)
    assert stored[0] == 0x78
    assert decompress(stored, ZSTD) == data
    assert decompress(raw_deflate(data), ZLIB_RAW) == data


@pytest.mark.parametrize(("kind", "stored"), STORED)
def test_cut_at_every_byte(kind: int, stored: bytes) -> None:
    assert decompress(stored, kind) == TEXT
    for cut in range(len(stored)):
        with pytest.raises(CorruptionError):
            decompress(stored[:cut], kind)


@pytest.mark.parametrize(("kind", "stored"), STORED)
def test_every_byte_changed(kind: int, stored: bytes) -> None:
    """The codecs carry no checksum that is sure to notice; all that counts is how they fail."""
    for at in range(len(stored)):
        damaged = bytearray(stored)
        damaged[at] ^= 0xFF
        try:
            assert len(decompress(bytes(damaged), kind, 1 << 20)) <= 1 << 20
        except CorruptionError:
            pass


@settings(deadline=None)
@given(st.binary(max_size=200), st.sampled_from([SNAPPY, ZSTD, ZLIB_RAW]), st.booleans())
def test_any_bytes_are_read_or_refused(data: bytes, kind: int, zstd: bool) -> None:
    for prefix in (b"", MAGIC, b"\x78\x9c") if zstd else (b"",):
        try:
            assert len(decompress(prefix + data, kind, 1 << 20)) <= 1 << 20
        except CorruptionError:
            pass


def test_type_2_that_is_neither_zstd_nor_zlib() -> None:
    for data in (b"", b"\x28", MAGIC[:3], b"hello"):
        with pytest.raises(CorruptionError, match="neither"):
            decompress(data, ZSTD)


@pytest.mark.parametrize(("kind", "stored"), STORED)
def test_the_limit_is_exact(kind: int, stored: bytes) -> None:
    assert decompress(stored, kind, len(TEXT)) == TEXT
    for limit in (0, 1, len(TEXT) - 1):
        with pytest.raises(CorruptionError):
            decompress(stored, kind, limit)


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        (SNAPPY, compress(b"", SNAPPY)),
        (ZSTD, compress(b"", ZSTD)),
        (ZSTD, zlib_stream(b"")),
        (ZLIB_RAW, raw_deflate(b"")),
    ],
)
def test_a_limit_of_zero_admits_an_empty_block(kind: int, stored: bytes) -> None:
    assert decompress(stored, kind, 0) == b""


def test_snappy_with_too_large_a_declared_size_is_refused() -> None:
    body = bytes([4 << 2]) + b"hello"
    assert decompress(b"\x05" + body, SNAPPY) == b"hello"
    with pytest.raises(CorruptionError):
        decompress(b"\x06" + body, SNAPPY)
    for size in (22 * 8 + 1, DEFAULT_MAX_BLOCK_BYTES, 2**31, 2**32 - 1):
        with pytest.raises(CorruptionError, match=f"cannot hold the {size} bytes that they state"):
            decompress(encode_varint(size) + body, SNAPPY)  # refused before it is allocated


def test_snappy_at_its_best_ratio_is_read() -> None:
    """A long run costs three bytes for 64, which the bound on the promised size must allow."""
    data = bytes(1 << 20)
    stored = compress(data, SNAPPY)
    assert len(data) > 20 * len(stored)
    assert decompress(stored, SNAPPY) == data


def test_a_zstd_frame_without_a_content_size_is_refused() -> None:
    """Sound for zstd, but its size is not known beforehand.  LevelDB refuses it too."""
    frame = zstd_frame(b"\x58", 0x00, (RAW, 5, b"hello"))  # a window descriptor alone
    with pytest.raises(CorruptionError, match="does not state its size"):
        decompress(frame, ZSTD)


@pytest.mark.parametrize(
    ("header", "flags"),
    [
        ("05", 0x20),  # single segment, one byte
        ("0005", 0x21),  # and a dictionary id of one byte, which says "none"
        ("000005", 0x22),
        ("0000000005", 0x23),
        ("05000000", 0xA0),
        ("0500000000000000", 0xE0),
        ("5805000000", 0x80),  # a window descriptor, then four bytes
        ("580005000000", 0x81),
        ("580500000000000000", 0xC0),
    ],
)
def test_zstd_headers_of_every_shape(header: str, flags: int) -> None:
    size = bytes.fromhex(header)
    assert decompress(zstd_frame(size, flags, (RAW, 5, b"hello")), ZSTD, 5) == b"hello"
    with pytest.raises(CorruptionError, match="max_block_bytes is 4"):
        decompress(zstd_frame(size, flags, (RAW, 5, b"hello")), ZSTD, 4)


@pytest.mark.parametrize("flags", [0x40, 0x60])
def test_a_two_byte_content_size_counts_from_256(flags: int) -> None:
    header = b"\x58\x01\x00" if flags == 0x40 else b"\x01\x00"
    frame = zstd_frame(header, flags, (RLE, 257, b"z"))
    assert decompress(frame, ZSTD, 257) == b"z" * 257
    with pytest.raises(CorruptionError, match="257 bytes"):
        decompress(frame, ZSTD, 256)


@pytest.mark.parametrize("stated", [0, 1, 4, 6, 100, 255])
def test_a_zstd_header_with_a_wrong_size_is_refused(stated: int) -> None:
    with pytest.raises(CorruptionError):
        decompress(zstd_frame(bytes([stated]), 0x20, (RAW, 5, b"hello")), ZSTD)


def test_what_follows_a_zstd_frame_is_damage() -> None:
    frame = zstd_frame(b"\x05", 0x20, (RAW, 5, b"hello"))
    for tail in (b"junk", frame):
        with pytest.raises(CorruptionError):
            decompress(frame + tail, ZSTD)


@pytest.mark.parametrize("stated", [DEFAULT_MAX_BLOCK_BYTES + 1, 2**40, 2**63, 2**64 - 1])
def test_a_zstd_frame_that_states_the_impossible(stated: int) -> None:
    frame = zstd_frame(stated.to_bytes(8, "little"), 0xE0, (RAW, 5, b"hello"))
    with pytest.raises(CorruptionError, match=str(stated)):
        decompress(frame, ZSTD)


# Decompresses each bomb under a limit of 1 MiB, then of nothing, and prints by how many KiB the
# peak rose.
# (VmHWM, not ru_maxrss: that one survives an exec, so a large parent would hide the growth.)
BOMBS = """
import sys, zlib
sys.path[:0] = sys.argv[1].split("|")
from lsmkv.errors import CorruptionError
from lsmkv.engine.util.compression import compress, decompress

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

def stored(packer):
    zeros = bytes(1 << 20)
    return b"".join(packer.compress(zeros) for _ in range(256)) + packer.flush()

def run(size, flags, count):
    blocks = (b"\\x02\\x00\\x10a" * (count - 1)) + b"\\x03\\x00\\x10a"  # 128 KiB of a each
    return bytes.fromhex("28b52ffd") + bytes([flags]) + size + blocks

bombs = [
    (1, b"\\xff\\xff\\xff\\x7f" + b"\\xfe\\x01\\x00" * 1000),
    (2, stored(zlib.compressobj(9))),
    (4, stored(zlib.compressobj(9, zlib.DEFLATED, -15))),
    (2, run((5).to_bytes(8, "little"), 0xe0, 2048)),
    (2, run((1 << 20).to_bytes(8, "little"), 0xe0, 2048)),
    (2, run((1 << 28).to_bytes(8, "little"), 0xe0, 2048)),
    (2, run(b"\\x88" + (5).to_bytes(8, "little"), 0xc0, 2048)),  # and a window of 128 MiB
    (2, run(b"\\x88", 0x00, 2048)),
]
decompress(compress(bytes(1 << 20), 2), 2)
decompress(zlib.compress(bytes(1 << 20)), 2)
before = peak()
for kind, bomb in bombs:
    for limit in (1 << 20, 0):
        try:
            decompress(bomb, kind, limit)
        except CorruptionError:
            continue
        raise SystemExit(f"type {kind}: {len(bomb)} bytes came through")
print(peak() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_decompression_bombs_allocate_no_more_than_the_limit() -> None:
    """Each would grow to 256 MiB."""
    found = run_python("-c", BOMBS, "|".join(sys.path), check=True)
    assert int(found.stdout) < 16 * 1024
