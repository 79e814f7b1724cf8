"""Zeros at the end of a write-ahead log, where records may have been.

A mapped log ends in zeros while it is written, and so does one whose writer was killed; but zeros
may also stand where records were.  Recovery and surveys ask here.
"""

from __future__ import annotations

from typing import Final

from lsmkv.engine.env.base import RandomAccessFile
from lsmkv.engine.env.local_log import may_be_reserved
from lsmkv.engine.format.log import BLOCK_SIZE, HEADER_SIZE

SECTOR: Final = 512


def lost_in_zeros(file: RandomAccessFile, end: int) -> int:
    """Return the number of zeros at the end of a log that may have replaced records; 0 if none.

    The last record ends at ``end``.  Zeros that the writer may have reserved do not count
    (:func:`may_be_reserved`), nor do those of less than a header.  After a torn record, whose value
    may end in zeros, a sector is the least.  Some file systems fill a file with zeros after a power
    cut: those count, since nothing in the file distinguishes them from lost records.
    """
    size = file.size
    if size - end < HEADER_SIZE or may_be_reserved(size, size - end):
        return 0
    at = size
    while at > end:
        start = max(end, at - BLOCK_SIZE)
        rest = len(file.read(start, at - start).rstrip(b"\0"))
        at = start + rest
        if rest > 0:
            break
    zeros = size - at
    least = HEADER_SIZE if at == end else SECTOR
    return 0 if zeros < least or may_be_reserved(size, zeros) else zeros


def zeros_text(size: int, zeros: int) -> str:
    """Describe a log with :func:`lost_in_zeros`."""
    return (
        f"zeros from {size - zeros} to the end, {zeros} bytes: unless this file system fills files"
        " with zeros after a crash, the writes that were there are lost"
    )
