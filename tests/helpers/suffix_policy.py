"""A custom filter policy."""

from __future__ import annotations

from typing import Any


class SuffixPolicy:
    """A custom filter: the set of last bytes."""

    name = "test.suffix"

    def create_filter(self, keys: Any, /) -> bytes:
        return bytes(sorted({key[-1] for key in keys}))

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        return key[-1] in filter_data
