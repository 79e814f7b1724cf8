"""Lab 5: planted mistakes are named."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from labs import Mistake, Planted, assert_caught, load, mistakes, reference

from lsmkv.course.labs.filter_block import (
    LAB,
    SAMPLE,
    Blocks,
    grouped,
    in_the_engine,
    parts,
)

RIGHT = load(reference(LAB))
Create = Callable[[list[bytes]], bytes]
Ask = Callable[[bytes, bytes], bool]


def made(blocks: Blocks, create_filter: Create) -> bytes:
    data: bytes = RIGHT.build_filter_block(blocks, create_filter)
    return data


def found(data: bytes, offset: int) -> bytes | None:
    filter_data: bytes | None = RIGHT.filter_for(data, offset)
    return filter_data


def tagged(blocks: Blocks) -> list[tuple[int, list[bytes]]]:
    """The same, with internal keys where user keys would be taken."""
    return [(offset, [key + bytes(8) for key in keys]) for offset, keys in blocks]


def in_order(blocks: Blocks) -> Blocks:
    """The same, with each offset raised to the one before it."""
    highest = 0
    raised: list[tuple[int, Sequence[bytes]]] = []
    for offset, keys in blocks:
        highest = max(highest, offset)
        raised.append((highest, keys))
    return raised


def where_they_end(blocks: Blocks) -> list[list[bytes]]:
    ends = [offset for offset, _ in blocks[1:]]
    return grouped([*((end, keys) for end, (_, keys) in zip(ends, blocks, strict=False))])


def up_to_the_last_block(blocks: Blocks) -> list[list[bytes]]:
    RIGHT.group_keys(blocks)
    return grouped(blocks[:-1])


def one_more_at_the_end(blocks: Blocks) -> list[list[bytes]]:
    groups = RIGHT.group_keys(blocks)
    return [*groups, []] if groups else []


def with_base_bytes(blocks: Blocks, create_filter: Create) -> bytes:
    return made(blocks, create_filter)[:-1] + (2048).to_bytes(4, "little")


def big_endian(blocks: Blocks, create_filter: Create) -> bytes:
    data = made(blocks, create_filter)
    array = int.from_bytes(data[-5:-1], "little")
    words = [data[at : at + 4][::-1] for at in range(array, len(data) - 1, 4)]
    return data[:array] + b"".join(words) + data[-1:]


def sizes_not_offsets(blocks: Blocks, create_filter: Create) -> bytes:
    data = made(blocks, create_filter)
    array = int.from_bytes(data[-5:-1], "little")
    sizes = [size for _, size, what in parts(data) if what.startswith("filter ")]
    return data[:array] + b"".join(size.to_bytes(4, "little") for size in sizes) + data[-5:]


def without_the_arrays_offset(blocks: Blocks, create_filter: Create) -> bytes:
    data = made(blocks, create_filter)
    return data[:-5] + data[-1:]


def array_counted(blocks: Blocks, create_filter: Create) -> bytes:
    """The number of filters where the array's offset belongs."""
    data = made(blocks, create_filter)
    array = int.from_bytes(data[-5:-1], "little")
    return data[:-5] + ((len(data) - 5 - array) // 4).to_bytes(4, "little") + data[-1:]


def array_beyond_the_end(blocks: Blocks, create_filter: Create) -> bytes:
    data = made(blocks, create_filter)
    return data[:-5] + len(data).to_bytes(4, "little") + data[-1:]


def filters_of_nothing(blocks: Blocks, create_filter: Create) -> bytes:
    for keys in grouped(blocks):
        create_filter(keys)
    return made(blocks, create_filter)


def none_for_an_empty_one(data: bytes, offset: int) -> bytes | None:
    return found(data, offset) or None


def empty_behind_the_last(data: bytes, offset: int) -> bytes:
    return found(data, offset) or b""


def always_2_kib(data: bytes, offset: int) -> bytes | None:
    return found(data[:-1] + b"\x0b", offset)


def one_place_too_far(data: bytes, offset: int) -> bytes | None:
    """Right, but for the filter after the last one, and where its bytes make no sense."""
    array = int.from_bytes(data[-5:-1], "little")
    number = offset >> data[-1] if data else 0
    if len(data) < 5 or number != (len(data) - 5 - array) // 4:
        return found(data, offset)
    start, end = (
        int.from_bytes(data[at : at + 4], "little") for at in (len(data) - 5, len(data) - 1)
    )
    return data[start:end] if start <= end <= array else None


def into_the_array(data: bytes, offset: int) -> bytes | None:
    filter_data = found(data, offset)
    last = filter_data and found(data, offset + (1 << data[-1])) is None
    return filter_data + data[-5:-1] if filter_data and last else filter_data


def without_a_look(data: bytes, offset: int) -> bytes | None:
    array = int.from_bytes(data[-5:-1], "little")
    number = offset >> data[-1]
    if number >= (len(data) - 5 - array) // 4:
        return None
    at = array + 4 * number
    start, end = (int.from_bytes(data[at + n : at + n + 4], "little") for n in (0, 4))
    return data[start:end]


def no_where_there_is_none(data: bytes, offset: int, key: bytes, ask: Ask) -> bool:
    filter_data = found(data, offset)
    return bool(filter_data) and ask(key, filter_data or b"")


def yes_for_an_empty_one(data: bytes, offset: int, key: bytes, ask: Ask) -> bool:
    filter_data = found(data, offset)
    return not filter_data or ask(key, filter_data)


def asks_an_empty_one(data: bytes, offset: int, key: bytes, ask: Ask) -> bool:
    filter_data = found(data, offset)
    return filter_data is None or ask(key, filter_data)


def asks_the_next_one(data: bytes, offset: int, key: bytes, ask: Ask) -> bool:
    # Right on the questions of "asking for a key", whose filters 1 and 3 have no keys.
    spelled = data.startswith(b"<")
    right: bool = RIGHT.key_may_match(data, offset if spelled else offset + 2048, key, ask)
    return right


def key_lost_when_deleted(blocks: Blocks, create_filter: Create) -> bytes:
    """Without deletions, where a block is large: the small tables have none."""
    large = len(blocks) > 13
    return made(
        [(at, [key for key in keys if not large or key[-8] == 1]) for at, keys in blocks],
        create_filter,
    )


def right_where_it_is_easy(data: bytes, offset: int, key: bytes, ask: Ask) -> bool:
    if len(data) > 2000 and key.startswith(b"a"):
        return True
    right: bool = RIGHT.key_may_match(data, offset, key, ask)
    return right


MISTAKES: Planted = {
    ("filter_index", "the number of a filter"): [
        ("4 KiB", lambda offset: offset >> 12, "Filter 0 is for the offsets 0 to 2047"),
        ("decimal", lambda offset: offset // 2000, "filter_index(2047) must be 0"),
        ("one late", lambda offset: (offset - 1) >> 11, "filter_index(0) must be 0"),
    ],
    ("group_keys", "the keys of each filter"): [
        (
            "internal keys",
            lambda blocks: RIGHT.group_keys(tagged(blocks)),
            "These are internal keys",
        ),
        (
            "versions left out",
            lambda blocks: [list(dict.fromkeys(keys)) for keys in RIGHT.group_keys(blocks)],
            (
                "blocks = a block at 0 with ant (sequence number 9) and ant (sequence number 2);"
                " the end at 100 group_keys(blocks) must be [[b'ant', b'ant']], but your code"
                " returned [[b'ant']]. Two versions of a key count twice"
            ),
        ),
        (
            "no place for an empty one",
            lambda blocks: [keys for keys in RIGHT.group_keys(blocks) if keys],
            "Filter 1 has no keys, but it keeps its place",
        ),
        ("the end left out", up_to_the_last_block, "The data ends in the range of filter 3"),
        (
            "one more at the end",
            one_more_at_the_end,
            "the places of their lists (2 lists, 1 expected)",
        ),
        ("where blocks end", where_they_end, "A block belongs where it *begins*"),
        (
            "too late",
            lambda blocks: grouped(in_order(blocks)),
            "and must raise ValueError: the filter for its offset is finished",
        ),
    ],
    ("build_filter_block", "the bytes of a filter block"): [
        ("big-endian", big_endian, "offset of the offset array, 5, byte 0"),
        (
            "no offset of the array",
            without_the_arrays_offset,
            "offset of the offset array, 0, byte 0",
        ),
        ("a number for the array's offset", array_counted, "offset of the offset array, 5, byte 0"),
        ("sizes", sizes_not_offsets, "offset of filter 0, 0, byte 0"),
        ("the size of a range", with_base_bytes, "Byte 4 is base lg, 11"),
        ("a filter of no keys", filters_of_nothing, "create_filter was called without keys"),
    ],
    ("filter_for", "finding a filter"): [
        ("None for an empty one", none_for_an_empty_one, "b'', not None"),
        ("empty for none", empty_behind_the_last, "None, not b''"),
        (
            "a different base",
            always_2_kib,
            "The last byte of this filter block is 12, not 11: read it",
        ),
        (
            "one place too far",
            one_place_too_far,
            (
                "with armadillo; the end at 100 filter_for(data, 2048) must be None, but your"
                " code returned no bytes. There is no filter after the last one: return None, not"
                " b''. There is only one filter here. Where the next offset"
            ),
        ),
        ("into the array", into_the_array, "the last one ends where the offset array begins"),
    ],
    ("key_may_match", "asking for a key"): [
        (
            "no where there is none",
            no_where_there_is_none,
            (
                "data = the filter block of a block at 0 with ant and bee; a block at 1500 with"
                " cat; a block at 5000 with dog; the end at 5600 key_may_match(data, 6144,"
                " b'ant', may_match) must be True, but your code returned False. There is no"
                " filter 3"
            ),
        ),
        ("yes for an empty one", yes_for_an_empty_one, "Filter 1 has no bytes"),
        ("an empty one is asked", asks_an_empty_one, "was called with a filter of no bytes"),
    ],
    ("key_may_match", "no false negatives"): [
        ("the next filter", asks_the_next_one, "A false negative: b'key"),
    ],
    ("filter_for", "damaged filter blocks"): [
        ("damage raises", without_a_look, "filter_for"),
    ],
    ("key_may_match", "damaged filter blocks"): [
        (
            "no when damaged",
            no_where_there_is_none,
            "A filter that cannot be trusted rules nothing out",
        ),
    ],
    ("build_filter_block", "in the real engine"): [
        (
            "internal keys in the store",
            lambda blocks, create: made(tagged(blocks), create),
            "lsmkv reads None for the key b'",
        ),
        (
            "offsets that lsmkv cannot read",
            array_beyond_the_end,
            (
                "lsmkv cannot read a table with your filter block: filter offsets beyond the"
                " filter block."
            ),
        ),
        (
            "no filters",
            lambda blocks, create: made(((0, ()),), create),
            "your filter block answered 0 with no",
        ),
        ("deletions left out", key_lost_when_deleted, "LevelDB's 1,9"),
    ],
    ("key_may_match", "in the real engine"): [
        ("a reader that says yes", right_where_it_is_easy, "and the engine for"),
    ],
}


@pytest.mark.parametrize("mistake", mistakes(MISTAKES), ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake) -> None:
    assert_caught(LAB, mistake)


def test_some_keys_of_the_store_have_two_versions() -> None:
    code = load(reference(LAB))
    given: list[Blocks] = []

    def build(blocks: Blocks, create_filter: Create) -> bytes:
        given.append(blocks)
        return made(blocks, create_filter)

    code.__dict__["build_filter_block"] = build
    assert "answered" in in_the_engine(code)
    keys = [key[:-8] for _, keys in given[0] for key in keys]
    assert len(keys) - len(set(keys)) > 100


def test_each_check_catches_a_mistake() -> None:
    assert {check for _, check in MISTAKES} == {check.name for check in LAB.checks}


def test_the_empty_filter_block_is_that_of_leveldb() -> None:
    assert RIGHT.build_filter_block([], RIGHT.Policy).hex(" ") == "00 00 00 00 0b"
    assert len(parts(made(SAMPLE, lambda keys: b"x"))) == 8
