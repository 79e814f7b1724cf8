"""Ranges of one object in an object store, from the cache on disk or by requests.

The file of a table in an object store (``remote_file.py``) reads through this class, in any thread.
The object is immutable.  Damage is never returned as data: an object that is missing, or shorter
than its directory says, raises :class:`~lsmkv.errors.CorruptionError` with its URL.  Network
failures are raised as the store's ``OSError``.
"""

from __future__ import annotations

import functools
import threading

from lsmkv.engine.errors import CorruptionError
from lsmkv.shards.remote.disk_cache import PAGE_SIZE, DiskCache
from lsmkv.shards.remote.flights import Flights
from lsmkv.shards.remote.objects.base import ObjectStore

MISSING = "the object is missing"
"""The reason of the :class:`~lsmkv.errors.CorruptionError` for an object that is missing."""


class RemoteCounters:
    """Counts of the reads by the files of one ``RemoteEnv``.  Numbers only grow."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.page_hits = 0
        """Pages found in the cache on disk."""
        self.page_misses = 0
        """Pages not found in it."""
        self.shared_reads = 0
        """Reads that waited for another reader's request."""
        self.bytes_ahead = 0
        """Bytes that were requested in windows, ahead of a scan."""

    def add(
        self,
        *,
        page_hits: int = 0,
        page_misses: int = 0,
        shared_reads: int = 0,
        bytes_ahead: int = 0,
    ) -> None:
        """Add to the numbers."""
        with self._lock:
            self.page_hits += page_hits
            self.page_misses += page_misses
            self.shared_reads += shared_reads
            self.bytes_ahead += bytes_ahead


class Source:
    """State shared by the objects of one env: the store, the cache, the requests under way."""

    def __init__(self, objects: ObjectStore, cache: DiskCache | None) -> None:
        self.objects = objects
        self.cache = cache
        self.flights = Flights()
        self.counters = RemoteCounters()


class RemoteObject:
    """One object, of known size.  ``identity`` stands for its content: another object of the same
    name has a different identity."""

    def __init__(self, source: Source, name: str, size: int, identity: str) -> None:
        self._source = source
        self._name = name
        self._identity = identity
        self.size = size
        self.url = source.objects.url_of(name)
        self.counters = source.counters

    def read(self, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset``, not beyond the object's end.

        One request.  With a cache: none for its pages, and one for each run of missing pages.
        Concurrent readers of the same range share a request.
        """
        cache = self._source.cache
        if cache is None or length == 0:
            return self._fetch(offset, length)[0] if length > 0 else b""
        first = offset // PAGE_SIZE
        pages = self._pages(cache, first, -(-(offset + length) // PAGE_SIZE))
        start = offset - first * PAGE_SIZE
        return b"".join(pages)[start : start + length]

    def is_cached(self, start: int, stop: int) -> bool:
        """True if the cache on disk has all bytes from ``start`` to ``stop``."""
        cache = self._source.cache
        pages = range(start // PAGE_SIZE, -(-stop // PAGE_SIZE))
        return cache is not None and all(cache.has(self._identity, number) for number in pages)

    def _pages(self, cache: DiskCache, first: int, stop: int) -> list[bytes]:
        """The pages from ``first`` to ``stop``."""
        found = [self._cached(cache, number) for number in range(first, stop)]
        missing = sum(page is None for page in found)
        self.counters.add(page_hits=len(found) - missing, page_misses=missing)
        pages: list[bytes] = []
        while len(pages) < len(found):
            at = len(pages)
            page = found[at]
            if page is not None:
                pages.append(page)
                continue
            end = at
            while end < len(found) and found[end] is None:
                end += 1
            pages += self._fetch_pages(cache, first + at, first + end)
        return pages

    def _cached(self, cache: DiskCache, number: int) -> bytes | None:
        page = cache.get(self._identity, number)
        if page is not None and len(page) != self._end(number) - number * PAGE_SIZE:
            return None
        return page

    def _fetch_pages(self, cache: DiskCache, first: int, stop: int) -> list[bytes]:
        """Fetch pages by one request, and add them to the cache."""
        start = first * PAGE_SIZE
        data, mine = self._fetch(start, self._end(stop - 1) - start)
        pages = [data[at : at + PAGE_SIZE] for at in range(0, len(data), PAGE_SIZE)]
        if mine:
            for at, page in enumerate(pages):
                cache.put(self._identity, first + at, page)
        return pages

    def _end(self, number: int) -> int:
        """The end of a page in the object."""
        return min(self.size, (number + 1) * PAGE_SIZE)

    def _fetch(self, offset: int, length: int) -> tuple[bytes, bool]:
        """Fetch bytes of the object.  Also returns whether this call made the request."""
        key = (self._identity, offset, length)
        request = functools.partial(self._request, offset, length)
        data, mine = self._source.flights.share(key, request)
        if not mine:
            self.counters.add(shared_reads=1)
        return data, mine

    def _request(self, offset: int, length: int) -> bytes:
        try:
            data = self._source.objects.get_range(self._name, offset, length)
        except FileNotFoundError:
            raise CorruptionError(MISSING, self.url) from None
        if len(data) != length:
            reason = (
                f"the object ends after {len(data)} of the {length} bytes at {offset}; it should"
            )
            raise CorruptionError(f"{reason} have {self.size}", self.url, offset + len(data))
        return data
