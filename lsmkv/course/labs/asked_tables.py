"""Tables as a Get of lab 8 sees them, invented or from a store; each records every step."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, overload

import lsmkv
from lsmkv.course.failure import require, shown
from lsmkv.course.labs.formats import KIND_VALUE, MAX_SEQUENCE
from lsmkv.course.pipe import SEQUENCE, Shape
from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.format.keys import InternalKeyComparator
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.files import Filter, Table, TableFile, make_key

Content = dict[bytes, bytes | None]
"""Keys and values; a value of None is a deletion."""


class Step(NamedTuple):
    """A request of a Get to a table: its filter's answer, or a block."""

    level: int
    table: int
    block: int
    said: bool | None
    """The answer of the filter; None if the block was read."""

    def __str__(self) -> str:
        if self.said is None:
            return f"read block {self.block} of table {self.table}"
        return (
            f"filter of block {self.block} of table {self.table}: {'maybe' if self.said else 'no'}"
        )


class AskedTable:
    """A table as the student's Get sees it, which records every step."""

    SHARED = Shape(
        "object",
        ("key_may_match", "read_block"),
        ("number", "smallest", "largest", "index_keys"),
    )

    def __init__(
        self, steps: list[Step], level: int, number: int, ends: tuple[bytes, bytes]
    ) -> None:
        self.number = number
        self.smallest, self.largest = ends
        self.index_keys: list[bytes] = []
        self._steps = steps
        self._level = level

    def key_may_match(self, block: int, key: bytes) -> bool:
        """The filter's answer; a table without filters says maybe."""
        self._require_block(block)
        said = self._ask(block, key)
        self._steps.append(Step(self._level, self.number, block, said))
        return said

    def read_block(self, block: int) -> Sequence[tuple[bytes, bytes | None]]:
        """The entries of a block."""
        self._require_block(block)
        self._steps.append(Step(self._level, self.number, block, None))
        return self._read(block)

    def _require_block(self, block: int) -> None:
        require(
            type(block) is int and 0 <= block < len(self.index_keys),
            f"{self} has the blocks 0 to {len(self.index_keys) - 1}, and your code requests"
            f" {shown(block)}.",
        )

    def __repr__(self) -> str:
        return f"table {self.number} ({self.smallest!r} to {self.largest!r})"

    @abstractmethod
    def _ask(self, block: int, key: bytes) -> bool: ...

    @abstractmethod
    def _read(self, block: int) -> Sequence[tuple[bytes, bytes | None]]: ...


Levels = list[list[AskedTable]]


class MadeTable(AskedTable):
    """A table that a check invents.

    Its filters err for the keys in ``taken_for``, or are those of a policy.
    """

    def __init__(
        self,
        steps: list[Step],
        level: int,
        number: int,
        content: Content,
        taken_for: Sequence[bytes] = (),
        policy: lsmkv.FilterPolicy | None = None,
        block_keys: int = 2,
        older: Content | None = None,
    ) -> None:
        """``block_keys`` is the number of keys in a block; ``older`` has older versions of some."""
        keys = sorted(content)
        super().__init__(steps, level, number, (keys[0], keys[-1]))
        self._content = content
        self._older = older or {}
        self._blocks = [keys[at : at + block_keys] for at in range(0, len(keys), block_keys)]
        self.index_keys = [block[-1] for block in self._blocks]
        self._taken_for = taken_for
        self._policy = policy
        self._filters = [policy.create_filter(block) for block in self._blocks] if policy else []

    def _ask(self, block: int, key: bytes) -> bool:
        if self._policy is not None:
            return self._policy.key_may_match(key, self._filters[block])
        return key in self._blocks[block] or key in self._taken_for

    def _read(self, block: int) -> Sequence[tuple[bytes, bytes | None]]:
        return [(key, value) for key in self._blocks[block] for value in self.versions(key)]

    def versions(self, key: bytes) -> list[bytes | None]:
        """The values of a key, the newest first."""
        return [content[key] for content in (self._content, self._older) if key in content]


