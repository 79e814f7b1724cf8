"""Lab 1, by the engine's own modules."""

from __future__ import annotations

from lsmkv.engine.format.keys import InternalKeyComparator, unpack
from lsmkv.engine.format.keys import pack as pack_key
from lsmkv.engine.util.coding import decode_varint64, encode_varint
from lsmkv.engine.util.comparator import BytewiseComparator
from lsmkv.errors import CorruptionError

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
