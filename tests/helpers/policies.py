"""Custom filter policies."""

from __future__ import annotations

from typing import Any


class FirstByte:
    """The set of first bytes: a policy without hashes and bits."""

    name = "test.FirstByte"

    def create_filter(self, keys: Any, /) -> bytes:
        return bytes(sorted({key[0] for key in keys}))

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        return key[0] in filter_data


class LastByte:
    """The set of last bytes."""

    name = "test.LastByte"

    def create_filter(self, keys: Any, /) -> bytes:
        return bytes(sorted({key[-1] for key in keys}))

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        return key[-1] in filter_data


class DenyingAll:
    """Filters that rule out every key, under the name of another policy."""

    def __init__(self, name: str) -> None:
        self.name = name

    def create_filter(self, keys: Any, /) -> bytes:
        return bytes(8) + b"\x07"

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        return True
