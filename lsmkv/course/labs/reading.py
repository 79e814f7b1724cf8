"""Lab 8: the read path, which the student's Get takes through the tables of a real store."""

from __future__ import annotations

import os
import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from types import ModuleType

import lsmkv
from lsmkv.course.failure import CheckFailure, require, require_equal, shown
from lsmkv.course.lab import Check, Lab
from lsmkv.course.labs.asked_tables import (
    AskedTable,
    Content,
    Levels,
    MadeTable,
    Step,
    StoredTable,
    Watched,
    candidates,
    described,
    holds,
    in_order,
    path,
    versions_in,
    walk,
)
from lsmkv.course.labs.bloom import leveldb_hash
from lsmkv.course.labs.formats import LEVELS
from lsmkv.course.labs.reading_store import BITS, in_the_engine, opened, write
from lsmkv.course.labs.temporary_stores import scratch
from lsmkv.tools.text import count


def finding(code: ModuleType) -> str:
    """Check the table of a sorted level: at its ends, between tables, beyond them."""
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
                hint = (
                    "The key may fall between two tables, before the first or after the last: None."
                )
            require(
                got is expected,
                f"find_table in a level of {count(number, 'table')}, {level}, must find"
                f" {in_words(expected)} for {key!r}, but your code returned"
                f" {in_words(got)}.\n{hint}",
            )
    return f"{asked} keys"


def in_words(table: object) -> str:
    """A table in a message."""
    return f"table {table.number}" if isinstance(table, AskedTable) else shown(table)


def bisecting(code: ModuleType) -> str:
    """Check that a large level is searched by bisection, in all its parts."""
    level = Watched(in_order(1, 5000, 2))
    most = 0
    keys: dict[bytes, AskedTable | None] = {b"": None}
    for at in sorted({0, *range(1, 5000, 199), 2499, 2500, 4998, 4999}):
        table = level.tables[at]
        inside = (table.smallest, table.smallest + b"\0", table.largest)
        keys |= {**dict.fromkeys(inside, table), table.largest + b"\0": None}
    for key, expected in keys.items():
        level.looks = 0
        got = code.find_table(level, key)
        looks = level.looks
        place = f"It is in {expected}."
        if expected is None:
            place = "It is before the first table, between two tables, or after the last one."
        require(
            got is expected,
            f"find_table in a level of 5,000 tables must find {in_words(expected)} for {key!r}, but"
            f" your code returned {in_words(got)}.\n{place}",
        )
        require(
            looks <= 40,
            f"find_table looked at {count(looks, 'table')} of 5,000 to find one.\n"
            "The tables of a level are sorted: bisect them. Making a list of all their ends for"
            " each Get costs as much as looking at each table.",
        )
        most = max(most, looks)
    return f"{len(keys)} keys, at most {most} of 5,000 tables looked at for each"


def layers(steps: list[Step]) -> Levels:
    """Tables on three levels, whose keys cover each case of a Get's path."""
    made: Levels = [[] for _ in range(LEVELS)]
    table24: Content = {b"a": b"a24", b"b": b"new", b"c": b""}
    table26: Content = {b"d": None, b"e": b"e26", b"k": b"k26"}
    made[0] = [
        MadeTable(steps, 0, 21, {b"b": b"old", b"e": b"older", b"f": b"f21", b"m": None}),
        MadeTable(steps, 0, 24, table24, [b"aa"], older={b"b": b"old24"}),
        MadeTable(steps, 0, 26, table26, older={b"d": b"d26", b"k": None}),
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
"""Keys, one of each kind of path through :func:`layers`."""


def ordering(code: ModuleType) -> str:
    """The tables that a Get has to ask, in order."""
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
                "These are the right tables in the wrong order: level 0 comes first, and there the"
                " newest table, which has the largest number; then level 1, and so on."
            )
        require(
            numbers == wanted,
            f"tables_to_ask for {key!r} must name the tables {wanted}, but your code names"
            f" {numbers}. The levels are {described(levels)}.\n{hint}",
        )
    require(
        [table.number for table in levels[0]] == [21, 24, 26],
        "tables_to_ask has changed the list of level 0. Other Gets also use it: sort a copy.",
    )
    return f"{len(ASKED)} keys"


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
                " below the key names the block. Above the last one, the result is None.",
            )
    return f"{asked} keys"


def answers(code: ModuleType) -> str:
    """Check the values of keys on every level; deletions, and old versions below them."""
    for key in ASKED:
        steps: list[Step] = []
        levels = layers(steps)
        holders = [table for table in candidates(levels, key) if holds(table, key)]
        versions = versions_in(holders[0], key) if holders else [None]
        expected = versions[0]
        got = code.get(levels, key)
        errs = {table.number for table in candidates(levels, key) if not holds(table, key)}
        misled = next((step.table for step in steps if step.said and step.table in errs), None)
        where = (
            f"Table {holders[0].number} has its newest version" if holders else "No table has it"
        )
        hint = f"{where}. The first table that holds the key has the answer."
        if not holders:
            hint = f"{where}. A filter's maybe is no proof: check whether the key is in the block."
        elif got != expected and got in versions[1:]:
            hint = f"{where}, and an older one in the same block: the first of them is the newest."
        elif misled is not None:
            hint = f"{where}. The filter of table {misled} erred: ask the next table."
        elif expected is None:
            hint = f"{where}, a deletion, so the key is absent, even if older tables hold it."
        elif expected == b"":
            hint = f"{where}, an empty value, which is not the same as None."
        elif got is None:
            hint = f"{where}. Is each filter asked with the key as it is, and for the right block?"
        require(
            got == expected and type(got) is type(expected),
            f"get of {key!r} must be {expected!r}, but your code returned {got!r}. Its steps:"
            f" {path(steps)}.\n{hint}",
        )
    return f"{len(ASKED)} keys"


