"""Lab 8: the read path, along which the student's Get goes through the tables of a real store."""

from __future__ import annotations

import contextlib
import os
import random
from abc import abstractmethod
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import NamedTuple, overload

import lsmkv
from lsmkv.counters import NUM_LEVELS, ReadCounters
from lsmkv.db.manifest import read_manifest
from lsmkv.db.version import Version
from lsmkv.env.local import LocalEnv
from lsmkv.filter.bloom import BloomFilterPolicy, leveldb_hash
from lsmkv.filter.policy import FilterPolicy
from lsmkv.format.filenames import FileType, read_current, table_name
from lsmkv.format.keys import (
    KIND_VALUE,
    MAX_SEQUENCE,
    InternalKeyComparator,
    pack,
    unpack,
    user_key_of,
)
from lsmkv.format.version_edit import FileMetaData
from lsmkv.options import Options
from lsmkv.stats import LevelStats
from lsmkv.table.reader import Table
from lsmkv.tools.course.failure import CheckFailure, require, require_equal, shown
from lsmkv.tools.course.lab import Check, Lab
from lsmkv.tools.course.labs.scratch import (
    files_of,
    require_content_by_leveldb,
    require_same,
    scratch,
)
from lsmkv.tools.text import count
from lsmkv.util.comparator import BytewiseComparator

Content = dict[bytes, bytes | None]
"""Keys and values; a value of None is a deletion."""

BITS = 10


class Step(NamedTuple):
    """What a Get asked of a table: its filter, or a block."""

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
    """A table as the student's Get sees it, which notes down every step."""

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
            f"{self} has the blocks 0 to {len(self.index_keys) - 1}, and your code asks for"
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
    """A table that a check makes up.

    Its filters err for the keys that are given as ``taken_for``, or by a policy's own filters.
    """

    def __init__(
        self,
        steps: list[Step],
        level: int,
        number: int,
        content: Content,
        taken_for: Sequence[bytes] = (),
        policy: FilterPolicy | None = None,
        block_keys: int = 2,
    ) -> None:
        """``block_keys`` is the number of keys in a block."""
        keys = sorted(content)
        super().__init__(steps, level, number, (keys[0], keys[-1]))
        self._content = content
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
        return [(key, self._content[key]) for key in self._blocks[block]]


class StoredTable(AskedTable):
    """A table of a store, read by the engine's own reader."""

    def __init__(self, steps: list[Step], level: int, file: FileMetaData, table: Table) -> None:
        ends = user_key_of(file.smallest), user_key_of(file.largest)
        super().__init__(steps, level, file.number, ends)
        self.index_keys = [user_key_of(key) for key in table.index.keys]
        self.table = table
        self._counters = ReadCounters()

    def _ask(self, block: int, key: bytes) -> bool:
        return self.table.filters.may_match(block, key, -1, self._counters)

    def _read(self, block: int) -> Sequence[tuple[bytes, bytes | None]]:
        keys, values = self.table.read(block, self._counters).entries()
        entries = zip(map(unpack, keys), values, strict=True)
        return [(key, value if kind == KIND_VALUE else None) for (key, _, kind), value in entries]


class Watched(Sequence[AskedTable]):
    """A sorted level, which counts how many of its tables are looked at."""

    def __init__(self, tables: list[AskedTable]) -> None:
        self._tables = tables
        self.looks = 0

    def __len__(self) -> int:
        return len(self._tables)

    @overload
    def __getitem__(self, at: int) -> AskedTable: ...

    @overload
    def __getitem__(self, at: slice) -> list[AskedTable]: ...

    def __getitem__(self, at: int | slice) -> AskedTable | list[AskedTable]:
        found = self._tables[at]
        self.looks += len(found) if isinstance(found, list) else 1
        return found


