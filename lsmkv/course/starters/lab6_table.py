"""Lab 6: a table.  ``lsmkv course show 6`` is the text, ``lsmkv course check 6`` checks.

Write the eight functions.  Each can be checked as soon as it is written.  Checksums, varints and
blocks are the engine's; ``from lab3_block import ...`` takes your own instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lsmkv.course.given import (  # noqa: F401 - for you to use
    Block,
    BlockBuilder,
    decode_varint64,
    encode_varint,
    masked_crc32c,
)


def seal_block(contents: bytes) -> bytes:
    """A block as it is stored: its contents, and the trailer of five bytes."""
    raise NotImplementedError


def unseal_block(stored: bytes) -> bytes:
    """The contents of a stored block.  ``ValueError`` if it is damaged."""
    raise NotImplementedError


def block_handle(offset: int, size: int) -> bytes:
    """Return the encoded offset of a block and size of its contents."""
    raise NotImplementedError


def separator(last: bytes, first: bytes) -> bytes:
    """The index key of a block: at or after its last key, and before the first key of the next
    one."""
    raise NotImplementedError


def successor(last: bytes) -> bytes:
    """The index key of the last block: at or after its last key."""
    raise NotImplementedError


def footer(metaindex: bytes, index: bytes) -> bytes:
    """The last 48 bytes of a table, from the handles of two blocks."""
    raise NotImplementedError


def build_table(entries: Sequence[tuple[bytes, bytes]], block_size: int) -> bytes:
    """The table of some internal keys, in ascending order, and their values."""
    raise NotImplementedError


def get(read: Callable[[int, int], bytes], size: int, user_key: bytes) -> bytes | None:
    """The newest value of a user key in a table, or None if the key is absent or deleted.

    ``read(offset, length)`` returns bytes of the table, which has ``size`` bytes.  ``ValueError``
    if a part that was read is damaged.
    """
    raise NotImplementedError
