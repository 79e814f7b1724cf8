"""The value of a string: whole in its key's record, or in chunks under their own keys.

A string of up to ``LONGEST_WHOLE`` bytes that was never longer is whole.  A longer one is in chunks
of ``CHUNK`` bytes, so a command that reads or writes a part of it costs O(that part).  What is
missing, a chunk or the end of one, is zeros: a string of 512 MiB of which one bit was set is one
chunk.

Both sizes were measured.  To read and write a chunk of 16 KiB takes as long as one of 4 KiB, and a
sixth of what one of 64 KiB takes; a string of 512 MiB is read and written as fast with both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from lsmkv.server.encoding import U32, Entry, element_prefix
from lsmkv.server.records import Records

CHUNK: Final = 16 << 10
"""Bytes of a chunk of a new string.  Each string states its own."""
LONGEST_WHOLE: Final = 128 << 10
"""Bytes of the longest string that is not in chunks."""
MOST_AT_ONCE: Final = 4 << 20
"""Bytes of the longest string that is written in one step: see ``staging.py``."""
_FEW: Final = 4
"""Chunks up to which Gets read them; more are read by a scan."""


class NotStaged(Exception):
    """A long string is to be written in steps before the command runs: its value, and the entry
    that has it whole, or None."""


class StringValue:
    """Reads and changes a string.

    Call order: ``(pieces read | write)* flush``; after ``flush`` the entry is to be saved.
    """

    def __init__(
        self, records: Records, entry: Entry, longest_whole: int, split: Callable[[Entry], None]
    ) -> None:
        """``split`` prepares an entry for chunks, when it gets longer than ``longest_whole``."""
        self._records = records
        self.entry = entry
        self._longest_whole = longest_whole
        self._split = split
        self._whole: bytearray | None = None
        """The changed value of a string that is whole."""
        self._changed: dict[int, bytearray] = {}
        """The changed chunks, by their numbers."""

    @property
    def size(self) -> int:
        """Its length in bytes."""
        if self.entry.version:
            return self.entry.size
        return len(self.entry.rest if self._whole is None else self._whole)

    def read(self, start: int, stop: int) -> bytes:
        """The bytes from ``start`` up to ``stop``, or to the end.  O(bytes)."""
        parts: list[bytes] = []
        at = start
        for place, piece in self.pieces(start, stop):
            if place > at:
                parts.append(bytes(place - at))
            parts.append(piece)
            at = place + len(piece)
        if at < min(stop, self.size):
            parts.append(bytes(min(stop, self.size) - at))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def pieces(self, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
        """Yield the stored bytes from ``start`` up to ``stop``, in order, with their positions.

        All else up to the end of the string is zeros.
        """
        stop = min(stop, self.size)
        if start >= stop:
            return
        if not self.entry.version:
            rest = self.entry.rest if self._whole is None else self._whole
            yield start, bytes(rest[start:stop])
            return
        step = self.entry.chunk_size
        for number, chunk in self._chunks(start // step, (stop - 1) // step):
            place = number * step
            low, high = max(start - place, 0), min(stop - place, len(chunk))
            if low < high:
                yield place + low, bytes(chunk[low:high]) if high - low < len(chunk) else chunk

    def _chunks(self, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        """The chunks from one number to another."""
        if last - first < _FEW or self._changed:
            for number in range(first, last + 1):
                changed = self._changed.get(number)
                chunk = self._records.get(self._name(number)) if changed is None else bytes(changed)
                if chunk is not None:
                    yield number, chunk
            return
        skip = len(element_prefix(self.entry))
        for name, chunk in self._records.scan(self._name(first), self._name(last + 1)):
            yield U32.unpack_from(name, skip)[0], chunk

    def _name(self, number: int) -> bytes:
        return element_prefix(self.entry) + U32.pack(number)

    def write(self, at: int, data: bytes) -> None:
        """Overwrite bytes, extending the string with zeros if necessary.  O(bytes), or O(string)
        if it is whole."""
        entry = self.entry
        stop = at + len(data)
        size = max(self.size, stop)
        if not entry.version:
            if size <= self._longest_whole:
                if self._whole is None:
                    self._whole = bytearray(entry.rest)
                self._whole.extend(bytes(size - len(self._whole)))
                self._whole[at:stop] = data
                return
            self.flush()
            self._split(entry)
            before, entry.rest = entry.rest, b""
            self._put(0, before)
            entry.size = len(before)
        self._put(at, data)
        entry.size = size

    def _put(self, at: int, data: bytes) -> None:
        step = self.entry.chunk_size
        done = 0
        while done < len(data):
            number, low = divmod(at + done, step)
            piece = data[done : done + step - low]
            done += len(piece)
            chunk = self._changed.get(number)
            if chunk is None:
                stored = self._records.get(self._name(number)) if number < self._end else None
                if stored is None:
                    self.entry.chunks += 1
                if len(piece) == step:
                    self._records.put(self._name(number), piece)
                    continue
                chunk = self._changed[number] = bytearray(stored or b"")
            if len(chunk) < low:
                chunk.extend(bytes(low - len(chunk)))
            chunk[low : low + len(piece)] = piece

    @property
    def _end(self) -> int:
        """The lowest number from which no chunk exists yet."""
        return -(-self.entry.size // self.entry.chunk_size)

    def flush(self) -> None:
        """Put the changes into the records and the entry."""
        if self._whole is not None:
            self.entry.rest = bytes(self._whole)
            self._whole = None
        for number, chunk in self._changed.items():
            self._records.put(self._name(number), bytes(chunk))
        self._changed.clear()
