"""Fetches ahead of scans in objects of an object store.

A scan reads the blocks of a table one after another, up or down.  With one request per block, it
would wait for the network at each.  So once ``streams.py`` has found a scan among the reads of a
file, it becomes a :class:`Stream`.  A stream requests *windows* of 256 KiB, then 512 KiB, up to 4
MiB.  While the scan reads one window, a thread of a small pool fetches the next.

Memory is bounded: all streams of an env together hold at most 64 MiB.  A stream ends with the data.
It also ends if it was not read for a second and the env makes another request.  A scan that gets no
memory reads as if there were no streams.

Any thread may read.  A stream belongs to the scan that is inside it: another reader does not wait
for its lock, but reads for itself.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

from lsmkv.engine.errors import CorruptionError
from lsmkv.shards.remote.disk_cache import PAGE_SIZE
from lsmkv.shards.remote.remote_object import RemoteObject

FIRST_WINDOW = 256 << 10
"""Bytes of a stream's first window: at 100 MB/s they take 2.5 ms, a tenth of a request's time."""
LAST_WINDOW = 4 << 20
"""Bytes of the largest window: there a request's fixed costs are a small part of it."""
_MOST_BYTES = 64 << 20
_THREADS = 4
_IDLE = 1.0  # seconds without a read after which a stream's windows may be freed


class FetchAhead:
    """The threads and the memory that all streams of an env share."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        # Re-entrant, because a garbage collection inside it may finalize a file and its streams.
        self._lock = threading.RLock()
        self._room = most_bytes
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        # Starts threads when they are needed; they end with it.
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="lsmkv-fetch-ahead")
        self._closed = False
        self._tidied = time.monotonic()

    @property
    def room(self) -> int:
        """The remaining bytes that may be held."""
        return self._room

    def add(self, stream: Stream) -> None:
        """Allow a stream's windows to be freed when it is idle."""
        with self._lock:
            self._streams.add(stream)

    def take(self, wanted: int) -> bool:
        """Reserve memory for a window; False if there is none, even without idle streams."""
        if self._take(wanted):
            return True
        self._close_idle()
        return self._take(wanted)

    def tidy(self) -> None:
        """Close idle streams, at most once a second.  Every read that makes a request calls it."""
        if time.monotonic() >= self._tidied + _IDLE:
            self._close_idle()

    def give_back(self, size: int) -> None:
        """Give back room that was taken."""
        with self._lock:
            self._room += size

    def submit(self, call: Callable[[int, int], bytes], start: int, size: int) -> Future[bytes]:
        """Run a call in a thread of the pool.  The returned future is cancelled if there is no
        thread: after :meth:`close`, at the interpreter's exit, or if the system has no more
        threads."""
        with self._lock:
            if not self._closed:
                try:
                    return self._pool.submit(call, start, size)
                except RuntimeError:
                    pass  # the scan makes the request itself when it gets there
        cancelled: Future[bytes] = Future()
        cancelled.cancel()
        return cancelled

    def close(self) -> None:
        """Cancel requests that have not started, and wait for the threads to end.  Reads work
        without it."""
        with self._lock:
            self._closed = True
        self._pool.shutdown(cancel_futures=True)

    def _close_idle(self) -> None:
        with self._lock:
            self._tidied = time.monotonic()
            before = self._tidied - _IDLE
            streams = list(self._streams)
        for stream in streams:
            stream.close_if_idle(before)

    def _take(self, wanted: int) -> bool:
        with self._lock:
            if self._closed or wanted > self._room:
                return False
            self._room -= wanted
            return True


