"""Finds the scans among the reads of one file: :class:`Streams`.

A file is not informed that a scan reads it.  Three reads, each of which adjoins the one before it,
are taken for a scan, and continue as a ``Stream``.  A point read fetches only what it needs, unless
it completes such a chain by chance: one in 8,000 does in a table of 512 blocks.
"""

from __future__ import annotations

import threading

from lsmkv.shards.remote.fetch_ahead import FetchAhead, Stream
from lsmkv.shards.remote.remote_object import RemoteObject

_CHAIN = 2  # adjoining reads before a window is fetched
_MOST_CHAINS = 4
_MOST_STREAMS = 4


class Streams:
    """Finds the scans among one file's reads."""

    def __init__(self, remote: RemoteObject, ahead: FetchAhead, limit: int) -> None:
        """Nothing at or after ``limit`` is fetched ahead."""
        self._remote = remote
        self._ahead = ahead
        self._limit = limit
        self._lock = threading.Lock()
        self._chains: list[tuple[int, int, int]] = []
        """Start and stop of the last reads, and how many adjoined before each: negative if
        downwards."""
        self._streams: list[Stream] = []

    def read(self, offset: int, length: int) -> bytes | None:
        """The bytes, if this read belongs to a scan; None if the caller must fetch them."""
        for stream in self._streams:  # the tuple is replaced, never changed
            data = stream.read(offset, length)
            if data is not None:
                return data
        self._ahead.tidy()
        begun = self._note(offset, offset + length)
        return None if begun is None else begun.read(offset, length)

    def close(self) -> None:
        """Close all streams."""
        with self._lock:
            streams, self._streams = self._streams, []
        for stream in streams:
            stream.close()

    def _note(self, start: int, stop: int) -> Stream | None:
        """Record a read.  Returns a new stream if it continues a chain that is long enough."""
        dropped: list[Stream] = []
        with self._lock:
            run = 0
            for at, chain in enumerate(self._chains):
                run = _continued(chain, start, stop)
                if run != 0:
                    del self._chains[at]
                    break
            # Rereading costs no request, even if it looks like a scan.
            if abs(run) < _CHAIN or self._remote.is_cached(start, stop):
                self._chains = [*self._chains[-_MOST_CHAINS + 1 :], (start, stop, run)]
                return None
            back = run < 0
            begun = Stream(self._remote, self._ahead, self._limit, stop if back else start, back)
            open_now = [stream for stream in self._streams if not stream.closed]
            dropped = open_now[: -_MOST_STREAMS + 1]
            self._streams = [*open_now[-_MOST_STREAMS + 1 :], begun]
        for stream in dropped:
            stream.close()
        return begun


def _continued(chain: tuple[int, int, int], start: int, stop: int) -> int:
    """The length of a chain with one more read; 0 if the read does not continue it."""
    first, last, run = chain
    if start == last and run >= 0:
        return run + 1
    if stop == first and run <= 0:
        return run - 1
    return 0