def in_order(level: int, number: int, size: int = 3) -> list[AskedTable]:
    """Tables of a sorted level: ``000c`` to ``002c``, ``010c`` to ``012c``, and so on."""
    return [
        MadeTable([], level, 10 + at, {b"%03d%dc" % (at, n): b"v" for n in range(size)})
        for at in range(number)
    ]


def finding(code: ModuleType) -> str:
    """The table of a sorted level: at its ends, between tables, beyond them."""
    asked = 0
    for number in (0, 1, 2, 7):
        level = in_order(1, number)
        keys = {b"", b"zzz"}
        for table in level:
            for key in (table.smallest, table.largest):
                keys |= {key, key[:-1] + b"b", key + b"\0"}
        for key in sorted(keys):
            expected = next((one for one in level if one.smallest <= key <= one.largest), None)
            asked += 1
            got = code.find_table(level, key)
            hint = "Both ends of a range belong to it: smallest <= key <= largest."
            if expected is None:
                hint = "The key may fall between two tables, or before or behind them all: None."
            require(
                got is expected,
                f"find_table in a level of {count(number, 'table')}, {level}, must find"
                f" {told(expected)} for {key!r}, and your code returned {told(got)}.\n{hint}",
            )
    return f"{asked} keys"


def told(table: object) -> str:
    """A table in a message."""
    return f"table {table.number}" if isinstance(table, AskedTable) else shown(table)


def bisecting(code: ModuleType) -> str:
    """A large level is searched by halves."""
    level = Watched(in_order(1, 5000, 2))
    most = 0
    for at in (0, 1, 2499, 4998, 4999):
        level.looks = 0
        key = b"%03d1c" % at
        found = code.find_table(level, key)
        looks = level.looks
        require(
            getattr(found, "largest", None) == key,
            f"find_table does not find {key!r} in a level of 5,000 tables.",
        )
        require(
            looks <= 40,
            f"find_table looked at {count(looks, 'table')} of 5,000 to find one.\n"
            "The tables of a level are sorted: bisect them. A list of all their ends, made for"
            " each Get, costs as much as a look at each table.",
        )
        most = max(most, looks)
    return f"at most {most} of 5,000 tables looked at"


def layers(steps: list[Step]) -> Levels:
    """Tables on three levels, with each case of a Get's way among their keys."""
    made: Levels = [[] for _ in range(NUM_LEVELS)]
    made[0] = [
        MadeTable(steps, 0, 21, {b"b": b"old", b"e": b"older", b"f": b"f21", b"m": None}),
        MadeTable(steps, 0, 24, {b"a": b"a24", b"b": b"new", b"c": b""}, [b"aa"]),
        MadeTable(steps, 0, 26, {b"d": None, b"e": b"e26", b"k": b"k26"}),
    ]
    made[1] = [
        MadeTable(steps, 1, 15, {b"a": b"a15", b"c": b"gone", b"d": b"gone"}),
        MadeTable(steps, 1, 17, {b"f": None, b"g": b"g17", b"h": b"h17", b"n": b"n17"}, [b"gg"]),
    ]
    made[3] = [
        MadeTable(steps, 3, 5, {b"aa": b"aa5", b"f": b"gone", b"m": b"gone", b"n": b"gone"}),
        MadeTable(steps, 3, 6, {b"o": b"o6", b"p": b"p6", b"q": None, b"t": b"t6", b"u": b"u6"}),
    ]
    return made


ASKED = sorted({*(bytes([byte]) for byte in b"_abcdefghijklmnopqrstuv"), b"", b"aa", b"gg", b"bb"})
"""Keys, one of each kind of way through :func:`layers`."""