class StoredTable(AskedTable):
    """A table of a store, read with lsmkv.files.  Without ``has_filters``, no filter is asked."""

    def __init__(
        self, steps: list[Step], level: int, file: TableFile, table: Table, has_filters: bool
    ) -> None:
        super().__init__(steps, level, file.number, (file.smallest.user_key, file.largest.user_key))
        self.table = table
        self.index = table.index.entries()
        self.index_keys = [entry.internal_key.user_key for entry in self.index]
        self.places = [place for place in table.places() if place.kind == "data"]
        filters = table.filters() if has_filters else ()
        self._filters = [one for one in filters if isinstance(one, Filter)]

    def filter_of(self, block: int) -> Filter | None:
        """The filter of a block."""
        offset = self.places[block].offset
        return next((one for one in self._filters if one.covers(offset)), None)

    def _ask(self, block: int, key: bytes) -> bool:
        asked = self.filter_of(block)
        answer = None if asked is None else asked.probe(key)
        return answer is None or answer.may_match

    def _read(self, block: int) -> Sequence[tuple[bytes, bytes | None]]:
        entries = self.table.block(self.places[block]).entries()
        pairs = ((entry.internal_key, entry.value) for entry in entries)
        return [(key.user_key, value if key.kind == KIND_VALUE else None) for key, value in pairs]


class Watched(Sequence[AskedTable]):
    """A sorted level that counts how many of its tables are looked at."""

    SHARED = SEQUENCE

    def __init__(self, tables: list[AskedTable]) -> None:
        self.tables = tables
        self.looks = 0

    def __len__(self) -> int:
        return len(self.tables)

    @overload
    def __getitem__(self, at: int) -> AskedTable: ...

    @overload
    def __getitem__(self, at: slice) -> list[AskedTable]: ...

    def __getitem__(self, at: int | slice) -> AskedTable | list[AskedTable]:
        found = self.tables[at]
        self.looks += len(found) if isinstance(found, list) else 1
        return found


def in_order(level: int, number: int, size: int = 3) -> list[AskedTable]:
    """Tables of a sorted level: ``00000c`` to ``00002c``, ``00010c`` to ``00012c``, and so on."""
    tables: list[AskedTable] = [
        MadeTable([], level, 10 + at, {b"%04d%dc" % (at, n): b"v" for n in range(size)})
        for at in range(number)
    ]
    assert all(one.largest < next_one.smallest for one, next_one in pairwise(tables))
    return tables


def candidates(levels: Levels, key: bytes) -> list[AskedTable]:
    """The tables that a Get asks, by their ranges: the engine's choice."""
    files = [
        [
            FileMetaData(
                table.number,
                0,
                make_key(table.smallest, MAX_SEQUENCE, KIND_VALUE),
                make_key(table.largest, 0, KIND_VALUE),
            )
            for table in level
        ]
        for level in levels
    ]
    version = Version(InternalKeyComparator(lsmkv.BytewiseComparator()), files)
    tables = {table.number: table for level in levels for table in level}
    return [tables[file.number] for _, file in version.candidates(key)]


def described(levels: Levels) -> str:
    """The levels that are not empty, for a message."""
    filled = (f"{number}: {level}" for number, level in enumerate(levels) if level)
    return "; ".join(filled)


def holds(table: AskedTable, key: bytes) -> bool:
    """True if an invented table has a version of a key."""
    return isinstance(table, MadeTable) and bool(table.versions(key))


def versions_in(table: AskedTable, key: bytes) -> list[bytes | None]:
    """The values that an invented table has for a key, the newest first."""
    assert isinstance(table, MadeTable)
    return table.versions(key)


def walk(levels: Levels, key: bytes) -> None:
    """Follow the path of a Get, to record its steps."""
    for table in candidates(levels, key):
        block = bisect_left(table.index_keys, key)
        if table.key_may_match(block, key) and key in dict(table.read_block(block)):
            return


def path(steps: Sequence[Step]) -> str:
    """Steps in a sentence."""
    return "; ".join(map(str, steps)) or "none"
