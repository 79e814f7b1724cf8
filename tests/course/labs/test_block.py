"""Lab 3: planted mistakes are named."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from labs import Mistake, Planted, assert_caught, mistakes

from lsmkv.course.labs.block import LAB, built
from lsmkv.engine.table.block import Block
from lsmkv.engine.table.block_builder import BlockBuilder
from lsmkv.engine.util import search

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


MISTAKES: Planted = {
    ("shared_prefix", "common prefixes"): [
        ("equal bytes anywhere", common_anywhere, "ends with the first byte that differs"),
        (
            "one less for equal keys",
            lambda a, b: common(a, b) - (a == b),
            "shared_prefix(b'ant', b'ant')",
        ),
    ],
    ("build_block", "the bytes of a block"): [
        ("nothing shared", without_sharing, "entry 1: shared length, 3"),
        ("restart one late", one_interval_late, "entry 1: shared length, 0"),
        ("big-endian", big_endian_ends, "number of restart points, 1, byte 0"),
        ("no number", without_a_number, "number of restart points, 1"),
        ("an empty block", no_restart_point_when_empty, "the block of the entries []"),
        ("the value first", values_before_keys, "entry 0: rest of the key, 'ant'"),
    ],
    ("read_block", "reading a block"): [
        ("without the shared part", rest_alone, "The key is the first `shared` bytes"),
        ("past the entries", into_the_restart_points, "The entries end where"),
    ],
    ("seek", "seeking in a block"): [
        ("equal alone", only_equal, "not below it"),
        ("above alone", behind, "not below it"),
        ("one entry alone", within_one_interval, "read until"),
    ],
    ("seek", "seeking by restart points"): [
        ("from the start", from_the_start, "Does it read the block from its start?"),
    ],
    ("read_block", "in the real engine"): [
        ("values cut", cut_values, "block 0 of a table of the"),
    ],
    ("build_block", "in the real engine"): [
        ("whole keys in large blocks", whole_at_100, "shared length"),
    ],
}


@pytest.mark.parametrize("mistake", mistakes(MISTAKES), ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake) -> None:
    assert_caught(LAB, mistake)


def test_each_check_catches_a_mistake() -> None:
    assert {check for _, check in MISTAKES} == {check.name for check in LAB.checks}