def ordering(code: ModuleType) -> str:
    """The tables that a Get has to ask, in their order."""
    levels = layers([])
    for key in ASKED:
        expected = candidates(levels, key)
        got = code.tables_to_ask(levels, key)
        require(isinstance(got, list), f"tables_to_ask must return a list, not {shown(got)}.")
        numbers = [getattr(one, "number", one) for one in got]
        wanted = [one.number for one in expected]
        hint = "On level 0, all tables that cover the key; on each deeper level the one that does."
        if sorted(map(str, numbers)) == sorted(map(str, wanted)):
            hint = (
                "The right tables in another order: level 0 comes first, and there the newest table"
                " first, that is the one with the largest number; then level 1, and so on down."
            )
        require(
            numbers == wanted,
            f"tables_to_ask for {key!r} must name the tables {wanted}, and your code names"
            f" {numbers}. The levels are {described(levels)}.\n{hint}",
        )
    require(
        [table.number for table in levels[0]] == [21, 24, 26],
        "tables_to_ask has changed the list of level 0. Other Gets use it, too: sort a copy.",
    )
    return f"{len(ASKED)} keys"


def candidates(levels: Levels, key: bytes) -> list[AskedTable]:
    """The tables that a Get asks, by their ranges: the engine's choice."""
    files = [
        [
            FileMetaData(
                table.number,
                0,
                pack(table.smallest, MAX_SEQUENCE, KIND_VALUE),
                pack(table.largest, 0, KIND_VALUE),
            )
            for table in level
        ]
        for level in levels
    ]
    version = Version(InternalKeyComparator(BytewiseComparator()), files)
    tables = {table.number: table for level in levels for table in level}
    return [tables[file.number] for _, file in version.candidates(key)]


def described(levels: Levels) -> str:
    """The levels that hold something, for a message."""
    filled = (f"{number}: {level}" for number, level in enumerate(levels) if level)
    return "; ".join(filled)


def blocks(code: ModuleType) -> str:
    """The block of a table where a key would be."""
    asked = 0
    for index_keys in ([b"c"], [b"c", b"f"], [b"b%02d" % (2 * n) for n in range(9)], []):
        keys = {b"", b"zz", *index_keys, *(key + b"\0" for key in index_keys)}
        for key in sorted(keys | {key[:-1] for key in index_keys}):
            at = bisect_left(index_keys, key)
            asked += 1
            require_equal(
                code.block_for(list(index_keys), key),
                at if at < len(index_keys) else None,
                f"block_for({index_keys}, {key!r})",
                "An index key is at or above all keys of its block: the first index key that is not"
                " below the key names the block, and behind the last one there is none.",
            )
    return f"{asked} keys"


def answers(code: ModuleType) -> str:
    """The value of a key, wherever it is; deletions, and old versions below them."""
    for key in ASKED:
        steps: list[Step] = []
        levels = layers(steps)
        holders = [table for table in candidates(levels, key) if holds(table, key)]
        expected = value_in(holders[0], key) if holders else None
        got = code.get(levels, key)
        in_vain = {table.number for table in candidates(levels, key) if not holds(table, key)}
        misled = next((step.table for step in steps if step.said and step.table in in_vain), None)
        where = (
            f"Table {holders[0].number} has its newest version" if holders else "No table has it"
        )
        hint = f"{where}. The first table that holds the key has the answer."
        if not holders:
            hint = f"{where}. A filter's maybe is no proof: look whether the key is in the block."
        elif misled is not None:
            hint = f"{where}. The filter of table {misled} says maybe in vain: go on to the next."
        elif expected is None:
            hint = f"{where}, a deletion, so there is no such key, whatever older tables hold."
        elif expected == b"":
            hint = f"{where}, the empty value: not the same as None."
        elif got is None:
            hint = f"{where}. Is each filter asked for the key as it is, and for the right block?"
        require(
            got == expected and type(got) is type(expected),
            f"get of {key!r} must be {expected!r}, and your code returned {got!r}. Its steps:"
            f" {path(steps)}.\n{hint}",
        )
    return f"{len(ASKED)} keys"


def holds(table: AskedTable, key: bytes) -> bool:
    """Whether a made-up table has a version of a key."""
    return isinstance(table, MadeTable) and key in table._content


