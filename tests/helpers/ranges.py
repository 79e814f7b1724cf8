"""A store that notes which ranges are walked over."""

from __future__ import annotations

from typing import Any, Unpack

from lsmkv import DB, Iterator
from lsmkv.engine.db.read.iterator import IteratorArguments


class WatchedDB(DB):
    """Notes the bounds of each iterator."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.ranges: list[tuple[Any, Any]] = []

    def iterator(self, **arguments: Unpack[IteratorArguments]) -> Iterator:
        self.ranges.append((arguments.get("start"), arguments.get("stop")))
        return super().iterator(**arguments)
