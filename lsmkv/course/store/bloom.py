"""Lab 4 in the engine: Bloom filters are made and asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lsmkv.course.store.seams import Using


def making(using: Using) -> None:
    """Use the student's filters for the tables that are written."""

    def make(own: Any) -> Callable[..., bytes]:
        def create_filter(self: Any, keys: Sequence[bytes], /) -> bytes:
            if type(self.bits_per_key) is not int:
                return bytes(own(self, keys))
            arguments = (list(keys), self.bits_per_key)
            return bytes(
                using.compared(using.mine.create_filter, arguments, lambda: own(self, keys))
            )

        return create_filter

    using.method("filter.bloom.BloomFilterPolicy.create_filter", make)


def asking(using: Using) -> None:
    """Ask the student's filter before each read whether the block may hold the key."""

    def make(own: Any) -> Callable[..., bool]:
        def may_match(self: Any, hashes: Any, data: bytes, start: int, stop: int) -> bool:
            if start == stop:
                return False
            return bool(
                using.compared(
                    using.mine.key_may_match,
                    (hashes.key, data[start:stop]),
                    lambda: own(self, hashes, data, start, stop),
                )
            )

        return may_match

    using.method("filter.probe.BloomProbe.may_match", make)
