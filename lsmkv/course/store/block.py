"""Lab 3 in the engine: blocks are built and read.

Left out: ``seek``.  It compares keys as bytes, and those of a table are internal keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lsmkv.course.store.seams import Using, engine

_TAG = 8
"""Bytes of an internal key after its user key."""


def building(using: Using) -> None:
    """Every data block, index block and metaindex block."""

    def reset(own: Any) -> Callable[[Any], None]:
        def call(self: Any) -> None:
            own(self)
            self.mine_entries = []

        return call

    def add(own: Any) -> Callable[..., None]:
        def call(self: Any, key: bytes, value: bytes) -> None:
            own(self, key, value)
            self.mine_entries.append((key, value))

        return call

    def add_entries(own: Any) -> Callable[..., int]:
        def call(self: Any, user_keys: Any, tagged: Any, at: int, stop: int, full: int) -> int:
            end = int(own(self, user_keys, tagged, at, stop, full))
            for number in range(at, end):
                version = tagged[number]
                self.mine_entries.append((user_keys[number] + version[:_TAG], version[_TAG:]))
            return end

        return call

    def finish(own: Any) -> Callable[[Any], bytes]:
        def call(self: Any) -> bytes:
            arguments = (self.mine_entries, self._restart_interval)
            return bytes(using.compared(using.mine.build_block, arguments, lambda: own(self)))

        return call

    builder = "table.block_builder.BlockBuilder"
    for name, make in (
        ("reset", reset),
        ("add", add),
        ("add_entries", add_entries),
        ("finish", finish),
    ):
        using.method(f"{builder}.{name}", make)


def reading(using: Using) -> None:
    """The entries of a block, for Gets, scans and compactions."""
    decode = engine("table.block.Block.entries")

    def pairs(self: Any) -> list[tuple[bytes, bytes]]:
        return list(zip(*decode(self), strict=True))

    def entries(own: Any) -> Callable[[Any], tuple[list[bytes], list[bytes]]]:
        def call(self: Any) -> tuple[list[bytes], list[bytes]]:
            if self._decoded is not None:
                return self._decoded  # type: ignore[no-any-return]
            found = using.compared(using.mine.read_block, (self.data,), lambda: pairs(self))
            return [key for key, _ in found], [value for _, value in found]

        return call

    def tagged_entries(own: Any) -> Callable[[Any], list[tuple[bytes, bytes]]]:
        def call(self: Any) -> list[tuple[bytes, bytes]]:
            if not using.in_use():
                return own(self)  # type: ignore[no-any-return]
            keys, values = self.entries()
            both = zip(keys, values, strict=True)
            return [(key[:-_TAG], key[-_TAG:] + value) for key, value in both]

        return call

    using.method("table.block.Block.entries", entries)
    using.method("table.block.Block.tagged_entries", tagged_entries)
