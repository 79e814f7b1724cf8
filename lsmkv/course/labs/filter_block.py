"""Lab 5: the filter block, which becomes part of a store's table."""

from __future__ import annotations

import functools
import os
import random
from bisect import bisect_left
from collections.abc import Sequence
from types import ModuleType

import lsmkv
from lsmkv.course.failure import CheckFailure, require, require_bytes, require_equal, shown
from lsmkv.course.given import BlockBuilder
from lsmkv.course.lab import Check, Lab
from lsmkv.course.labs.formats import (
    KIND_DELETION,
    KIND_VALUE,
    entries_in,
    footer_of,
    sealed,
)
from lsmkv.course.labs.temporary_stores import (
    blocks_without_filters,
    files_of,
    require_content_by_leveldb,
    require_same,
    scratch,
    store_with_table,
)
from lsmkv.engine.table.filter_block import FilterBlockBuilder
from lsmkv.files import BlockHandle, Table, make_key, parse_filter_block, parse_key
from lsmkv.tools.text import count

Blocks = Sequence[tuple[int, Sequence[bytes]]]
"""Offsets of data blocks and their internal keys; the last pair is the end of the data."""

FILTER_BASE_LG = 11
SIZE = 1 << FILTER_BASE_LG
BITS = 10
POLICY = lsmkv.BloomFilterPolicy(BITS)


def key_of(user_key: bytes, sequence: int = 1) -> bytes:
    """The internal key of a value."""
    return make_key(user_key, sequence, KIND_VALUE)


ANT, BEE, CAT, DOG = (key_of(key) for key in (b"ant", b"bee", b"cat", b"dog"))
SAMPLE: Blocks = ((0, (ANT, BEE)), (1500, (CAT,)), (5000, (DOG,)), (5600, ()))


class SpellingPolicy:
    """Filters that consist of their keys as text, so that a person can read the bytes."""

    name: str = "course.Spelling"

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        require(
            keys,
            "create_filter was called without keys. A range in which no block begins has a filter"
            " of no bytes at all: only its offset is noted.",
        )
        return b"".join(b"<" + key + b">" for key in keys)

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        return b"<" + key + b">" in filter_data


SPELLED = SpellingPolicy()


class RecordingPolicy:
    """Keeps the keys of each filter, whose bytes are their number."""

    name: str = "course.Recording"

    def __init__(self) -> None:
        self.recorded: list[list[bytes]] = []

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        self.recorded.append(list(keys))
        return (len(self.recorded) - 1).to_bytes(4, "little")

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        return True


def built(blocks: Blocks, policy: lsmkv.FilterPolicy) -> bytes:
    """The engine's filter block."""
    builder = FilterBlockBuilder(policy)
    for offset, keys in blocks:
        builder.start_block(offset)
        builder.add_keys([key[:-8] for key in keys])
    return builder.finish()


def grouped(blocks: Blocks) -> list[list[bytes]]:
    """The keys of each of the engine's filters."""
    policy = RecordingPolicy()
    numbers = filters_in(built(blocks, policy))
    return [policy.recorded[int.from_bytes(one, "little")] if one else [] for one in numbers]


def filters_in(data: bytes) -> list[bytes]:
    """The filters of a filter block, including those without bytes."""
    return [data[start:end] for start, end in parse_filter_block(data).bounds]


def some_blocks(seed: int) -> Blocks:
    """Data blocks of all sizes, with several versions of some keys."""
    dice = random.Random(seed)
    blocks: list[tuple[int, list[bytes]]] = []
    offset, number = 0, 0
    for _ in range(dice.randrange(1, 12)):
        keys: list[bytes] = []
        for _ in range(dice.randrange(1, 9)):
            number += dice.randrange(1, 9)
            for version in range(dice.choice((1, 1, 1, 3)), 0, -1):
                kind = dice.choice((KIND_VALUE, KIND_VALUE, KIND_DELETION))
                keys.append(make_key(b"key%04d" % number, version, kind))
        blocks.append((offset, keys))
        offset += dice.choice((dice.randrange(20, 900), 1024, 2048, 4100, 9000))
    return [*blocks, (offset, [])]


