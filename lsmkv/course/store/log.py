"""Lab 2 in the engine: the records of the log and of the MANIFEST."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lsmkv.course.store.seams import Using, engine


def checksums(using: Using) -> None:
    """The checksum of each fragment that is written."""
    using.same("util.checksum.typed_crc32c", using.mine.masked_checksum)


def records(using: Using) -> None:
    """Each record that is appended to a log or to a MANIFEST."""
    append = engine("format.log.append_record")
    writer_class = engine("format.log.BytesWriter")

    def framed(payload: bytes, block_offset: int) -> bytes:
        def own() -> bytes:
            writer = writer_class()
            append(writer, payload, block_offset)
            return bytes(writer.getvalue())

        return bytes(using.compared(using.mine.frame, (payload, block_offset), own))

    def write(writer: Any, payload: bytes, block_offset: int) -> None:
        writer.write(framed(payload, block_offset))

    using.function("format.log.append_record", lambda own: write)


def reading(using: Using) -> None:
    """The records of a log or MANIFEST up to its first damage; the engine judges what follows."""
    own_next = engine("format.log.LogReader.__next__")

    def begin(own: Any) -> Callable[[Any], Any]:
        def iterate(self: Any) -> Any:
            self.mine = None
            if using.in_use():
                data = self._file.read(0, self._size)
                found = using.guard.tried(using.part, using.mine.read_log, (data,))
                self.mine = None if using.guard.failed(found) else list(found)
                self.mine_taken = 0
            return own(self)

        return iterate

    def mismatch(self: Any, payload: bytes | None) -> None:
        number = self.mine_taken + 1
        what = f"has a record {number}" if payload is None else f"lacks record {number}"
        if payload is not None and self.mine_taken < len(self.mine):
            what = f"has other bytes in record {number}"
        self.mine = None
        using.guard.fail(
            using.part, "read_log", f"what read_log returns {what} of {self._file.path}"
        )

    def step(own: Any) -> Callable[[Any], Any]:
        def following(self: Any) -> Any:
            mine = getattr(self, "mine", None)
            try:
                record = own_next(self)
            except StopIteration:
                if mine is not None and self.tail is None and self.mine_taken < len(mine):
                    mismatch(self, None)
                raise
            if mine is None:
                return record
            if record.damage is not None:
                self.mine = None  # the student's reader ends here
            elif self.mine_taken >= len(mine) or mine[self.mine_taken] != record.payload:
                mismatch(self, record.payload)
            else:
                record.payload = mine[self.mine_taken]
                self.mine_taken += 1
                using.guard.calls[using.part] += 1
            return record

        return following

    using.method("format.log.LogReader.__iter__", begin)
    using.method("format.log.LogReader.__next__", step)