def value_in(table: AskedTable, key: bytes) -> bytes | None:
    """The value that a made-up table has for a key."""
    assert isinstance(table, MadeTable)
    return table._content[key]


def filters_first(code: ModuleType) -> str:
    """No block is read but where the filter said maybe, and none behind the answer."""
    for key in ASKED:
        steps: list[Step] = []
        code.get(layers(steps), key)
        got = list(steps)
        steps.clear()
        walk(layers(steps), key)
        require_path(got, steps, key)
    return f"{len(ASKED)} keys, each by the cheapest way"


def walk(levels: Levels, key: bytes) -> None:
    """Go the way of a Get, for the steps that it takes."""
    for table in candidates(levels, key):
        block = bisect_left(table.index_keys, key)
        if table.key_may_match(block, key) and key in dict(table.read_block(block)):
            return


def require_path(got: list[Step], expected: list[Step], key: bytes) -> None:
    """Fail, with the likely reason, unless a Get has taken these steps."""
    if got == expected:
        return
    hint = "Ask the filter of the block that the index names; if it says no, go to the next table."
    unasked = [
        step
        for at, step in enumerate(got)
        if step.said is None and step._replace(said=True) not in got[:at]
    ]
    twice = next((step for step, times in Counter(got).items() if times > 1), None)
    reads = [step for step in got if step.said is None]
    if unasked:
        hint = (
            f"You read block {unasked[0].block} of table {unasked[0].table} from disk, and its"
            " filter had not said maybe. The filter comes before any data block."
        )
    elif twice is not None:
        hint = f"One step was taken twice: {twice}."
    elif len(got) > len(expected) and got[: len(expected)] == expected:
        hint = "Your Get goes on behind the answer. Deletions are answers, too."
    elif [step for step in expected if step.said is None] == reads:
        hint = "The blocks are the right ones. Which filters does your Get ask, and in which order?"
    raise CheckFailure(
        f"get of {key!r} took these steps: {path(got)}.\nThe cheapest way is: {path(expected)}.\n"
        f"{hint}"
    )


def path(steps: Sequence[Step]) -> str:
    """Steps in a sentence."""
    return "; ".join(map(str, steps)) or "none"


def expecting(code: ModuleType) -> str:
    """The formula."""
    cases = (
        *((0, 0.01, False), (0, 0.01, True), (1, 0.01, False), (1, 0.01, True)),
        *((8, 0.01, False), (8, 1.0, False), (8, 1.0, True), (5, 0.25, True), (3, 0.0, True)),
    )
    for misses, rate, is_present in cases:
        expected = misses * rate + is_present
        got = code.expected_reads(misses, rate, is_present)
        hint = "Each table that does not hold the key costs a block as often as its filter errs."
        if is_present:
            hint += " The one that does hold it costs one block: its filter never says no."
        require(
            isinstance(got, int | float) and abs(got - expected) < 1e-9,
            f"expected_reads({misses}, {rate}, {is_present}) must be {expected:g}, and your code"
            f" returned {shown(got)}.\n{hint}",
        )
    return f"{len(cases)} cases"


TABLES = 6