GROUPS: tuple[tuple[Blocks, list[list[bytes]], str], ...] = (
    ((), [], "Without blocks there are no filters."),
    (((0, (ANT,)), (100, ())), [[b"ant"]], "One block, one filter."),
    (
        ((0, (key_of(b"ant", 9), key_of(b"ant", 2))), (100, ())),
        [[b"ant", b"ant"]],
        "Two versions of a key count twice, as in LevelDB: no key is left out.",
    ),
    (
        ((0, (ANT,)), (2047, (BEE,)), (2047 + 90, ())),
        [[b"ant", b"bee"]],
        "A block belongs where it *begins*: 2047 is still in the range of filter 0.",
    ),
    (
        ((0, (ANT,)), (2048, (BEE,)), (2048 + 90, ())),
        [[b"ant"], [b"bee"]],
        "The offset 2048 is the first one of filter 1.",
    ),
    (
        ((0, (ANT,)), (5000, (BEE,)), (5100, ())),
        [[b"ant"], [], [b"bee"]],
        "No block begins between 2048 and 4095. Filter 1 has no keys, but it keeps its place.",
    ),
    (
        ((0, (ANT,)), (2100, (BEE,)), (4200, ())),
        [[b"ant"], [b"bee"]],
        "The end of the data has no keys: it makes no filter.",
    ),
    (
        ((0, (ANT,)), (7000, ())),
        [[b"ant"], [], []],
        "The data ends in the range of filter 3: all filters before it have a place, if empty.",
    ),
)
"""Blocks, the keys of each filter, and what the case tests."""

ARRAY_AT_11: Blocks = ((0, (key_of(b"armadillo"),)), (100, ()))
"""The only filter, as text, has 11 bytes, so the offset of the offset array equals the base lg.  A
reader that looks one place too far in the array takes it for a filter without bytes."""


def indexes(code: ModuleType) -> str:
    """Numbers of filters."""
    offsets = (0, 1, 2047, 2048, 2049, 4095, 4096, 20479, 20480, 10**6, 2**40)
    for offset in offsets:
        require_equal(
            code.filter_index(offset),
            offset >> FILTER_BASE_LG,
            f"filter_index({offset})",
            "Filter 0 is for the offsets 0 to 2047, filter 1 for 2048 to 4095, and so on.",
        )
    return f"{len(offsets)} offsets"


def groups(code: ModuleType) -> str:
    """The keys of each filter."""
    for blocks, expected, hint in GROUPS:
        require_groups(code, blocks, expected, described(blocks), hint)
    for seed in range(60):
        blocks = some_blocks(seed)
        what = f"{len(blocks) - 1} blocks and their end"
        require_groups(code, blocks, grouped(blocks), what, "See the cases before.")
    for first, second in ((4096, 100), (2048, 2047)):
        try:
            code.group_keys([(first, [ANT]), (second, [BEE]), (first + 100, [])])
        except ValueError:
            continue
        raise CheckFailure(
            f"group_keys takes a block at offset {second} after one at {first}, and must raise"
            " ValueError: the filter for its offset is finished, and the key would be missed."
        )
    return f"{len(GROUPS) + 62} tables"


def described(blocks: Blocks) -> str:
    """Describe a few blocks, with the sequence numbers of keys that have several versions."""
    words: list[str] = []
    user_keys = [key[:-8] for _, keys in blocks for key in keys]
    for offset, keys in blocks:
        names = " and ".join(
            f"{key.decode()} (sequence number {sequence})"
            if user_keys.count(key) > 1
            else key.decode()
            for key, sequence, _ in map(parse_key, keys)
        )
        words.append(f"a block at {offset} with {names}" if keys else f"the end at {offset}")
    return "; ".join(words) or "no blocks"


