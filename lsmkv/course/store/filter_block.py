"""Lab 5 in the engine: the filter block of each table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lsmkv.course.store.seams import Using, engine


def building(using: Using) -> None:
    """A table's filters, one for every 2 KiB of data blocks."""
    pack = engine("format.keys.pack")

    def start_block(own: Any) -> Callable[..., None]:
        def call(self: Any, block_offset: int) -> None:
            with using.guard.inside(using.in_use()):  # these filters are only for the comparison
                own(self, block_offset)
            if not hasattr(self, "mine_blocks"):
                self.mine_blocks = []
            self.mine_blocks.append((block_offset, []))

        return call

    def add_keys(own: Any) -> Callable[..., None]:
        def call(self: Any, keys: list[bytes]) -> None:
            own(self, keys)
            with using.guard.inside():
                self.mine_blocks[-1][1].extend(pack(key, 1, 1) for key in keys)

        return call

    def finish(own: Any) -> Callable[[Any], bytes]:
        def call(self: Any) -> bytes:
            create = using.guard.outside(self._policy.create_filter)
            arguments = (self.mine_blocks, create)
            return bytes(
                using.compared(using.mine.build_filter_block, arguments, lambda: own(self))
            )

        return call

    builder = "table.filter_block.FilterBlockBuilder"
    using.method(f"{builder}.start_block", start_block)
    using.method(f"{builder}.add_keys", add_keys)
    using.method(f"{builder}.finish", finish)


def asking(using: Using) -> None:
    """From the offset of a data block to its filter."""
    hashes_of = engine("filter.key_hashes.KeyHashes")

    def make(own: Any) -> Callable[..., bool]:
        def may_match(self: Any, block_offset: int, hashes: Any) -> bool:
            def ask(key: bytes, data: bytes) -> bool:
                return bool(self._probe.may_match(hashes_of(key), data, 0, len(data)))

            arguments = (self.contents, block_offset, hashes.key, using.guard.outside(ask))
            reference = lambda: own(self, block_offset, hashes)  # noqa: E731
            return bool(using.compared(using.mine.key_may_match, arguments, reference))

        return may_match

    using.method("table.filter_block.FilterBlockReader.may_match", make)
