"""Lab 6 in the engine: sealed blocks, handles, index keys, the footer, and whole tables.

Left out: ``get``, which reads footer and index for each key and asks no filter.  The Get of lab 8
replaces it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lsmkv.course.store.seams import Using, engine

_TRAILER, _FOOTER = 5, 48
"""Bytes of a block's trailer, and of a table's footer."""


def sealing(using: Using) -> None:
    """Type and checksum of every block that is written, and of every block that is read."""

    def seal(own: Any) -> Callable[..., bytes]:
        def call(raw: bytes, compression: int, *level: int) -> bytes:
            if compression != 0:
                return bytes(own(raw, compression, *level))
            reference = lambda: own(raw, compression)  # noqa: E731
            return bytes(using.compared(using.mine.seal_block, (raw,), reference))

        return call

    def unseal(own: Any) -> Callable[..., tuple[bytes, int]]:
        def call(stored: bytes, most: int, verified: bool) -> tuple[bytes, int]:
            if verified or len(stored) < _TRAILER or stored[-_TRAILER] != 0:
                data, size = own(stored, most, verified)
                return data, size

            def reference() -> bytes:
                data, size = own(stored, most, verified)
                return bytes(data[:size])

            content = bytes(using.compared(using.mine.unseal_block, (stored,), reference))
            return content, len(content)

        return call

    using.function("table.format.seal_block", seal)
    using.function("table.format.unseal_block", unseal)


def handles(using: Using) -> None:
    """Use the student's handles of blocks: in the index, in the metaindex, in the footer."""

    def make(own: Any) -> Callable[[Any], bytes]:
        def encode(self: Any) -> bytes:
            arguments = (self.offset, self.size)
            return bytes(using.compared(using.mine.block_handle, arguments, lambda: own(self)))

        return encode

    using.method("table.format.BlockHandle.encode", make)


def index_keys(using: Using) -> None:
    """The keys of the index, between two blocks and after the last."""

    def separator(own: Any) -> Callable[..., bytes]:
        def call(self: Any, start: bytes, limit: bytes, /) -> bytes:
            arguments = (start, limit)
            reference = lambda: own(self, start, limit)  # noqa: E731
            return bytes(using.compared(using.mine.separator, arguments, reference))

        return call

    def successor(own: Any) -> Callable[..., bytes]:
        def call(self: Any, key: bytes, /) -> bytes:
            return bytes(using.compared(using.mine.successor, (key,), lambda: own(self, key)))

        return call

    comparator = "format.keys.InternalKeyComparator"
    using.method(f"{comparator}.find_shortest_separator", separator)
    using.method(f"{comparator}.find_short_successor", successor)


def footers(using: Using) -> None:
    """The last bytes of every table."""

    def make(own: Any) -> Callable[[Any], bytes]:
        def encode(self: Any) -> bytes:
            arguments = (self.metaindex.encode(), self.index.encode())
            return bytes(using.compared(using.mine.footer, arguments, lambda: own(self)))

        return encode

    using.method("table.format.Footer.encode", make)


def tables(using: Using) -> None:
    """Data blocks and index of each table: ``build_table`` gets all entries when the table ends.

    The engine's builder also makes the table, and holds it back.  What it has in addition, the
    filters and their metaindex, is put between the student's data blocks and the student's index.
    """
    read_footer = engine("table.format.Footer.decode")

    def add(own: Any) -> Callable[..., None]:
        def call(self: Any, key: bytes, value: bytes) -> None:
            own(self, key, value)
            _noted(self).append((key, value))

        return call

    def add_entries(own: Any) -> Callable[..., int]:
        def call(self: Any, user_keys: Any, tagged: Any, at: int, stop: int, limit: int) -> int:
            noted = _noted(self)
            before = len(noted)
            end = int(own(self, user_keys, tagged, at, stop, limit))
            del noted[before:]  # add has noted some of them
            for key, version in zip(user_keys[at:end], tagged[at:end], strict=True):
                noted.append((key + version[:8], version[8:]))
            return end

        return call

    def write_out(own: Any) -> Callable[[Any], None]:
        def call(self: Any) -> None:
            """Ignore writes before the table's end."""

        return call

    def finish(own: Any) -> Callable[[Any], None]:
        def call(self: Any) -> None:
            own(self)
            table = composed(self, b"".join(self._pending))
            self._pending = []
            self._file.append(table)

        return call

    def composed(builder: Any, own_table: bytes) -> bytes:
        """The student's table, with what the engine's has in addition."""
        if not using.in_use() or builder._compression != 0 or builder._block_to_index is None:
            return own_table
        arguments = (_noted(builder), builder._block_size)
        made = using.guard.tried(using.part, using.mine.build_table, arguments)
        if using.guard.failed(made):
            return own_table
        last = builder._block_to_index
        data_end = last.offset + last.size + _TRAILER
        with using.guard.inside():
            index = read_footer(own_table[-_FOOTER:]).index
            at = len(own_table) - _FOOTER - index.size - _TRAILER
            start = len(made) - _FOOTER - index.size - _TRAILER
        parts = (made[:data_end], own_table[data_end:at], made[start:-_FOOTER])
        table: bytes = b"".join((*parts, own_table[-_FOOTER:]))
        if table != own_table:
            what = f"build_table of {len(arguments[0])} entries has other bytes"
            using.guard.fail(using.part, "build_table", what)
            return own_table
        using.guard.calls[using.part] += 1
        return table

    builder = "table.builder.TableBuilder"
    using.method(f"{builder}.add", add)
    using.method(f"{builder}.add_entries", add_entries)
    using.method(f"{builder}._write_out", write_out)
    using.method(f"{builder}.finish", finish)


def _noted(builder: Any) -> list[tuple[bytes, bytes]]:
    if not hasattr(builder, "mine_entries"):
        builder.mine_entries = []
    found: list[tuple[bytes, bytes]] = builder.mine_entries
    return found