def counting(code: ModuleType) -> str:
    """Gets of absent keys in tables with filters: the blocks that are read, and the formula's."""
    dice = random.Random(8)
    absent = [b"%06d" % dice.randrange(10, 999_990) for _ in range(1500)]
    found: list[str] = []
    for bits in (0, 3, 6):
        steps: list[Step] = []
        policy = BloomFilterPolicy(bits) if bits else EveryKey()
        levels: Levels = [[] for _ in range(NUM_LEVELS)]
        for number in range(TABLES):
            keys = [b"%06dx" % dice.randrange(1_000_000) for _ in range(118)]
            content: Content = dict.fromkeys([b"000000x", b"999999x", *keys], b"v")
            levels[0].append(MadeTable(steps, 0, number + 1, content, (), policy, 40))
        asked = reads = 0
        for key in absent:
            steps.clear()
            code.get(levels, key)
            asked += len(levels[0])
            reads += sum(step.said is None for step in steps)
        rate = sum(step_says(levels, key) for key in absent) / asked
        expected = code.expected_reads(TABLES, rate, False)
        got = reads / len(absent)
        with_bits = f"filters of {bits} bits a key" if bits else "no filters"
        require(
            abs(got - expected) < 1e-9,
            f"In {TABLES} tables with {with_bits}, which err for {rate:.2%} of these keys, a Get of"
            f" an absent key reads {got:.3f} blocks with your get, and your expected_reads says"
            f" {shown(expected)}.\nOne block is read for each maybe, and none for a no.",
        )
        found.append(f"{with_bits}: {got:.3f} blocks a Get")
    return "; ".join(found)


def step_says(levels: Levels, key: bytes) -> int:
    """How many filters of level 0 say maybe to a key."""
    return sum(table.key_may_match(bisect_left(table.index_keys, key), key) for table in levels[0])


class EveryKey:
    """A policy whose filters say maybe to every key: no filters, in effect."""

    name = "course.EveryKey"

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        return b""

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        return True


def some_key(dice: random.Random, low: int, high: int) -> bytes:
    """A key between two numbers, out of as many as there are numbers."""
    return b"%05d" % dice.randrange(low, high)


def fill(directory: str, bits: int) -> Content:
    """A store with four tables on level 2, two on level 1, and three on level 0; what it holds."""
    content: Content = {}
    dice = random.Random(1)
    ranges = [(at, at + 2500) for at in range(0, 10_000, 2500)] + [(0, 5000), (5000, 10_000)]
    with lsmkv.DB(
        directory,
        create_if_missing=True,
        block_size=512,
        compression=None,
        bloom_filter_bits=bits,
        seek_compaction=False,
    ) as db:
        for low, high in [*ranges, *[(0, 10_000)] * 3]:
            for number in range(120):
                key = some_key(dice, low, high)
                value = None if number % 9 == 0 else b"value %d of %d" % (number, low) + bytes(20)
                content[key] = value
                if value is None:
                    db.delete(key)
                else:
                    db.put(key, value)
            db.flush()
    return content


@contextlib.contextmanager
def opened(directory: str, steps: list[Step], policy: FilterPolicy | None) -> Iterator[Levels]:
    """The tables of a store by level, as its MANIFEST has them, which note down every step."""
    folder = LocalEnv().open_directory(directory)
    manifest = read_manifest(folder, read_current(folder))
    levels: Levels = []
    with contextlib.ExitStack() as stack:
        for level, files in enumerate(manifest.levels):
            tables: list[StoredTable] = []
            for file in files.values():
                table = Table(Options(filter_policy=policy), folder.open(table_name(file.number)))
                stack.callback(table.close)
                tables.append(StoredTable(steps, level, file, table))
            by = table_number if level == 0 else smallest_key
            levels.append(sorted(tables, key=by))
        yield levels


def table_number(table: AskedTable) -> int:
    return table.number


def smallest_key(table: AskedTable) -> bytes:
    return table.smallest


class Cost(NamedTuple):
    """What a Get costs on one level."""

    filters: int
    blocks: int


def costs_of(steps: Sequence[Step], has_filters: bool) -> list[Cost]:
    """The costs of a Get by level, of the steps that it took."""
    return [
        Cost(
            sum(has_filters and step.said is not None for step in steps if step.level == level),
            sum(step.said is None for step in steps if step.level == level),
        )
        for level in range(NUM_LEVELS)
    ]


def costs_in(levels: Sequence[LevelStats]) -> list[Cost]:
    """The costs of Gets by level, of the engine's counters."""
    return [Cost(level.filters_asked, level.blocks_read) for level in levels]


