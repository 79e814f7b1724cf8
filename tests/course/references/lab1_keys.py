"""Lab 1, by the engine's own modules."""

from __future__ import annotations

from lsmkv.errors import CorruptionError
from lsmkv.format.keys import InternalKeyComparator, unpack
from lsmkv.format.keys import pack as pack_key
from lsmkv.util.coding import decode_varint64, encode_varint
from lsmkv.util.comparator import BytewiseComparator

__all__ = ["compare_keys", "decode_varint", "encode_varint", "pack_key", "unpack_key"]

compare_keys = InternalKeyComparator(BytewiseComparator()).compare


def decode_varint(data: bytes, position: int) -> tuple[int, int]:
    try:
        return decode_varint64(data, position)
    except CorruptionError as error:
        raise ValueError(str(error)) from None


def unpack_key(internal_key: bytes) -> tuple[bytes, int, int]:
    try:
        return unpack(internal_key)
    except CorruptionError as error:
        raise ValueError(str(error)) from None
