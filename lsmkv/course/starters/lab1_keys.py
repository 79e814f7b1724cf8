"""Lab 1: varints and internal keys.  ``lsmkv course show 1`` is the text, ``lsmkv course check 1``
checks.

Write the five functions.  Each can be checked as soon as it is written.
"""

from __future__ import annotations


def encode_varint(value: int) -> bytes:
    """A number, 0 to 2**64 - 1, in as few bytes as a varint takes."""
    raise NotImplementedError


def decode_varint(data: bytes, position: int) -> tuple[int, int]:
    """The number of the varint at ``position``, and the position after it.

    ``ValueError`` if the data end within it, or if it has more than ten bytes.
    """
    raise NotImplementedError


def pack_key(user_key: bytes, sequence: int, kind: int) -> bytes:
    """The internal key of a version: the user key, then its tag of eight bytes."""
    raise NotImplementedError


def unpack_key(internal_key: bytes) -> tuple[bytes, int, int]:
    """User key, sequence and kind of an internal key; ``ValueError`` if it has no whole tag."""
    raise NotImplementedError


def compare_keys(a: bytes, b: bytes) -> int:
    """Below 0 if the internal key ``a`` sorts before ``b``, above 0 if after it, 0 if equal."""
    raise NotImplementedError
