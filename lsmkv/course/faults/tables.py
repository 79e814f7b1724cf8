"""Faults of labs 4 to 6: filters, filter blocks, tables."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import lsmkv
from lsmkv.course.faults.fault import Fault, Files, Function, Subject
from lsmkv.course.faults.made import offsets_of, table_with
from lsmkv.course.given import masked_crc32c
from lsmkv.course.labs.block import built
from lsmkv.course.labs.bloom import leveldb_hash
from lsmkv.course.labs.filter_block import built as built_filters
from lsmkv.course.labs.filter_block import filters_in, grouped, key_of
from lsmkv.course.labs.formats import MAGIC, entries_in, version_key
from lsmkv.course.labs.table import built as built_table
from lsmkv.files import BlockHandle

Calls = list[tuple[str, tuple[Any, ...]]]
_MASK = 0xFFFFFFFF
_BITS = 10
_POLICY = lsmkv.BloomFilterPolicy(_BITS)

# Lab 4


def _create(keys: Sequence[bytes], bits_per_key: int) -> bytes:
    return lsmkv.BloomFilterPolicy(bits_per_key).create_filter(list(keys))


def _may_match(key: bytes, keys: Sequence[bytes], bits_per_key: int) -> bool:
    return _POLICY.key_may_match(key, _create(keys, bits_per_key))


def _created(keys: Sequence[bytes], bits_per_key: int, **how: Any) -> bytes:
    """A filter with a difference: ``probes``, a ``minimum`` of bits, ``cut`` sums, ``fewer``
    probes, bits ``turned`` in their bytes, ``rotated`` by how much."""
    k = how.get("probes", lsmkv.BloomFilterPolicy(bits_per_key).probes)
    bits = (max(how.get("minimum", 64), len(keys) * bits_per_key) + 7) // 8 * 8
    array = bytearray(bits // 8)
    by = how.get("rotated", 17)
    for key in keys:
        h = leveldb_hash(key)
        d = (h >> by | h << 32 - by) & _MASK
        for n in range(max(1, k - how.get("fewer", 0))):
            place = h + n * d
            place = (place & _MASK if how.get("cut", True) else place) % bits
            array[place // 8] |= 128 >> place % 8 if how.get("turned") else 1 << place % 8
    return bytes(array) + bytes([k])


def _hash_with(order: str, rest: int) -> Function:
    """A hash with words in an order, whose rest is folded by ``rest`` bits."""

    def hashed(key: bytes) -> int:
        m = 0xC6A4A793
        h = (0xBC9F1D34 ^ len(key) * m) & _MASK
        whole = len(key) // 4 * 4
        for at in range(0, whole, 4):
            word = int.from_bytes(key[at : at + 4], order)  # type: ignore[arg-type]
            h = (h + word) * m & _MASK
            h ^= h >> 16
        if key[whole:]:
            h = (h + int.from_bytes(key[whole:], "little")) * m & _MASK
            h ^= h >> rest
        return h

    return hashed


def _bloom_scene(mark: bytes, dice: random.Random) -> Calls:
    keys = [mark + b"%d" % dice.randrange(1000) for _ in range(9)]
    calls: Calls = [("bloom_hash", (mark + end,)) for end in (b"", b"a", b"ab", b"abc")]
    calls += [
        ("create_filter", (keys[:number], bits)) for number, bits in ((1, 4), (9, 13), (7, 3))
    ]
    calls += [("create_filter", ([mark], bits)) for bits in (10, 12, 60)]
    calls += [("key_may_match", (key, keys[:4], 16)) for key in (keys[0], keys[3], keys[8])]
    return [*calls, ("key_may_match", (mark, [], 10)), ("key_may_match", (mark, [mark], 60))]


def _bloom_files(code: Mapping[str, Function], mark: bytes) -> Files:
    keys = [mark + b"%02d" % n for n in range(20)]
    block = built([(key_of(key), b"value") for key in keys], 16)
    filters = code["create_filter"](keys, _BITS)
    ends = bytes(4) + len(filters).to_bytes(4, "little") + bytes([11])
    return {"fault4.ldb": table_with([block], filters + ends)}


BLOOM = Subject(
    {"bloom_hash": leveldb_hash, "create_filter": _create, "key_may_match": _may_match},
    {
        "bloom_hash": "key",
        "create_filter": "[keys], bits for each key",
        "key_may_match": "key, [keys] of a good filter, its bits for each key",
    },
    (
        Fault(
            "Words of the hash are read with the highest byte first.",
            "bloom_hash",
            _hash_with("big", 24),
            lambda m: (m,),
        ),
        Fault(
            "The bytes left over are folded by 16 bits, as words are.",
            "bloom_hash",
            _hash_with("little", 16),
            lambda m: (m + b"a",),
        ),
        Fault(
            "Bits are counted from the highest of each byte.",
            "create_filter",
            lambda keys, bits: _created(keys, bits, turned=True),
            lambda m: ([m], 1),
        ),
        Fault(
            "Sums have more than 32 bits when the remainder is taken.",
            "create_filter",
            lambda keys, bits: _created(keys, bits, cut=False),
            lambda m: ([m] * 9, 40),
        ),
        Fault(
            "One probe less is set than the last byte says.",
            "create_filter",
            lambda keys, bits: _created(keys, bits, fewer=1),
            lambda m: ([m], 10),
        ),
        Fault(
            "A small filter has fewer than 64 bits.",
            "create_filter",
            lambda keys, bits: _created(keys, bits, minimum=1),
            lambda m: ([m], 1),
        ),
        Fault(
            "k is rounded, not cut off.",
            "create_filter",
            lambda keys, bits: _created(keys, bits, probes=max(1, min(30, round(bits * 0.69)))),
            lambda m: ([m], 4),
        ),
        Fault(
            "k has no upper limit.",
            "create_filter",
            lambda keys, bits: _created(keys, bits, probes=max(1, int(bits * 0.69))),
            lambda m: ([m], 45),
        ),
        Fault(
            "The distance of two probes is the hash rotated by 15 bits.",
            "create_filter",
            lambda keys, bits: _created(keys, bits, rotated=15),
            lambda m: ([m], 3),
        ),
        Fault(
            "The last key of a filter is denied.",
            "key_may_match",
            lambda key, keys, bits: key != (keys or [b""])[-1] and _may_match(key, keys, bits),
            lambda m: (m, [m], 1),
        ),
        Fault(
            "A filter of no keys says maybe.",
            "key_may_match",
            lambda key, keys, bits: not keys or _may_match(key, keys, bits),
            lambda m: (m, [], 1),
        ),
    ),
    _bloom_scene,
    _bloom_files,
)

# Lab 5

Blocks = Sequence[tuple[int, Sequence[bytes]]]


def _internal(blocks: Blocks) -> list[tuple[int, list[bytes]]]:
    return [(offset, [key_of(key) for key in keys]) for offset, keys in blocks]


def _group(blocks: Blocks) -> list[list[bytes]]:
    return grouped(_internal(blocks))


def _filter_block(blocks: Blocks) -> bytes:
    return built_filters(_internal(blocks), _POLICY)


def _filter_for(blocks: Blocks, offset: int) -> bytes | None:
    found = filters_in(_filter_block(blocks))
    return found[offset >> 11] if offset >> 11 < len(found) else None


def _grouped_by(number: Function, drops: int = 0) -> Function:
    """Groups of keys by a number of the block's beginning and end."""

    def group(blocks: Blocks) -> list[list[bytes]]:
        ends = [offset for offset, _ in blocks[1:]]
        numbers = [number(begin, end) for (begin, _), end in zip(blocks, ends, strict=False)]
        found: list[list[bytes]] = [[] for _ in range(max(numbers, default=-1) + 1)]
        for at, (_, keys) in zip(numbers, blocks, strict=False):
            found[at] += keys
        return found[: len(found) - drops]

    return group


