"""Lab 3: planted mistakes are named."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from labs import Mistake, assert_caught

from lsmkv.course.labs.block import LAB, built
from lsmkv.table.block import Block
from lsmkv.table.block_builder import BlockBuilder
from lsmkv.util import search

Entries = Sequence[tuple[bytes, bytes]]


def read(data: bytes) -> list[tuple[bytes, bytes]]:
    return list(zip(*Block(data).entries(), strict=True))


def common(a: bytes, b: bytes) -> int:
    return search.common(a, 0, b, 0, min(len(a), len(b)))


def common_anywhere(a: bytes, b: bytes) -> int:
    return sum(x == y for x, y in zip(a, b, strict=False))


def without_sharing(entries: Entries, interval: int) -> bytes:
    made = built(list(entries), 1)
    block = Block(made)
    points = block.restart_points()[::interval]
    words = b"".join(point.to_bytes(4, "little") for point in [*points, len(points)])
    return made[: block.end] + words


def one_interval_late(entries: Entries, interval: int) -> bytes:
    return built(list(entries), interval + 1)


def big_endian_ends(entries: Entries, interval: int) -> bytes:
    made = built(list(entries), interval)
    end = Block(made).end
    words = [made[at : at + 4][::-1] for at in range(end, len(made), 4)]
    return made[:end] + b"".join(words)


def without_a_number(entries: Entries, interval: int) -> bytes:
    return built(list(entries), interval)[:-4]


def no_restart_point_when_empty(entries: Entries, interval: int) -> bytes:
    return built(list(entries), interval) if entries else bytes(4)


def values_before_keys(entries: Entries, interval: int) -> bytes:
    made = bytearray(built(list(entries), interval))
    block = Block(bytes(made))
    at = 0
    while at < block.end:
        _, unshared, size, key_at = block.header(at)
        at = key_at + unshared + size
        made[key_at:at] = made[key_at + unshared : at] + made[key_at : key_at + unshared]
    return bytes(made)


def rest_alone(data: bytes) -> list[tuple[bytes, bytes]]:
    block = Block(data)
    found: list[tuple[bytes, bytes]] = []
    at = 0
    while at < block.end:
        _, unshared, size, key_at = block.header(at)
        at = key_at + unshared + size
        found.append((data[key_at : key_at + unshared], data[key_at + unshared : at]))
    return found


def into_the_restart_points(data: bytes) -> list[tuple[bytes, bytes]]:
    return [*read(data), (b"", b"")]


def only_equal(data: bytes, target: bytes) -> tuple[bytes, bytes] | None:
    return next((entry for entry in read(data) if entry[0] == target), None)


def behind(data: bytes, target: bytes) -> tuple[bytes, bytes] | None:
    return next((entry for entry in read(data) if entry[0] > target), None)


def within_one_interval(data: bytes, target: bytes) -> tuple[bytes, bytes] | None:
    entries = read(data)
    keys = [key for key, _ in entries]
    whole = {keys[0]} if keys else set()
    at = next((n for n, key in enumerate(keys) if key >= target), None)
    return None if at is None or (at and keys[at - 1] not in whole) else entries[at]


def from_the_start(data: bytes, target: bytes) -> tuple[bytes, bytes] | None:
    return next((entry for entry in read(data) if entry[0] >= target), None)


def cut_values(data: bytes) -> list[tuple[bytes, bytes]]:
    return [(key, value[:20]) for key, value in read(data)]


def whole_at_100(entries: Entries, interval: int) -> bytes:
    builder = BlockBuilder(interval, 400)
    for key, value in entries:
        builder.add(key, value)
    return builder.finish()


MISTAKES = (
    Mistake(
        "equal bytes anywhere",
        "shared_prefix",
        common_anywhere,
        "common prefixes",
        "ends with the first byte that differs",
    ),
    Mistake(
        "one less for equal keys",
        "shared_prefix",
        lambda a, b: common(a, b) - (a == b),
        "common prefixes",
        "shared_prefix(b'ant', b'ant')",
    ),
    Mistake(
        "nothing shared",
        "build_block",
        without_sharing,
        "the bytes of a block",
        "entry 1: shared length, 3",
    ),
    Mistake(
        "restart one late",
        "build_block",
        one_interval_late,
        "the bytes of a block",
        "entry 1: shared length, 0",
    ),
    Mistake(
        "big-endian",
        "build_block",
        big_endian_ends,
        "the bytes of a block",
        "number of restart points, 1, byte 0",
    ),
    Mistake(
        "no number",
        "build_block",
        without_a_number,
        "the bytes of a block",
        "number of restart points, 1",
    ),
    Mistake(
        "an empty block",
        "build_block",
        no_restart_point_when_empty,
        "the bytes of a block",
        "the block of the entries []",
    ),
    Mistake(
        "the value first",
        "build_block",
        values_before_keys,
        "the bytes of a block",
        "entry 0: rest of the key, 'ant'",
    ),
    Mistake(
        "without the shared part",
        "read_block",
        rest_alone,
        "reading a block",
        "The key is the first `shared` bytes",
    ),
    Mistake(
        "past the entries",
        "read_block",
        into_the_restart_points,
        "reading a block",
        "The entries end where",
    ),
    Mistake("equal alone", "seek", only_equal, "seeking in a block", "not below it"),
    Mistake("above alone", "seek", behind, "seeking in a block", "not below it"),
    Mistake("one entry alone", "seek", within_one_interval, "seeking in a block", "read until"),
    Mistake(
        "from the start",
        "seek",
        from_the_start,
        "seeking by restart points",
        "Does it read the block from its start?",
    ),
    Mistake(
        "values cut", "read_block", cut_values, "in the real engine", "block 0 of a table of the"
    ),
    Mistake(
        "whole keys in large blocks",
        "build_block",
        whole_at_100,
        "in the real engine",
        "shared length",
    ),
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake) -> None:
    assert_caught(LAB, mistake)


def test_each_check_catches_a_mistake() -> None:
    assert {mistake.check for mistake in MISTAKES} == {check.name for check in LAB.checks}