def filters_first(code: ModuleType) -> str:
    """Check that a block is read only if its filter said maybe, and none after the answer."""
    for key in ASKED:
        steps: list[Step] = []
        levels = layers(steps)
        code.get(levels, key)
        got = list(steps)
        steps.clear()
        walk(levels, key)
        require_path(got, list(steps), levels, key)
    return f"{len(ASKED)} keys, each by the cheapest way"


def require_path(got: list[Step], expected: list[Step], levels: Levels, key: bytes) -> None:
    """Fail, with the likely reason, unless a Get has taken these steps."""
    if got == expected:
        return
    hint = order_hint(got, levels, key) or step_hint(got, expected, levels, key)
    raise CheckFailure(
        f"get of {key!r} took these steps: {path(got)}.\nThe cheapest way is: {path(expected)}.\n"
        f"{hint}"
    )


def order_hint(got: list[Step], levels: Levels, key: bytes) -> str:
    """Describe a fault in the tables that a Get asked, or in their order; empty if none."""
    tables = {table.number: (level, table) for level, one in enumerate(levels) for table in one}
    asked = list(dict.fromkeys(step.table for step in got))
    order = [table.number for table in candidates(levels, key)]
    for number in asked:
        level, table = tables[number]
        if number not in order:
            ends = f"{table.smallest!r} to {table.largest!r}"
            return f"You asked table {number}, whose range does not cover the key: {ends}."
    for number, first in zip(asked, order, strict=False):
        level, level_of_first = tables[number][0], tables[first][0]
        if number != first and level == level_of_first:
            return f"Table {first} is newer than table {number}: ask it first."
        if number != first:
            return (
                f"Table {first} on level {level_of_first} is newer than table {number} on level"
                f" {level}: ask it first."
            )
    return ""


def step_hint(got: list[Step], expected: list[Step], levels: Levels, key: bytes) -> str:
    """Describe the fault in the steps of a Get that asks the right tables in the right order."""
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
            " filter had not said maybe. Ask the filter before you read a data block."
        )
    elif twice is not None:
        hint = f"One step was taken twice: {twice}."
    elif got[: len(expected)] == expected and any(
        holds(table, key) for table in candidates(levels, key)
    ):
        hint = "Your Get continues after the answer. Deletions are also answers."
    elif [step for step in expected if step.said is None] == reads:
        hint = "The blocks are the right ones. Which filters does your Get ask, and in which order?"
    return hint


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
            f"expected_reads({misses}, {rate}, {is_present}) must be {expected:g}, but your code"
            f" returned {shown(got)}.\n{hint}",
        )
    return f"{len(cases)} cases"


TABLES = 6


def counting(code: ModuleType) -> str:
    """Gets of absent keys in tables with filters: the blocks read, compared with the formula."""
    dice = random.Random(8)
    absent = [b"%06d" % dice.randrange(10, 999_990) for _ in range(300)]
    found: list[str] = []
    for bits in (0, 3, 6):
        steps: list[Step] = []
        policy = lsmkv.BloomFilterPolicy(bits) if bits else EveryKey()
        levels: Levels = [[] for _ in range(LEVELS)]
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
            f" an absent key reads {got:.3f} blocks with your get, but your expected_reads returned"
            f" {shown(expected)}.\nOne block is read for each maybe, and none for each no.",
        )
        found.append(f"{with_bits}: {got:.3f} blocks a Get")
    return "; ".join(found)


def step_says(levels: Levels, key: bytes) -> int:
    """The number of filters of level 0 that say maybe to a key."""
    return sum(table.key_may_match(bisect_left(table.index_keys, key), key) for table in levels[0])


class EveryKey:
    """A policy whose filters say maybe to every key: no filters, in effect."""

    name = "course.EveryKey"

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        return b""

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        return True


SAMPLE: tuple[Content, ...] = (
    {b"ant": b"1", b"bee": b"2", b"cat": b"3"},
    {b"hen": b"4", b"owl": b"5", b"yak": b"6"},
    {b"bee": b"7", b"cow": b"8", b"fox": b"9"},
    {b"ant": None, b"emu": b"10", b"owl": None},
    {b"bat": b"11", b"dog": b"12", b"pig": b"13"},
)
"""The content of each flush of a small store: two tables for level 2, one for level 1, and two for
level 0."""


def sample(directory: str) -> None:
    """A small store, whose tables have one block each."""
    with lsmkv.DB(
        directory, create_if_missing=True, compression=None, bloom_filter_bits=BITS
    ) as db:
        for content in SAMPLE:
            write(db, content)
            db.flush()


def drawing() -> str:
    """The tables of a small store, and the paths of three Gets through them."""
    steps: list[Step] = []
    policy = lsmkv.BloomFilterPolicy(BITS)
    with scratch() as directory:
        store = os.path.join(directory, "store")
        sample(store)
        with opened(store, steps) as levels:
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
    first = table.index[0]
    place = table.places[0]
    return f"{first.key.hex(' '):<26}  {first.value.hex(' ')}: {place.offset}, {place.size}"


def in_full(levels: Levels, step: Step, policy: lsmkv.BloomFilterPolicy, key: bytes) -> str:
    """A step with the bytes that it reads."""
    table = next(one for one in levels[step.level] if one.number == step.table)
    assert isinstance(table, StoredTable)
    if step.said is None:
        values = [value for one, value in table.read_block(step.block) if one == key]
        said = f"{key.decode()} is not in it"
        if values:
            value = values[0]
            said = "a deletion" if value is None else f"the value {value.decode()}"
        return f"  table {step.table:2}  block {step.block}  read from disk: {said}"
    asked = table.filter_of(step.block)
    data = asked.data if asked is not None else b""
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