def _joined(filters: Sequence[bytes], order: str, base: int = 11) -> bytes:
    offsets = [sum(map(len, filters[:at])) for at in range(len(filters) + 1)]
    numbers = (offset.to_bytes(4, order) for offset in offsets)  # type: ignore[arg-type]
    return b"".join(filters) + b"".join(numbers) + bytes([base])


def _sizes_for_offsets(blocks: Blocks) -> bytes:
    filters = filters_in(_filter_block(blocks))
    sizes = b"".join(len(one).to_bytes(4, "little") for one in filters)
    total = sum(map(len, filters))
    return b"".join(filters) + sizes + total.to_bytes(4, "little") + bytes([11])


def _of_internal_keys(blocks: Blocks) -> bytes:
    return _filter_block([(offset, [key_of(key) for key in keys]) for offset, keys in blocks])


def _filter_block_scene(mark: bytes, dice: random.Random) -> Calls:
    starts = [0, 900, 1990, 2045 + dice.randrange(3), 4090, 9000, 9500]
    blocks: list[tuple[int, list[bytes]]] = [
        (start, [mark + b"%d%d" % (at, n) for n in range(2)]) for at, start in enumerate(starts)
    ]
    blocks.append((9900, []))
    calls: Calls = [("group_keys", (blocks,)), ("build_filter_block", (blocks,))]
    return calls + [
        ("filter_for", (blocks, at)) for at in (0, 2047, 2048, 4096, 9000, 10_240, 14_000)
    ]


