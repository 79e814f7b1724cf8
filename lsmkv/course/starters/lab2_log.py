"""Lab 2: the log.  ``lsmkv course show 2`` is the text, ``lsmkv course check 2`` checks.

Write the three functions.  Each can be checked as soon as it is written.  The CRC itself is the
engine's.
"""

from __future__ import annotations

from lsmkv.course.given import crc32c  # noqa: F401 - for you to use

BLOCK_SIZE = 32768
HEADER_SIZE = 7
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4


def masked_checksum(kind: int, data: bytes) -> int:
    """The masked CRC-32C of a fragment's type and data, 0 to 2**32 - 1."""
    raise NotImplementedError


def frame(payload: bytes, block_offset: int) -> bytes:
    """The bytes of a record that begins at an offset in its block: one fragment, or several."""
    raise NotImplementedError


def read_log(data: bytes) -> list[bytes]:
    """The payloads of all whole records from the log's beginning up to the first damage."""
    raise NotImplementedError
