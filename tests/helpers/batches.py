"""The bytes of batches, right and wrong."""

from __future__ import annotations

from lsmkv.engine.format.batch import HEADER_SIZE, encode_batch


def encode_put(key: bytes, value: bytes) -> bytes:
    return encode_batch(0, [(key, value)])[HEADER_SIZE:]


def encode_delete(key: bytes) -> bytes:
    return encode_batch(0, [(key, None)])[HEADER_SIZE:]


def batch_record(sequence: int, count: int, operations: bytes) -> bytes:
    """A batch with any count."""
    return sequence.to_bytes(8, "little") + count.to_bytes(4, "little") + operations
