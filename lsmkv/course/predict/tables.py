"""Predictions of labs 4 to 6: filters, filter blocks, tables."""

from __future__ import annotations

import random
from bisect import bisect_left
from typing import Any

import lsmkv
from lsmkv.course.given import encode_varint
from lsmkv.course.labs.bloom import leveldb_hash
from lsmkv.course.labs.filter_block import FILTER_BASE_LG, filters_in
from lsmkv.course.labs.filter_block import built as built_filters
from lsmkv.course.labs.formats import FOOTER_SIZE, TRAILER_SIZE
from lsmkv.course.labs.table import blocks_in, key_of
from lsmkv.course.labs.table import built as built_table
from lsmkv.course.predict.task import Question, Task, answer_of
from lsmkv.files import Table

_MASK = 0xFFFFFFFF


def bloom(dice: random.Random, mark: str) -> Task:
    """Lab 4."""
    key = f"{mark}:{dice.randrange(1000)}".encode()
    h = leveldb_hash(key)
    bits_per_key = dice.randrange(6, 12)
    number = dice.randrange(10_000, 100_000)
    bits = (number * bits_per_key + 7) // 8 * 8
    k = lsmkv.BloomFilterPolicy(bits_per_key).probes
    positions = _positions(h, k, bits)
    many, budget = dice.randrange(10**9, 10**10), dice.randrange(5, 20)
    size = (many * budget + 7) // 8 + 1

    return Task(
        {
            "key": key.decode(),
            "hash": h,
            "keys_of_the_filter": number,
            "bits_per_key": bits_per_key,
            "keys_of_a_large_filter": many,
            "bits_per_key_of_it": budget,
        },
        (
            Question(
                "The key has this hash. Which bits does it set in the filter, from the lowest to"
                " the highest?",
                answer_of(sorted(positions)),
                lambda code: _set_by(code, key, bits_per_key, bits),
                f"k is {k}, the filter has {bits:,} bits, and d is the hash rotated by 17:"
                f" {_rotated(h):#x}. Each sum is kept to 32 bits before its remainder is taken.",
                {
                    answer_of(sorted(_uncut(h, k, bits))): "Your sums have more than 32 bits.",
                    answer_of(sorted(_positions(h, k, number * bits_per_key))): (
                        "The number of bits is rounded up to whole bytes first."
                    ),
                    answer_of(positions): "You left them in the order of the probes.",
                },
            ),
            Question(
                "How many bytes has the large filter?",
                str(size),
                lambda code: str(_size(code, many, budget)),
                "Its bits are rounded up to whole bytes, and one byte holds k.",
                {str(size - 1): "You left out the byte that holds k."},
            ),
        ),
    )


def _rotated(h: int) -> int:
    return (h >> 17 | h << 15) & _MASK


def _positions(h: int, k: int, bits: int) -> list[int]:
    return [(h + n * _rotated(h) & _MASK) % bits for n in range(k)]


def _uncut(h: int, k: int, bits: int) -> list[int]:
    return [(h + n * _rotated(h)) % bits for n in range(k)]


