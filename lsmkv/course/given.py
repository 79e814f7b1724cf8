"""Functions for starter files: parts of the engine from earlier labs.

Students may replace them by their own functions.  The texts name them, so names and meanings stay.
Internal keys and file names come from :mod:`lsmkv.files`.
"""

from __future__ import annotations

from lsmkv import Directory, WritableFile
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.table.block import Block
from lsmkv.engine.table.block_builder import BlockBuilder
from lsmkv.engine.util.checksum import crc32c
from lsmkv.engine.util.coding import decode_varint64, encode_varint
from lsmkv.files import Batch

__all__ = [
    "BLOCK_SIZE",
    "Block",
    "BlockBuilder",
    "Directory",
    "Operation",
    "WritableFile",
    "crc32c",
    "decode_batch",
    "decode_string",
    "decode_varint32",
    "decode_varint64",
    "encode_string",
    "encode_varint",
    "masked_crc32c",
    "typed_crc32c",
]

BLOCK_SIZE = 32768
"""Bytes of a block of a log."""

Operation = tuple[bytes, bytes | None]
"""A key with its value, or with None if the key is deleted."""


def masked_crc32c(data: bytes) -> int:
    """The CRC-32C of some bytes as files store it: rotated right by 15 bits, plus 0xa282ead8.

    >>> masked_crc32c(b"a") == ((crc32c(b"a") >> 15 | crc32c(b"a") << 17) + 0xA282EAD8) % 2**32
    True
    """
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def typed_crc32c(kind: int, data: bytes) -> int:
    """The masked CRC-32C of a fragment's type byte and its data."""
    return masked_crc32c(bytes([kind]) + data)


def decode_varint32(data: bytes, position: int) -> tuple[int, int]:
    """The number below 2**32 of the varint at a position, and the position after it.

    ``CorruptionError`` if the data ends within it, or if it is larger.

    >>> decode_varint32(b"?\\xac\\x02", 1)
    (300, 3)
    """
    number, end = decode_varint64(data, position)
    if number >> 32:
        raise CorruptionError("a varint of more than 32 bits", None, position)
    return number, end


def encode_string(data: bytes) -> bytes:
    """A string as it is stored: its length, a varint, and then its bytes.

    >>> encode_string(b"ant")
    b'\\x03ant'
    """
    return encode_varint(len(data)) + data


def decode_string(data: bytes, position: int) -> tuple[bytes, int]:
    """The bytes of the string at a position, and the position after them.

    ``CorruptionError`` if the data ends within them.

    >>> decode_string(b"?\\x03ant?", 1)
    (b'ant', 5)
    """
    size, start = decode_varint32(data, position)
    if size > len(data) - start:
        raise CorruptionError("a string runs past the end of the data", None, position)
    return data[start : start + size], start + size


def decode_batch(record: bytes) -> tuple[int, list[Operation]]:
    """The sequence of the first operation of a batch, and the operations.

    ``CorruptionError`` if the record is not a batch.
    """
    batch = Batch(record)
    return batch.sequence, [(one.key, one.value) for one in batch.operations()]
