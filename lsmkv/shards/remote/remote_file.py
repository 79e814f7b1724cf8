"""A file of a directory in an object store: :class:`RemoteFile`.

A read takes its bytes from the first of these that has them:

1. the *pieces* of the file that its directory holds, from META or from an earlier request;
2. a scan's window: :mod:`lsmkv.shards.remote.fetch_ahead`;
3. the cache on disk, and requests for what it does not have: ``remote_object.py``.

Pieces are for opening a table, which reads its end first and its first block last.  The open table
keeps what it needs of them in decoded form.  So the pieces are freed by a read of the first block
after one of the end, and by any read outside the pieces.
"""

from __future__ import annotations

import errno
import os

from lsmkv.engine.env.base import RandomAccessFile
from lsmkv.shards.remote.fetch_ahead import FetchAhead
from lsmkv.shards.remote.remote_object import RemoteObject
from lsmkv.shards.remote.streams import Streams

_SMALL = 64 << 10
"""The largest file, in bytes, that is fetched whole: CURRENT, a short MANIFEST."""
_TAIL_SHARE = 32
_MOST_TAIL = 4 << 20


class Held:
    """The metadata and the pieces that a directory keeps of one of its files.

    ``pieces`` is replaced, never changed, so any thread may read it without a lock.
    """

    def __init__(self, remote: RemoteObject, pieces: tuple[tuple[int, bytes], ...] = ()) -> None:
        """``pieces`` are pairs of offset and bytes, in ascending order."""
        self.remote = remote
        self.pieces = pieces
        last, data = pieces[-1] if pieces else (0, b"")
        is_tail = last > 0 and last + len(data) == remote.size
        self.data_end = last if is_tail else remote.size
        """The end of a table's data blocks, as far as META shows it: scans go no further."""


class RemoteFile(RandomAccessFile):
    """An object that is read at given positions.  Any thread may read; the object never changes."""

    _closed = True  # until there is something to close

    def __init__(self, held: Held, ahead: FetchAhead) -> None:
        self.path = held.remote.url
        self.size = held.remote.size
        self._held = held
        self._remote = held.remote
        self._streams = Streams(held.remote, ahead, held.data_end)
        self._is_first = True
        self._end_was_read = False
        self._closed = False

    def read(self, offset: int, length: int) -> bytes:
        """Cost: none for bytes in memory, otherwise one request for each missing run of bytes.

        Raises :class:`~lsmkv.errors.CorruptionError` for an object that is missing or too short,
        and ``OSError``.
        """
        if self._closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.path)
        if offset < 0 or length < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), self.path)
        length = min(length, self.size - offset)
        if length <= 0:
            return b""
        if self._is_first:
            self._is_first = False
            if not self._held.pieces:
                self._fetch_pieces(offset)
        found = self._take(offset, length) if self._held.pieces else None
        if found is None:
            found = self._streams.read(offset, length)
        return self._remote.read(offset, length) if found is None else found

    def close(self) -> None:
        """Cancel the fetching ahead."""
        if not self._closed:
            self._closed = True
            self._streams.close()

    def __del__(self) -> None:
        self.close()

    def _take(self, offset: int, length: int) -> bytes | None:
        """Take bytes from the pieces, which may free them.  None if they lack some."""
        found: bytes | None = None
        pieces = self._held.pieces
        for at, (start, data) in enumerate(pieces):
            if start <= offset and offset + length <= start + len(data):
                found = data[offset - start : offset - start + length]
                is_open = at == 0 and self._end_was_read
                self._end_was_read = 0 < at == len(pieces) - 1
                break
        if found is None or is_open:
            self._held.pieces = ()
        return found

    def _fetch_pieces(self, offset: int) -> None:
        """Without META, fetch a small file whole; of a large file fetch the end, if the first read
        is there.

        A table's reader begins with the footer, and continues with the index and the filters before
        it: about 3% of a table of 100-byte entries.
        """
        size = self.size
        start = 0
        if size > _SMALL:
            start = size - min(_MOST_TAIL, max(_SMALL, size // _TAIL_SHARE))
        if offset >= start:
            self._held.pieces = ((start, self._remote.read(start, size - start)),)