def _set_by(code: Any, key: bytes, bits_per_key: int, bits: int) -> str:
    """The bits that a student's code sets: those without which it says no."""
    h, k = code.bloom_hash(key), code.probes(bits_per_key)
    positions = sorted(_positions(h, k, bits))
    array = bytearray(bits // 8)
    for position in positions:
        array[position // 8] |= 1 << position % 8
    says_maybe = code.key_may_match(key, bytes(array) + bytes([k]))
    return answer_of(positions) if says_maybe else "other bits"


def _size(code: Any, many: int, budget: int) -> int:
    """The size of a filter, from that of one with a thousandth of a millionth of the keys."""
    few = many % 800 + 800
    more = (many - few) * budget
    return len(code.create_filter([b"%d" % n for n in range(few)], budget)) + (
        (many * budget + 7) // 8 - (few * budget + 7) // 8 if more else 0
    )


def filter_block(dice: random.Random, mark: str) -> Task:
    """Lab 5."""
    far = dice.randrange(10**13, 10**14)
    sizes = [dice.randrange(300, 3500) for _ in range(7)]
    blocks: list[tuple[int, list[bytes]]] = []
    offset = 0
    for number, size in enumerate(sizes):
        count = dice.randrange(8, 200)
        keys = [key_of(f"{mark}{number}{at:03d}".encode()) for at in range(count)]
        blocks.append((offset, keys))
        offset += size
    blocks.append((offset, []))
    bits_per_key = dice.randrange(7, 20)
    policy = lsmkv.BloomFilterPolicy(bits_per_key)
    data = built_filters(blocks, policy)
    offsets = _offsets(data)
    ends = [b - 1 for b, _ in blocks[1:-1]]

    return Task(
        {
            "offset_of_a_block": far,
            "blocks": [(start, len(keys)) for start, keys in blocks],
            "bits_per_key": bits_per_key,
        },
        (
            Question(
                "A data block of a very large table begins at this offset. What is the number of"
                " its filter?",
                str(far >> FILTER_BASE_LG),
                lambda code: str(code.filter_index(far)),
                "There is one filter for each 2,048 bytes of file in which a block may begin.",
                {
                    str(far // 2000): "A range has 2,048 bytes, not 2,000.",
                    str(far >> 12): "A range has 2,048 bytes, not 4,096.",
                },
            ),
            Question(
                "Each pair is the offset of a data block and its number of keys; the last pair is"
                " the end. At which offset does each Bloom filter begin in the filter block, also"
                " those without bytes, and where does the array of offsets begin?",
                answer_of(offsets),
                lambda code: answer_of(
                    _offsets(code.build_filter_block(blocks, policy.create_filter))
                ),
                "All keys of the blocks that begin in one range are in one filter; a range in which"
                " none begins has a filter of no bytes. A filter has 64 bits or more, in whole"
                " bytes, and one more byte.",
                {
                    answer_of(offsets[:-1]): "The array's own offset is missing.",
                    answer_of(_offsets(_as_if(blocks, ends, policy))): (
                        "A block belongs where it begins, not where it ends."
                    ),
                },
            ),
        ),
    )


def _offsets(data: bytes) -> list[int]:
    """Return the offset of each filter, and of the array of offsets."""
    found = [0]
    for one in filters_in(data):
        found.append(found[-1] + len(one))
    return found


def _as_if(
    blocks: list[tuple[int, list[bytes]]], ends: list[int], policy: lsmkv.FilterPolicy
) -> bytes:
    """The filter block if the ends of blocks are taken for their beginnings."""
    moved = [(end, keys) for end, (_, keys) in zip(ends, blocks[:-2], strict=True)]
    last = blocks[-1][0]
    return built_filters([*moved, (last - 1, blocks[-2][1]), (last, [])], policy)


def table(dice: random.Random, mark: str) -> Task:
    """Lab 6: a table of about forty blocks."""
    block_size = dice.randrange(900, 1600)
    numbers = sorted(dice.sample(range(10**6, 10**7), 330))
    entries = [
        (key_of(f"{mark}{number}".encode()), bytes(dice.randrange(20, 190))) for number in numbers
    ]
    data = built_table(entries, block_size)
    places = dict(blocks_in(data))
    index = places["index"]
    blocks = [handle for name, handle in places.items() if name.startswith("data")]
    wanted = dice.randrange(60, 270)
    asked = f"{mark}{numbers[wanted]}"
    reads = [len(data) - FOOTER_SIZE, index.offset]
    log = _Reads(data)
    firsts = _first_keys(data)
    at = bisect_left(firsts, key_of(asked.encode())[:-8] + b"\0") - 1
    offset, size = dice.randrange(1 << 34, 1 << 41), dice.randrange(1 << 10, 1 << 20)
    handle = encode_varint(offset) + encode_varint(size)

    return Task(
        {
            "handle": handle.hex(" "),
            "size_of_the_table": len(data),
            "size_of_the_index": index.size,
            "data_blocks": [(handle.offset, firsts[n].decode()) for n, handle in enumerate(blocks)],
            "end_of_the_data_blocks": blocks[-1].offset + blocks[-1].size + TRAILER_SIZE,
            "size_of_the_metaindex": places["metaindex"].size,
            "key": asked,
        },
        (
            Question(
                "At which offset begins the block of this handle, and how many bytes does one read"
                " for it, with its trailer?",
                answer_of((offset, size + TRAILER_SIZE)),
                lambda code: (
                    answer_of((offset, len(code.seal_block(bytes(size)))))
                    if code.block_handle(offset, size) == handle
                    else "another handle"
                ),
                "Both numbers are varints, and the trailer of 5 bytes is not counted in the size.",
                {answer_of((offset, size)): "The trailer is missing."},
            ),
            Question(
                "The table holds these data blocks: the offset and first user key of each. A get of"
                " the key reads three times. At which offsets, in order?",
                answer_of([*reads, blocks[at].offset]),
                lambda code: log.of(code, asked.encode()),
                "First the footer, the last 48 bytes; then the index, after the metaindex block;"
                " then the one data block that may hold the key. Each block has a trailer of 5.",
                {
                    answer_of([blocks[at].offset, *reads]): "These are right, in another order.",
                },
            ),
        ),
        {"lab6.ldb": data},
    )


def _first_keys(data: bytes) -> list[bytes]:
    """The first user key of each data block."""
    firsts: dict[int, bytes] = {}
    with Table(data) as table:
        for entry in table.entries():
            firsts.setdefault(entry.block, entry.user_key)
    return list(firsts.values())


class _Reads:
    """Reads a table for a student's ``get``, and records the offsets."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._offsets: list[int] = []

    def read(self, offset: int, length: int) -> bytes:
        """Some bytes of the table."""
        self._offsets.append(offset)
        return self._data[offset : offset + length]

    def of(self, code: Any, key: bytes) -> str:
        """Return the offsets that a student's get reads."""
        self._offsets = []
        code.get(self.read, len(self._data), key)
        return answer_of(self._offsets)
