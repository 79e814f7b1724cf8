"""A part of the input that was in this process's memory, stored where a worker finds it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lsmkv.engine.errors import CorruptionError
from lsmkv.shards.building.blob import unpack_pairs
from lsmkv.shards.building.place import Place


class StoredPart(NamedTuple):
    """A blob of pairs in an object.

    An executor would keep the blob itself in memory, and copy it from process to process.
    """

    work: Place
    name: str
    label: str
    size: int | None

    def pairs(self) -> Iterator[tuple[bytes, bytes]]:
        """The pairs, in their order.  One request; ``CorruptionError`` names the part."""
        with self.work.open() as objects:
            blob = objects.get(self.name)
        try:
            keys, values = unpack_pairs(blob)
        except CorruptionError as error:
            raise error.located(self.label) from None
        return zip(keys, values, strict=True)