def _filter_block_files(code: Mapping[str, Function], mark: bytes) -> Files:
    keys = [[mark + b"%02d" % n for n in range(at, at + 8)] for at in range(0, 64, 8)]
    blocks = [built([(key_of(key), b"." * 70) for key in some], 16) for some in keys]
    offsets = offsets_of(blocks)
    laid = [*zip(offsets, keys, strict=False), (offsets[-1], [])]
    return {"fault5.ldb": table_with(blocks, code["build_filter_block"](laid))}


FILTER_BLOCK = Subject(
    {"group_keys": _group, "build_filter_block": _filter_block, "filter_for": _filter_for},
    {
        "group_keys": "[(offset of a block, [its user keys]), ..., (end, [])]",
        "build_filter_block": "the same; its filters have 10 bits for each key",
        "filter_for": "the same, of a good filter block; offset of a block",
    },
    (
        Fault(
            "A filter is for 4,096 bytes.",
            "group_keys",
            _grouped_by(lambda begin, end: begin >> 12),
            lambda m: ([(2048, [m]), (2048, [])],),
        ),
        Fault(
            "A filter is for 2,000 bytes.",
            "group_keys",
            _grouped_by(lambda begin, end: begin // 2000),
            lambda m: ([(2000, [m]), (2000, [])],),
        ),
        Fault(
            "A block belongs to the range in which it ends.",
            "group_keys",
            _grouped_by(lambda begin, end: end >> 11),
            lambda m: ([(0, [m]), (2048, [])],),
        ),
        Fault(
            "The last filter is left out.",
            "group_keys",
            _grouped_by(lambda begin, end: begin >> 11, drops=1),
            lambda m: ([(0, [m]), (0, [])],),
        ),
        Fault(
            "The array has the filters' sizes, not their offsets.",
            "build_filter_block",
            _sizes_for_offsets,
            lambda m: ([(0, [m]), (0, [])],),
        ),
        Fault(
            "Offsets are written with the highest byte first.",
            "build_filter_block",
            lambda blocks: _joined(filters_in(_filter_block(blocks)), "big"),
            lambda m: ([(0, [m]), (0, [])],),
        ),
        Fault(
            "The last byte is the size of a range in KiB, not its logarithm.",
            "build_filter_block",
            lambda blocks: _joined(filters_in(_filter_block(blocks)), "little", 2),
            lambda m: ([(0, [m]), (0, [])],),
        ),
        Fault(
            "Filters are made of internal keys.",
            "build_filter_block",
            _of_internal_keys,
            lambda m: ([(0, [m]), (0, [])],),
        ),
        Fault(
            "The filter after the right one is asked.",
            "filter_for",
            lambda blocks, offset: _filter_for(blocks, offset + 2048),
            lambda m: ([(0, [m]), (0, [])], 0),
        ),
        Fault(
            "There is no filter where it has no bytes.",
            "filter_for",
            lambda blocks, offset: _filter_for(blocks, offset) or None,
            lambda m: ([(2048, [m]), (2048, [])], 0),
        ),
        Fault(
            "After the last filter there is an empty one.",
            "filter_for",
            lambda blocks, offset: _filter_for(blocks, offset) or b"",
            lambda m: ([(0, [m]), (0, [])], 2048),
        ),
    ),
    _filter_block_scene,
    _filter_block_files,
)

# Lab 6

Versions = Sequence[tuple[bytes, int, bytes | None]]
_ORDER = lsmkv.BytewiseComparator()


def _separator(last: bytes, first: bytes) -> bytes:
    return _ORDER.find_shortest_separator(last, first)


def _successor(last: bytes) -> bytes:
    return _ORDER.find_short_successor(last)


def _build_table(versions: Versions, block_size: int) -> bytes:
    entries = [(version_key(key, n, value), value or b"") for key, n, value in versions]
    return built_table(entries, block_size)


def _get(versions: Versions, block_size: int, key: bytes) -> bytes | None:
    return next((value for one, _, value in versions if one == key), None)


def _patched(data: bytes, typed: bool = True, order: str = "little") -> bytes:
    """A table whose first block has another checksum."""
    index = _handles(data)[1]
    handle = _decoded(entries_in(data[index[0] : sum(index)])[0].value)
    end = sum(handle)
    kind = data[end : end + 1]
    crc = masked_crc32c(data[handle[0] : end] + (kind if typed else b""))
    return data[: end + 1] + crc.to_bytes(4, order) + data[end + 5 :]  # type: ignore[arg-type]


def _decoded(handle: bytes) -> tuple[int, int]:
    numbers: list[int] = []
    shift = number = 0
    for byte in handle:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            shift = number = 0
    return numbers[0], numbers[1]


def _handles(data: bytes) -> list[tuple[int, int]]:
    """Return the handles of the metaindex and the index from the footer of a table."""
    meta = _decoded(data[-48:-8])
    rest = data[-48 + len(BlockHandle(*meta).encode()) : -8]
    return [meta, _decoded(rest)]


def _with_footer(data: bytes, turned: bool = False, padded: bool = True) -> bytes:
    meta, index = _handles(data)
    pair = [BlockHandle(*index).encode(), BlockHandle(*meta).encode()]
    handles = b"".join(pair if turned else pair[::-1])
    return data[:-48] + (handles.ljust(40, b"\0") if padded else handles) + MAGIC


def _rebuilt(versions: Versions, block_size: int, counted: int = 0, last: bool = True) -> bytes:
    """A table with another index."""
    data = _build_table(versions, block_size)
    (meta, index) = _handles(data)
    entries: list[tuple[bytes, bytes]] = []
    for entry in entries_in(data[index[0] : sum(index)]):
        offset, size = _decoded(entry.value)
        entries.append((entry.key, BlockHandle(offset, size + counted).encode()))
    if not last:
        entries.pop()
    contents = built(entries, 1)
    kept = data[: index[0]] + contents + b"\0"
    kept += masked_crc32c(contents + b"\0").to_bytes(4, "little")
    handles = BlockHandle(*meta).encode() + BlockHandle(index[0], len(contents)).encode()
    return kept + handles.ljust(40, b"\0") + MAGIC


def _raised(last: bytes, first: bytes) -> bytes:
    at = next((n for n, (a, b) in enumerate(zip(last, first, strict=False)) if a != b), -1)
    if at < 0 or last[at] == 0xFF:
        return last
    return last[:at] + bytes([last[at] + 1])


def _table_scene(mark: bytes, dice: random.Random) -> Calls:
    versions: list[tuple[bytes, int, bytes | None]] = []
    for at in range(6):
        number = dice.randrange(5, 100)
        key = mark + b"%d" % at
        versions += [(key, number, None if at % 3 == 1 else b"new"), (key, number - 3, b"old")]
    ends = ((b"ant", b"cat"), (b"1", b"2"), (b"\xff", b"\xff\xff"), (b"aaa", b"b"), (b"a", b"c"))
    calls: Calls = [("separator", (mark + a, mark + b)) for a, b in ends]
    calls += [("successor", (end + mark,)) for end in (b"", b"\xff", b"\xff\xff")]
    calls += [("build_table", (versions[:4], size)) for size in (1, 4096)]
    asked = (b"0", b"1", b"3", b"9", b"")
    return calls + [("get", (versions, 60, mark + end)) for end in asked]


def _table_files(code: Mapping[str, Function], mark: bytes) -> Files:
    versions: list[tuple[bytes, int, bytes | None]] = [
        (mark + b"%03d" % at, at + 1, b"value %d" % at) for at in range(40)
    ]
    return {"fault6.ldb": code["build_table"](versions, 200)}


TABLE = Subject(
    {
        "separator": _separator,
        "successor": _successor,
        "build_table": _build_table,
        "get": _get,
    },
    {
        "separator": "last user key of a block, first one of the next",
        "successor": "last user key of a table",
        "build_table": "[(user key, sequence, value, or None for a deletion)], size of a block",
        "get": "the same, of a good table; size of a block; user key",
    },
    (
        Fault(
            "A separator may be the first key of the next block.",
            "separator",
            _raised,
            lambda m: (m + b"a", m + b"b"),
        ),
        Fault(
            "A separator is the last key, never shortened.",
            "separator",
            lambda last, first: last,
            lambda m: (m + b"aa", m + b"c"),
        ),
        Fault(
            "A successor raises the first byte, even if it is ff.",
            "successor",
            lambda last: bytes([last[0] + 1 & 0xFF]) if last else b"",
            lambda m: (b"\xff" + m,),
        ),
        Fault(
            "The checksum of the first block leaves out its type.",
            "build_table",
            lambda versions, size: _patched(_build_table(versions, size), typed=False),
            lambda m: ([(m, 0, None)], 1),
        ),
        Fault(
            "The checksum of the first block has its highest byte first.",
            "build_table",
            lambda versions, size: _patched(_build_table(versions, size), order="big"),
            lambda m: ([(m, 0, None)], 1),
        ),
        Fault(
            "Sizes in the index count the trailer of a block.",
            "build_table",
            lambda versions, size: _rebuilt(versions, size, counted=5),
            lambda m: ([(m, 0, None)], 1),
        ),
        Fault(
            "The last block is missing in the index.",
            "build_table",
            lambda versions, size: _rebuilt(versions, size, last=False),
            lambda m: ([(m, 0, None)], 1),
        ),
        Fault(
            "The footer has the index before the metaindex.",
            "build_table",
            lambda versions, size: _with_footer(_build_table(versions, size), turned=True),
            lambda m: ([(m, 0, None)], 1),
        ),
        Fault(
            "The footer is not filled up to 48 bytes.",
            "build_table",
            lambda versions, size: _with_footer(_build_table(versions, size), padded=False),
            lambda m: ([(m, 0, None)], 1),
        ),
        Fault(
            "A get finds an older value past a deletion.",
            "get",
            lambda versions, size, key: _get([v for v in versions if v[2] is not None], size, key),
            lambda m: ([(m, 1, None), (m, 0, b"")], 1, m),
        ),
        Fault(
            "A get of a deleted key returns an empty value.",
            "get",
            lambda versions, size, key: (
                b""
                if any(v[0] == key for v in versions) and _get(versions, size, key) is None
                else _get(versions, size, key)
            ),
            lambda m: ([(m, 0, None)], 1, m),
        ),
        Fault(
            "A get returns the oldest version.",
            "get",
            lambda versions, size, key: _get(versions[::-1], size, key),
            lambda m: ([(m, 1, b""), (m, 0, b"a")], 1, m),
        ),
        Fault(
            "A get of an absent key returns the value of the next one.",
            "get",
            lambda versions, size, key: next((v[2] for v in versions if v[0] >= key), None),
            lambda m: ([(m, 0, b"")], 1, b""),
        ),
    ),
    _table_scene,
    _table_files,
)