def require_groups(
    code: ModuleType, blocks: Blocks, expected: list[list[bytes]], what: str, hint: str
) -> None:
    """Fail unless the student's filters get these keys."""
    got = code.group_keys(copied(blocks))
    require(
        isinstance(got, list) and all(isinstance(group, list) for group in got),
        f"group_keys must return a list of lists, not {shown(got)}.",
    )
    internal_keys = {key for _, keys in blocks for key in keys}
    if any(isinstance(key, bytes) and key in internal_keys for group in got for key in group):
        hint = (
            "These are internal keys. A get knows the user key, but not which version it will"
            " find, so such a filter would say no. Cut off the tag, the last eight bytes."
        )
    elif got == [list(dict.fromkeys(group)) for group in expected]:
        hint = "Two versions of a key count twice, as in LevelDB: no key is left out."
    elif [group for group in got if group] == [group for group in expected if group]:
        places = f"{count(len(got), 'list')}, {len(expected)} expected"
        hint = f"The keys are right, but not the places of their lists ({places}).\n{hint}"
    require(
        got == expected,
        f"blocks = {what}\ngroup_keys(blocks) must be {shown(expected)}, but your code returned"
        f" {shown(got)}.\n{hint}",
    )


def copied(blocks: Blocks) -> list[tuple[int, list[bytes]]]:
    """Blocks as lists, which the student's code may change."""
    return [(offset, list(keys)) for offset, keys in blocks]


def cases() -> list[tuple[Blocks, lsmkv.FilterPolicy, str]]:
    """Blocks, the policy of their filters, and a description of both."""
    found: list[tuple[Blocks, lsmkv.FilterPolicy, str]] = [
        (blocks, SPELLED, described(blocks)) for blocks, _, _ in GROUPS
    ]
    found.append((SAMPLE, POLICY, described(SAMPLE)))
    found.append((ARRAY_AT_11, SPELLED, described(ARRAY_AT_11)))
    for seed in range(30):
        blocks = some_blocks(seed)
        found.append((blocks, SPELLED, f"{len(blocks) - 1} blocks"))
        found.append((blocks, POLICY, f"{len(blocks) - 1} blocks, with Bloom filters"))
    return found


def blocks_of_filters(code: ModuleType) -> str:
    """Filter blocks, byte for byte."""
    for blocks, policy, what in cases():
        expected = built(blocks, policy)
        require_bytes(
            code.build_filter_block(copied(blocks), policy.create_filter),
            expected,
            f"the filter block of {what}",
            functools.partial(meaning, expected),
            "The filters one after another; the offset array, where each of them begins; the offset"
            " of that array; the base lg. Offsets have 4 bytes, the lowest first.",
        )
    return f"{len(cases())} filter blocks"