def in_the_engine(code: ModuleType) -> str:
    """The student's Get and the engine's go through one store's tables, and cost the same."""
    with scratch() as directory:
        store = os.path.join(directory, "store")
        content = fill(store, BITS)
        present, absent = some_gets(content)
        totals = [
            compare(code, store, content, [*present, *absent], policy)
            for policy in (BloomFilterPolicy(BITS), None)
        ]
        tables = len(files_of(store, FileType.TABLE))
        by_leveldb = require_content_by_leveldb(store, content, "The store", BITS)
    (filters, reads), (_, reads_without) = totals
    return (
        f"in the {tables} tables of a store, {len(present) + len(absent)} Gets of yours gave the"
        f" engine's answers{by_leveldb}; they asked {filters:,} filters and read {reads:,} blocks,"
        f" exactly as db.stats() counts them, and {reads_without:,} blocks without filters"
    )


def compare(
    code: ModuleType,
    store: str,
    content: Content,
    keys: Sequence[bytes],
    policy: FilterPolicy | None,
) -> Cost:
    """Get keys both ways, and compare answers and costs; the costs of all."""
    steps: list[Step] = []
    filters = blocks_read = 0
    told_filters = "with filters" if policy else "without filters"
    with (
        opened(store, steps, policy) as levels,
        lsmkv.DB(
            store,
            read_only=True,
            bloom_filter_bits=BITS if policy else 0,
            lru_cache_size=0,
            seek_compaction=False,
        ) as db,
    ):
        for key in keys:
            steps.clear()
            got = code.get(levels, key)
            before = db.stats()
            expected = db.get(key)
            spent = costs_in((db.stats() - before).levels)
            require_same({key: expected}, {key: content.get(key)}, "DB.get answers")
            require(
                got == expected,
                f"In a store {told_filters}, your get of {key!r} returned {shown(got)}, and DB.get"
                f" {shown(expected)}. Your steps: {path(steps)}.",
            )
            for level, (mine, engine) in enumerate(
                zip(costs_of(steps, policy is not None), spent, strict=True)
            ):
                require(
                    mine == engine,
                    f"In a store {told_filters}, for {key!r} on level {level}, db.stats() counts"
                    f" {count(engine.filters, 'filter')} asked and"
                    f" {count(engine.blocks, 'block')} read, and your get asked {mine.filters} and"
                    f" read {mine.blocks}. Your steps: {path(steps)}.",
                )
                filters += mine.filters
                blocks_read += mine.blocks
    return Cost(filters, blocks_read)


def measured_reads(code: ModuleType) -> dict[str, tuple[float, float]]:
    """Data blocks read per Get by filter setting, of use and wasted: the student's Get and the
    engine's, on stores of nine tables, for as many present keys as absent ones."""
    reads: dict[str, tuple[float, float]] = {}
    for bits in (0, 2, 5, 10, 16):
        steps: list[Step] = []
        policy = BloomFilterPolicy(bits) if bits else None
        with scratch() as directory:
            store = os.path.join(directory, "store")
            content = fill(store, bits)
            present, absent = some_gets(content)
            with (
                opened(store, steps, policy) as levels,
                lsmkv.DB(
                    store,
                    read_only=True,
                    bloom_filter_bits=bits,
                    lru_cache_size=0,
                    seek_compaction=False,
                ) as db,
            ):
                for key in (*present, *absent):
                    got, expected = code.get(levels, key), db.get(key)
                    require(
                        got == expected,
                        f"your get of {key!r} returned {shown(got)}, and DB.get {shown(expected)}.",
                    )
                yours = sum(step.said is None for step in steps)
                engine = db.stats().blocks_read
        gets = len(present) + len(absent)
        used = len(present) / gets
        filters = f"{count(bits, 'bit')} a key" if bits else "no filters"
        reads[f"{filters}: yours"] = used, yours / gets - used
        reads[f"{filters}: lsmkv"] = used, engine / gets - used
    return reads


