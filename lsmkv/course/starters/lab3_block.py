"""Lab 3: blocks.  ``lsmkv course show 3`` is the text, ``lsmkv course check 3`` checks.

Write the four functions.  Each can be checked as soon as it is written.  The varints are the
engine's; ``from lab1_keys import ...`` takes your own of lab 1 instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from lsmkv.course.given import decode_varint32, encode_varint  # noqa: F401 - for you to use


def shared_prefix(a: bytes, b: bytes) -> int:
    """Return the length of the common prefix of two keys, in bytes."""
    raise NotImplementedError


def build_block(entries: Sequence[tuple[bytes, bytes]], restart_interval: int) -> bytes:
    """The block of some keys, which rise, and their values."""
    raise NotImplementedError


def read_block(data: bytes) -> list[tuple[bytes, bytes]]:
    """All keys and values of a block."""
    raise NotImplementedError


def seek(data: bytes, target: bytes) -> tuple[bytes, bytes] | None:
    """The first entry of a block whose key is ``target`` or above, or None if there is none.

    It bisects the restart points, and reads entries from one of them on.
    """
    raise NotImplementedError