def parts(data: bytes) -> list[tuple[int, int, str]]:
    """The parts of a filter block in order: offset, size (0 for an empty filter), and meaning."""
    array = int.from_bytes(data[-5:-1], "little")
    numbers = range((len(data) - 5 - array) // 4)
    starts = [int.from_bytes(data[array + 4 * n : array + 4 * n + 4], "little") for n in numbers]
    ends = [*starts, array][1:]
    found = [
        (start, end - start, f"filter {number}" if end > start else f"filter {number}, no bytes")
        for number, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]
    for number, start in enumerate(starts):
        found.append((array + 4 * number, 4, f"offset of filter {number}, {start}"))
    found.append((len(data) - 5, 4, f"offset of the offset array, {array}"))
    found.append((len(data) - 1, 1, f"base lg, {data[-1]}"))
    return found


def meaning(data: bytes, wanted: int) -> str:
    """The meaning of the byte at an offset of a filter block."""
    return next(
        f"{what}, byte {wanted - start}" if size > 1 else what
        for start, size, what in parts(data)
        if start <= wanted < start + size
    )


def with_base(data: bytes, base_lg: int) -> bytes:
    """The same filters, for ranges of another size."""
    return data[:-1] + bytes([base_lg])


def finding(code: ModuleType) -> str:
    """The filters for offsets, in the engine's filter blocks, also with other ranges."""
    asked = 0
    for blocks, policy, what in cases():
        made = built(blocks, policy)
        for base_lg in (FILTER_BASE_LG, 12, 4):
            data = with_base(made, base_lg)
            filters = filters_in(data)
            number = len(filters)
            edges = {n << base_lg for n in range(number + 2)}
            for offset in sorted(edges | {edge - 1 for edge in edges if edge} | {1 << 40}):
                asked += 1
                at = offset >> base_lg
                expected = filters[at] if at < number else None
                hint = (
                    "Filter i is for the offsets from i * 2^lg on, where lg is the last byte of"
                    " the filter block. It ends where the next one begins; the last one ends where"
                    " the offset array begins."
                )
                if expected is None:
                    hint = "There is no filter after the last one: return None, not b''."
                    if blocks is ARRAY_AT_11 and offset >> base_lg == number:
                        hint += (
                            "\nThere is only one filter here. Where the next offset"
                            " would be, there is the offset of the offset array."
                        )
                elif not expected:
                    hint = "A filter without bytes has no keys: return b'', not None."
                elif base_lg != FILTER_BASE_LG:
                    hint = (
                        f"The last byte of this filter block is {base_lg}, not 11: read it.\n{hint}"
                    )
                require_equal(
                    code.filter_for(data, offset),
                    expected,
                    f"data = the filter block of {what}\nfilter_for(data, {offset})",
                    hint,
                )
    return f"{asked:,} offsets"


def asking(code: ModuleType) -> str:
    """Check the answers for keys, and the filters that are asked."""
    data = built(SAMPLE, SPELLED)
    questions = (
        (0, b"ant", True, "Filter 0 holds ant, bee and cat."),
        (1500, b"cat", True, "The block at 1500 has its keys in filter 0."),
        (0, b"dog", False, "Filter 0 does not hold dog."),
        (5000, b"dog", True, "The block at 5000 has its keys in filter 2."),
        (5000, b"ant", False, "Filter 2 holds only dog."),
        (3000, b"ant", False, "Filter 1 has no bytes: no block begins there, so no key is there."),
        (6144, b"ant", True, "There is no filter 3, and without one a block may hold any key."),
        (1 << 40, b"ant", True, "There is no such filter: a block without one may hold any key."),
    )

    def spelled(key: bytes, filter_data: bytes) -> bool:
        require(
            filter_data,
            "may_match was called with a filter of no bytes. Such a filter has no keys: the answer"
            " is False, whatever the policy would say.",
        )
        return SPELLED.key_may_match(key, filter_data)

    for offset, key, expected, hint in questions:
        call = (
            f"data = the filter block of {described(SAMPLE)}\n"
            f"key_may_match(data, {offset}, {key!r}, may_match)"
        )
        require_equal(code.key_may_match(data, offset, key, spelled), expected, call, hint)
    nothing = built((), SPELLED)
    require_equal(
        code.key_may_match(nothing, 0, b"ant", spelled),
        True,
        "data = a filter block without filters\nkey_may_match(data, 0, b'ant', may_match)",
        "There is no filter 0, and without one a block may hold any key.",
    )
    return f"{len(questions) + 1} questions"


def no_false_negatives(code: ModuleType) -> str:
    """Check that every key that was added is found again."""
    for seed in range(60):
        blocks = some_blocks(seed)
        data = code.build_filter_block(copied(blocks), POLICY.create_filter)
        require(isinstance(data, bytes), f"build_filter_block returned {shown(data)}, not bytes.")
        for offset, keys in blocks:
            for key in keys:
                user_key = key[:-8]
                require(
                    code.key_may_match(data, offset, user_key, POLICY.key_may_match) is True,
                    f"A false negative: {user_key!r} is in the block at {offset}, and key_may_match"
                    " on your own filter block says it is not. A store would lose the key.",
                )
    return "60 tables"


def damaged(code: ModuleType) -> str:
    """Invalid filter blocks: a damaged one excludes no key."""
    good = built(SAMPLE, SPELLED)
    array = int.from_bytes(good[-5:-1], "little")
    words = [good[at : at + 4] for at in range(array, len(good) - 5, 4)]
    large = (len(good) + 9).to_bytes(4, "little")
    damages: list[tuple[bytes, int, str]] = [
        (b"", 0, "no bytes"),
        (good[:4], 0, "four bytes: too few for the offset of the offsets and the last byte"),
        (good[:-5] + large + good[-1:], 0, "offsets that begin after the end of the filter block"),
        (
            good[:-5] + (len(good) - 4).to_bytes(4, "little") + good[-1:],
            0,
            "offsets that begin after the place where they end",
        ),
        (
            good[:array] + words[0] + large + words[2] + good[-5:],
            0,
            "a filter that ends after the offsets",
        ),
        (
            good[:array] + words[2] + words[0] + words[2] + good[-5:],
            0,
            "a filter that ends before it begins",
        ),
    ]
    for data, offset, what in damages:
        for function, expected in (("filter_for", None), ("key_may_match", True)):
            arguments = (b"zebra", SPELLED.key_may_match) if expected else ()
            try:
                got = getattr(code, function)(data, offset, *arguments)
            except NotImplementedError:
                raise
            except Exception as error:
                raise CheckFailure(
                    f"{function} raises {type(error).__name__} for a damaged filter block ({what})."
                    f" It must return {expected}: a filter only saves reads, and without it the"
                    " store continues."
                ) from None
            require_equal(
                got,
                expected,
                f"{function} on a damaged filter block ({what})",
                "A filter that cannot be trusted rules nothing out.",
            )
    return f"{len(damages)} damaged filter blocks"


NUMBER = 2000


def some_keys(seed: int) -> list[bytes]:
    """Keys in order that look random, since LevelDB's hash errs more often on sequential ones; all
    between ``0`` and ``g``."""
    dice = random.Random(seed)
    return sorted({dice.randbytes(6).hex().encode() for _ in range(NUMBER)})


PRESENT = [b"0", *some_keys(1), b"g"]
ABSENT = some_keys(2)
"""Keys that the store does not hold, between those that it holds, so that a table is searched for
them."""
CONTENT: dict[bytes, bytes | None] = {
    key: None if n % 10 == 3 else b"value %d " % n * (1 + n % 4) for n, key in enumerate(PRESENT)
}
"""The content of the last check's store; None is a deleted key."""


class Parts:
    """The parts of one of the engine's tables, with one filter block and no compression."""

    def __init__(self, data: bytes) -> None:
        table = Table(data)
        self.data = data
        self.footer = table.footer
        self.index_keys = [entry.internal_key.user_key for entry in table.index.entries()]
        """The user keys of the index."""
        self.blocks: list[tuple[int, list[bytes]]] = []
        end = 0
        for block in table.data_blocks():
            keys = [entry.key for entry in entries_in(block.plain)]
            self.blocks.append((block.place.offset, keys))
            end = block.place.end
        self.blocks.append((end, []))
        (place,) = table.meta_blocks()
        self.filter_key, self.filter_handle = place.name, place.handle
        require(place.kind == "filter" and place.policy == POLICY.name.encode(), "another filter")

    def contents(self, handle: BlockHandle) -> bytes:
        """A block."""
        return self.data[handle.offset : handle.offset + handle.size]

    def with_filter_block(self, filter_block: bytes) -> bytes:
        """The table with another filter block; everything after it is written again."""
        made = bytearray(self.data[: self.filter_handle.offset])

        def append(contents: bytes) -> BlockHandle:
            handle = BlockHandle(len(made), len(contents))
            made.extend(sealed(contents))
            return handle

        metaindex = BlockBuilder(lsmkv.Options().block_restart_interval)
        metaindex.add(self.filter_key, append(filter_block).encode())
        where = append(metaindex.finish())
        index = append(self.contents(self.footer.index))
        return bytes(made) + footer_of(where, index)


def in_the_engine(code: ModuleType) -> str:
    """Check the student's filter block in a table, and the student's code on the engine's."""
    with scratch() as directory:
        theirs, ours = os.path.join(directory, "leveldb"), os.path.join(directory, "student")
        with lsmkv.DB(theirs, create_if_missing=True, filter_policy=POLICY, compression=None) as db:
            for key, value in CONTENT.items():
                db.put(key, b"an older version" if value is None else value)
            with db.snapshot():  # so that the flush keeps what is deleted
                for key, value in CONTENT.items():
                    if value is None:
                        db.delete(key)
                db.flush()
        (path,) = files_of(theirs, "table")
        with open(path, "rb") as file:
            table = Parts(file.read())
        made = code.build_filter_block(copied(table.blocks), POLICY.create_filter)
        require(isinstance(made, bytes), f"build_filter_block returned {shown(made)}, not bytes.")
        smallest, largest = table.blocks[0][1][0], table.blocks[-2][1][-1]
        store_with_table(ours, table.with_filter_block(made), smallest, largest, 2 * len(CONTENT))
        what = "A store whose table has your filter block"
        try:
            saved, read = read_back(ours, what)
        except lsmkv.CorruptionError as error:
            raise CheckFailure(
                f"lsmkv cannot read a table with your filter block: {error.reason}."
            ) from None
        reference, _ = read_back(theirs, "A store of the engine")
        require(
            saved == reference,
            f"Of {len(ABSENT):,} Gets of absent keys, your filter block answered {saved:,} with no"
            f" before a block was read, and LevelDB's {reference:,}.",
        )
        without = blocks_without_filters(ours, ABSENT)
        expected = table.contents(table.filter_handle)
        require_bytes(made, expected, "your filter block", functools.partial(meaning, expected))
        content = {**CONTENT, **dict.fromkeys(ABSENT)}
        by_leveldb = require_content_by_leveldb(ours, content, what, bloom_filter_bits=BITS)
    ruled_out = ask_the_engines(code, table)
    require(
        ruled_out == reference,
        f"Of {len(ABSENT):,} absent keys, your key_may_match on the engine's own filter block"
        f" says no for {ruled_out:,}, and the engine for {reference:,}.",
    )
    return (
        f"of {len(ABSENT):,} Gets of absent keys your filter block answered {saved:,} with no, and"
        f" {read:,} had to read a block; without filters: {without:,} blocks{by_leveldb};"
        f" your reader says no as often as the engine's"
    )


def read_back(directory: str, what: str) -> tuple[int, int]:
    """Read all keys, and absent ones; return how many of the absent ones a filter ruled out, and
    how many not."""
    with lsmkv.DB(directory, filter_policy=POLICY, read_only=True) as db:
        found = {key: db.get(key) for key in CONTENT}
        require_same(found, CONTENT, f"{what}: lsmkv reads")
        before = db.stats()
        for key in ABSENT:
            require(db.get(key) is None, f"{what}: lsmkv finds {key!r}, which is absent.")
        spent = db.stats() - before
    return spent.filter_negatives, spent.filter_false_positives


def ask_the_engines(code: ModuleType, table: Parts) -> int:
    """Ask a table's filter block for all keys; returns how many absent ones it rules out."""
    data = table.contents(table.filter_handle)

    def may_match(key: bytes) -> bool:
        number = bisect_left(table.index_keys, key)
        if number == len(table.index_keys):
            return True  # the index alone rules it out
        offset = table.blocks[number][0]
        return bool(code.key_may_match(data, offset, key, POLICY.key_may_match))

    for key in CONTENT:
        require(
            may_match(key),
            f"key_may_match on the engine's own filter block says no to {key!r}, which is present.",
        )
    return sum(not may_match(key) for key in ABSENT)


def drawing() -> str:
    """The filter block of four keys in three blocks, part by part."""
    data = built(SAMPLE, POLICY)
    lines = [
        "data blocks at 0 (ant, bee), 1500 (cat) and 5000 (dog); they end at 5600",
        "",
        f"{'offset':>6}  {'bytes':<26}  what",
    ]
    keys = grouped(SAMPLE)
    for start, size, what in parts(data):
        if what.startswith("filter "):
            names = " ".join(key.decode() for key in keys[int(what.split()[1].rstrip(","))])
            what = f"{what}, {names}" if names else what
        lines.append(f"{start:6}  {data[start : start + size].hex(' '):<26}  {what}")
    return "\n".join(lines) + "\n"


LAB = Lab(
    number=5,
    slug="filter_block",
    title="The filter block",
    functions=("filter_index", "group_keys", "build_filter_block", "filter_for", "key_may_match"),
    checks=(
        Check("the number of a filter", indexes),
        Check("the keys of each filter", groups),
        Check("the bytes of a filter block", blocks_of_filters),
        Check("finding a filter", finding),
        Check("asking for a key", asking),
        Check("no false negatives", no_false_negatives),
        Check("damaged filter blocks", damaged),
        Check("in the real engine", in_the_engine),
    ),
    drawing=drawing,
)
