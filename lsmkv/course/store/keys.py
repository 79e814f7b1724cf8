"""Lab 1 in the engine: varints, and internal keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lsmkv.course.store.seams import Using


def varints(using: Using) -> None:
    """Lengths and numbers of blocks, handles, batches and version edits."""
    using.same("util.coding.encode_varint", using.mine.encode_varint)
    using.same("util.coding.decode_varint64", using.mine.decode_varint)


def internal_keys(using: Using) -> None:
    """Use the student's encoding and decoding of a version's key."""
    using.same("format.keys.pack", using.mine.pack_key)
    using.same("format.keys.unpack", using.mine.unpack_key)


def order(using: Using) -> None:
    """Use the student's order of versions: in the builder of a table, and where tables are
    sorted."""

    def compare_keys(a: bytes, b: bytes) -> int:
        found: int = using.mine.compare_keys(a, b)
        return (found > 0) - (found < 0)

    def make(own: Any) -> Callable[..., int]:
        def compare(self: Any, a: bytes, b: bytes, /) -> int:
            if not self.order.is_bytewise:
                return int(own(self, a, b))
            return int(using.compared(compare_keys, (a, b), lambda: own(self, a, b)))

        return compare

    using.method("format.keys.InternalKeyComparator.compare", make)
