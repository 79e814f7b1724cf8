"""The codecs of a block, by the type byte in its trailer.

=====  ==================  ==================================================================
type   codec               written by
=====  ==================  ==================================================================
0      none                LevelDB and its forks
1      snappy              LevelDB's default
2      zstd                LevelDB's main branch; no release of it reads this
2      zlib                Minecraft (Mojang's fork) before 1.2; recognized by its first byte ``78``
4      zlib-raw            Minecraft (Mojang's fork): deflate with neither header nor checksum
=====  ==================  ==================================================================

In memory a codec is its type byte.  :data:`ZLIB`, which shares one with zstd, is that byte plus
256.

A hostile file may promise gigabytes, so a decompressed size is bounded *before* it is allocated:
snappy by the most that its format can make of the input (a copy of 64 bytes costs three bytes of
input), zstd by the size that its frame must state (LevelDB also requires it), zlib by a cap on its
output.
"""

from __future__ import annotations

import zlib
from typing import Final

import cramjam

from lsmkv.engine.errors import CorruptionError, UnsupportedCompressionError
from lsmkv.engine.util.coding import decode_varint32

NO_COMPRESSION: Final = 0
SNAPPY: Final = 1
ZSTD: Final = 2
ZLIB: Final = 0x100 | 2
ZLIB_RAW: Final = 4

CODECS: dict[str | None, int] = {
    None: NO_COMPRESSION,
    "none": NO_COMPRESSION,
    "snappy": SNAPPY,
    "zstd": ZSTD,
    "zlib": ZLIB,
    "zlib-raw": ZLIB_RAW,
}
"""The codecs by the names that ``compression=`` takes."""

MOJANG: Final = (ZLIB, ZLIB_RAW)
"""The codecs of Mojang's fork, whose readers know no other."""

_NAMES: dict[int, str] = {codec: name for name, codec in CODECS.items() if name is not None}

DEFAULT_MAX_BLOCK_BYTES = 256 * 1024 * 1024

_SNAPPY_BEST_RATIO: Final = 22
_snappy_compress: Final = cramjam.snappy.compress_raw
_snappy_decompress: Final = cramjam.snappy.decompress_raw
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZLIB_HEADER = b"\x78"
"""Deflate with a window of 32 KiB, as zlib writes it at every level."""


def codec_named(name: str | None) -> int:
    """The codec of this name; ``ValueError`` names the choices."""
    try:
        return CODECS[name]
    except (KeyError, TypeError):
        raise ValueError(
            f"unknown compression {name!r}: give 'snappy', 'zstd', 'zlib', 'zlib-raw', or None for"
            " no compression"
        ) from None


def codec_of(kind: int, stored: bytes) -> int:
    """The codec of a block with the type byte ``kind``; ``stored`` is the beginning of its
    content."""
    return ZLIB if kind == ZSTD and stored[:1] == _ZLIB_HEADER else kind


def codec_name(codec: int) -> str:
    """The name of a codec, as ``compression=`` takes it.

    >>> codec_name(codec_of(2, b"x")), codec_name(NO_COMPRESSION), codec_name(77)
    ('zlib', 'none', 'compression type 77')
    """
    return _NAMES.get(codec) or f"compression type {codec}"


def compress(data: bytes, codec: int, zstd_level: int = 1) -> bytes:
    """``data`` under ``codec``.  zlib's level is its default, 6, which Mojang's engine also
    uses."""
    if codec == SNAPPY:
        return bytes(_snappy_compress(data))
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data, level=zstd_level))
    if codec == ZLIB_RAW:
        return zlib.compress(data, wbits=-zlib.MAX_WBITS)
    if codec == ZLIB:
        return zlib.compress(data)
    if codec == NO_COMPRESSION:
        return data
    raise ValueError(f"blocks are not written with compression type {codec}")


def decompress(data: bytes, kind: int, max_bytes: int = DEFAULT_MAX_BLOCK_BYTES) -> bytes:
    """The plain bytes of a block stored under the type byte ``kind``.

    Raises :class:`CorruptionError` when ``data`` is malformed or would grow beyond ``max_bytes``,
    and :class:`UnsupportedCompressionError` for an unknown type.
    """
    if kind == SNAPPY:
        return _snappy(data, max_bytes)
    if kind == NO_COMPRESSION:
        return data
    if kind == ZSTD:
        if data[:4] == _ZSTD_MAGIC:
            return _zstd(data, max_bytes)
        if data[:1] == _ZLIB_HEADER:
            return _inflate(data, zlib.MAX_WBITS, max_bytes)
        raise CorruptionError("neither a zstd frame nor a zlib stream")
    if kind == ZLIB_RAW:
        return _inflate(data, -zlib.MAX_WBITS, max_bytes)
    raise UnsupportedCompressionError(f"unknown compression type {kind}")


def _snappy(data: bytes, max_bytes: int) -> bytes:
    size, _ = decode_varint32(data, 0)
    if size > _SNAPPY_BEST_RATIO * len(data) or size > max_bytes:
        reason = f"{len(data)} bytes of snappy cannot hold the {size} bytes that they state"
        raise CorruptionError(reason)
    try:
        return bytes(_snappy_decompress(data))
    except cramjam.DecompressionError as error:
        raise CorruptionError(str(error)) from None


def _zstd(data: bytes, max_bytes: int) -> bytes:
    size = _zstd_content_size(data)
    if size is None:
        raise CorruptionError("a zstd frame that does not state its size")
    if size > max_bytes:
        raise CorruptionError(f"a zstd frame of {size} bytes; max_block_bytes is {max_bytes}")
    # A buffer of the stated size: a frame that states a wrong size cannot write beyond it.
    plain = bytearray(size)
    try:
        written = cramjam.zstd.decompress_into(data, plain)
    except cramjam.DecompressionError as error:
        raise CorruptionError(str(error)) from None
    if written != size:
        raise CorruptionError(f"a zstd frame of {written} bytes that states {size}")
    return bytes(plain)


def _zstd_content_size(frame: bytes) -> int | None:
    """The content size that a zstd frame's header states (RFC 8878, 3.1.1.1), or None."""
    if len(frame) < 5:
        return None
    descriptor = frame[4]
    single_segment = descriptor & 0x20
    size_flag = descriptor >> 6
    width = (1 if single_segment else 0) if size_flag == 0 else 1 << size_flag
    start = 5 + (0 if single_segment else 1) + (0, 1, 2, 4)[descriptor & 3]
    field = frame[start : start + width]
    if width == 0 or len(field) < width:
        return None
    return int.from_bytes(field, "little") + (256 if width == 2 else 0)


def _inflate(data: bytes, window_bits: int, max_bytes: int) -> bytes:
    stream = zlib.decompressobj(window_bits)
    try:
        plain = stream.decompress(data, max_bytes + 1)  # 0 would mean no limit
    except zlib.error as error:
        raise CorruptionError(str(error)) from None
    if len(plain) > max_bytes or not stream.eof:
        raise CorruptionError(f"a zlib stream cut short, or beyond {max_bytes} bytes")
    return plain