class Stream:
    """The windows of a scan: the current one and the next one, which adjoins it."""

    def __init__(
        self, remote: RemoteObject, ahead: FetchAhead, limit: int, at: int, back: bool
    ) -> None:
        """The scan is at ``at`` and goes up, or down if ``back``.  Nothing beyond ``limit`` is
        fetched."""
        self._remote = remote
        self._ahead = ahead
        self._limit = limit
        self._back = back
        self._lock = threading.Lock()
        self._start = at
        self._stop = at
        self._data = b""
        self._next: tuple[int, int, Future[bytes]] | None = None
        self._window = FIRST_WINDOW
        self._used = time.monotonic()
        self.closed = False
        ahead.add(self)

    def read(self, offset: int, length: int) -> bytes | None:
        """The bytes, if they are in the window or continue the scan; None otherwise.

        Raises what a request for them raises.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            if self.closed:
                return None
            data = self._read(offset, offset + length)
            if data is not None and self._is_end(offset, offset + length):
                self._close()
            return data
        finally:
            self._lock.release()

    def close(self) -> None:
        """Cancel the requests, and free the memory."""
        with self._lock:
            self._close()

    def close_if_idle(self, before: float) -> None:
        """:meth:`close`, if the last read was before that time and no thread is inside."""
        if self._lock.acquire(blocking=False):
            try:
                if self._used < before:
                    self._close()
            finally:
                self._lock.release()

    # The caller holds the lock.

    def _close(self) -> None:
        if self.closed:
            return
        self.closed = True
        held = self._stop - self._start
        if self._next is not None:
            start, stop, coming = self._next
            coming.cancel()
            held += stop - start
        self._data = b""
        self._next = None
        self._ahead.give_back(held)

    def _read(self, start: int, stop: int) -> bytes | None:
        if self._start <= start and stop <= self._stop:
            self._used = time.monotonic()
            self._fetch_next()
            return self._between(start, stop)
        if not self._goes_on(start, stop):
            return None
        self._used = time.monotonic()
        parts: list[bytes] = []
        while start < stop:
            if stop <= self._start if self._back else start >= self._stop:
                if not self._turn(stop - start):
                    return None
            elif self._back:
                low = max(start, self._start)
                parts.insert(0, self._between(low, stop))
                stop = low
            else:
                high = min(stop, self._stop)
                parts.append(self._between(start, high))
                start = high
        return b"".join(parts)

    def _is_end(self, start: int, stop: int) -> bool:
        """True if the scan has nothing more to read."""
        return start == 0 if self._back else stop == self._limit

    def _goes_on(self, start: int, stop: int) -> bool:
        """True if a range begins in the windows, or adjoins them, and leaves the first."""
        low, high = self._start, self._stop
        if self._next is not None:
            low, high = min(low, self._next[0]), max(high, self._next[1])
        if self._back:
            return low <= stop <= self._stop
        return self._start <= start <= high and stop <= self._limit

    def _between(self, start: int, stop: int) -> bytes:
        return self._data[start - self._start : stop - self._start]

    def _turn(self, needed: int) -> bool:
        """Switch to the next window, with at least ``needed`` bytes if it is not fetched yet.
        False if there is no memory for it."""
        if self._next is None:
            return self._fetch_now(needed)
        start, stop, coming = self._next
        try:
            data = coming.result()
        except (OSError, CorruptionError, CancelledError):
            data = self._fetch(start, stop)  # if this fails again, the reader gets the error
        self._leave()
        self._start, self._stop, self._data, self._next = start, stop, data, None
        return True

    def _fetch_now(self, needed: int) -> bool:
        """Fetch the next window in this thread; False if there is no memory for it."""
        self._leave()
        start, stop = self._plan(needed)
        if not self._ahead.take(stop - start):
            self._window = FIRST_WINDOW
            start, stop = self._plan(needed)
            if not self._ahead.take(stop - start):
                return False
        try:
            data = self._fetch(start, stop)
        except BaseException:
            self._ahead.give_back(stop - start)
            raise
        self._start, self._stop, self._data = start, stop, data
        self._window = min(2 * self._window, LAST_WINDOW)
        return True

    def _leave(self) -> None:
        """Free the window, and stay at its end."""
        self._ahead.give_back(self._stop - self._start)
        self._data = b""
        if self._back:
            self._stop = self._start
        else:
            self._start = self._stop

    def _fetch(self, start: int, stop: int) -> bytes:
        self._remote.counters.add(bytes_ahead=stop - start)
        return self._remote.read(start, stop - start)

    def _fetch_next(self) -> None:
        """Have the pool fetch the next window.  Called at the second read in a window: a short scan
        ends before that."""
        if self._next is not None:
            return
        start, stop = self._plan(0)
        if start == stop:
            return
        if self._ahead.take(stop - start):
            coming = self._ahead.submit(self._remote.read, start, stop - start)
            self._next = start, stop, coming
            self._remote.counters.add(bytes_ahead=stop - start)
            self._window = min(2 * self._window, LAST_WINDOW)
        else:
            self._window = max(self._window // 2, FIRST_WINDOW)

    def _plan(self, needed: int) -> tuple[int, int]:
        """The next window, which ends at a page's edge."""
        size = max(self._window, needed)
        if self._back:
            return max(0, self._start - size) // PAGE_SIZE * PAGE_SIZE, self._start
        stop = -(-(self._stop + size) // PAGE_SIZE) * PAGE_SIZE
        return self._stop, max(self._stop, min(self._limit, stop))