def some_gets(content: Content) -> tuple[list[bytes], list[bytes]]:
    """Keys of which a store has a version, and as many that it never had."""
    dice = random.Random(3)
    present = dice.sample(sorted(content), 200)
    absent: list[bytes] = []
    while len(absent) < len(present):
        key = some_key(dice, 0, 10_000)
        absent += [key] if key not in content else []
    return present, absent


SAMPLE: tuple[Content, ...] = (
    {b"ant": b"1", b"bee": b"2", b"cat": b"3"},
    {b"hen": b"4", b"owl": b"5", b"yak": b"6"},
    {b"bee": b"7", b"cow": b"8", b"fox": b"9"},
    {b"ant": None, b"emu": b"10", b"owl": None},
    {b"bat": b"11", b"dog": b"12", b"pig": b"13"},
)
"""What each flush of a small store writes: two tables for level 2, one for level 1, two for 0."""


def sample(directory: str) -> None:
    """A small store, whose tables have a block each."""
    with lsmkv.DB(
        directory, create_if_missing=True, compression=None, bloom_filter_bits=BITS
    ) as db:
        for content in SAMPLE:
            for key, value in content.items():
                if value is None:
                    db.delete(key)
                else:
                    db.put(key, value)
            db.flush()


def drawing() -> str:
    """The tables of a small store, and the ways of three Gets through them."""
    steps: list[Step] = []
    policy = BloomFilterPolicy(BITS)
    with scratch() as directory:
        store = os.path.join(directory, "store")
        sample(store)
        with opened(store, steps, policy) as levels:
            lines = ["level  table  smallest  largest  index key                   handle"]
            lines += [
                f"{number:5}  {table.number:5}  {table.smallest.decode():<8}  "
                f"{table.largest.decode():<7}  {in_index(table)}"
                for number, level in enumerate(levels)
                for table in level
            ]
            for key in (b"cow", b"owl", b"kea"):
                steps.clear()
                walk(levels, key)
                lines += ["", f"get {key.decode()}"]
                lines += [in_full(levels, step, policy, key) for step in list(steps)]
    return "\n".join(lines) + "\n"


def in_index(table: AskedTable) -> str:
    """The index entry of a stored table's first block."""
    assert isinstance(table, StoredTable)
    index = table.table.index
    handle = index.handle(0)
    where = f"{handle.encode().hex(' ')}: {handle.offset}, {handle.size}"
    return f"{index.keys[0].hex(' '):<26}  {where}"


def in_full(levels: Levels, step: Step, policy: BloomFilterPolicy, key: bytes) -> str:
    """A step with the bytes that it is about."""
    table = next(one for one in levels[step.level] if one.number == step.table)
    assert isinstance(table, StoredTable)
    if step.said is None:
        found = dict(table.read_block(step.block))
        said = f"{key.decode()} is not in it"
        if key in found:
            value = found[key]
            said = "a deletion" if value is None else f"the value {value.decode()}"
        return f"  table {step.table:2}  block {step.block}  read from disk: {said}"
    data = table.table.filters.readers[0].filter_for(table.table.index.offsets[step.block]) or b""
    bits = policy.probed_positions(leveldb_hash(key), data)
    said = f"bit {bits[-1]} is 0: no" if not step.said else "all bits are 1: maybe"
    return f"  table {step.table:2}  filter   {data.hex(' ')}  {said}"


LAB = Lab(
    number=8,
    slug="reading",
    title="The read path",
    functions=("find_table", "tables_to_ask", "block_for", "get", "expected_reads"),
    checks=(
        Check("the table of a level", finding),
        Check("found by bisection", bisecting),
        Check("the tables to ask", ordering),
        Check("the block of a table", blocks),
        Check("the answer of a Get", answers),
        Check("filters first", filters_first),
        Check("the expected reads", expecting),
        Check("the reads counted", counting),
        Check("in the real engine", in_the_engine),
    ),
    drawing=drawing,
)
