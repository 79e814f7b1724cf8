"""Lab 5: the filter block.  ``lsmkv course show 5`` is the text, ``lsmkv course check 5`` checks.

Write the five functions.  Each can be checked as soon as it is written.  Your code gets the
functions that make and ask a filter: the engine's, or your own of lab 4 if you like.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Blocks = Sequence[tuple[int, Sequence[bytes]]]
"""Data blocks in file order: the offset of each, and its internal keys.  The last pair is the end
of the data blocks: an offset, and no keys."""


def filter_index(block_offset: int) -> int:
    """The number of the filter for a data block that begins at this offset, from 0 on."""
    raise NotImplementedError


def group_keys(blocks: Blocks) -> list[list[bytes]]:
    """The user keys that each filter is made from.  ``ValueError`` if a filter is already
    finished."""
    raise NotImplementedError


def build_filter_block(blocks: Blocks, create_filter: Callable[[list[bytes]], bytes]) -> bytes:
    """The filter block of some data blocks.  ``create_filter`` makes the filter of some keys."""
    raise NotImplementedError


def filter_for(data: bytes, block_offset: int) -> bytes | None:
    """The filter for the data block at an offset, or None if the filter block has none for it."""
    raise NotImplementedError


def key_may_match(
    data: bytes, block_offset: int, key: bytes, may_match: Callable[[bytes, bytes], bool]
) -> bool:
    """Return True if the data block at an offset may hold a user key.

    ``may_match(key, filter_data)`` asks one filter.
    """
    raise NotImplementedError
