"""The ids that consumer groups will read next.

A scan costs far more than the few entries that a group usually reads.  So it continues for some
ids, and later reads find their entries with Gets.  (XREADGROUP with COUNT 1 takes half as long.)
"""

from __future__ import annotations

from lsmkv.server.stream import Found, Stream
from lsmkv.server.stream_ids import NO_ID, id_after

_FEW = 4
"""A group that reads more entries at a time scans."""
_AHEAD = 32
"""Ids that a scan reads ahead."""
_MOST_BYTES = 8192
"""Bytes of entries read ahead, after which the scan ends."""
_MOST_GROUPS = 1000


class _Known:
    """The ids after an id, the next one last."""

    def __init__(self) -> None:
        self.after = NO_ID
        self.ids: list[bytes] = []


class ReadAhead:
    """Ids in memory, by the version of the group.

    Once known, they stay the next ones: entries are only added after all others.  They may be
    removed, which the Get shows.  What lets an id come back (XSETID, and a tick that could not be
    written) must call :meth:`forget`.
    """

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}

    def forget(self) -> None:
        """Forget all ids."""
        self._known.clear()

    def slice(self, stream: Stream, version: int, after: bytes, count: int) -> list[Found]:
        """The entries after an id, up to ``count`` unless that is 0."""
        if not 0 < count <= _FEW:
            start = id_after(after)
            return [] if start is None else stream.slice(start, count=count)
        known = self._known.get(version)
        if known is None or known.after != after:
            if len(self._known) >= _MOST_GROUPS:
                self.forget()
            known = self._known[version] = _Known()
        found: list[Found] = []
        ids = known.ids
        while ids and len(found) < count:
            after = ids.pop()
            record = stream.get(after)
            if record is not None:
                found.append((after, record))
        if len(found) < count:
            start = id_after(after)
            if start is not None:
                self._scan(stream, start, count, found, known)
        if found:
            known.after = found[-1][0]
        return found

    @staticmethod
    def _scan(stream: Stream, start: bytes, count: int, found: list[Found], known: _Known) -> None:
        """Add entries from an id on, and note the ids after them."""
        size = 0
        following: list[bytes] = []
        for id_, record in stream.walk(start):
            if len(found) < count:
                found.append((id_, record))
                continue
            following.append(id_)
            size += len(record)
            if len(following) == _AHEAD or size > _MOST_BYTES:
                break
        following.reverse()
        known.ids = following
