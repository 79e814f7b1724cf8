"""What the tests of tables share: internal keys, orders, blocks by hand, and a file in memory.

A table of plain keys is a table all of whose keys have one tag: :func:`with_tag` appends it, and
:func:`without_tag` takes it away again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from byte_files import BytesFile
from orders import COMPARATORS

from lsmkv.engine.counters import ReadCounters
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.filter.key_hashes import KeyHashes
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.keys import KIND_VALUE, MAX_SEQUENCE, TAG_SIZE, Entry, pack, unpack
from lsmkv.engine.options import FilterLayout, Options
from lsmkv.engine.table.block_builder import BlockBuilder
from lsmkv.engine.table.builder import TableBuilder
from lsmkv.engine.table.format import BlockHandle, Footer, seal_block
from lsmkv.engine.table.reader import FROM_FILE, Table
from lsmkv.engine.util.coding import encode_varint
from lsmkv.engine.util.compression import NO_COMPRESSION

Row = tuple[bytes, bytes]
"""A key, whatever its kind, and a value."""
Versions = dict[tuple[bytes, int], int]
"""The kind by user key and sequence."""

TAG = pack(b"", 1, KIND_VALUE)

PLAIN = Options(compression=NO_COMPRESSION)
SMALL = PLAIN._replace(block_size=64)

HALF = 1 << 55
"""From this sequence on a tag is negative as a signed number."""
BOUNDS = [0, 1, 2, 5, 9, 300, HALF - 1, HALF, HALF + 1, MAX_SEQUENCE]
"""Sequences of versions, and sequences that reads are bounded by."""

ORDERS = [KeyOrder(comparator) for comparator in COMPARATORS]
BYTES = ORDERS[0]


def with_tag(rows: Iterable[Row]) -> list[Row]:
    """Plain keys made internal keys."""
    return [(key + TAG, value) for key, value in rows]


def without_tag(entries: Iterable[Entry]) -> list[Row]:
    """Entries of plain keys as plain keys and values."""
    rows = []
    for user_key, tagged in entries:
        assert tagged[:TAG_SIZE] == TAG
        rows.append((user_key, tagged[TAG_SIZE:]))
    return rows


def entries_of(rows: Iterable[Row]) -> list[Entry]:
    """Internal keys and values as entries."""
    return [(key[:-TAG_SIZE], key[-TAG_SIZE:] + value) for key, value in rows]


def rows_of(versions: Versions, order: KeyOrder) -> list[Row]:
    """Internal keys and values in order; deletions have none.  Of versions that are the same in
    this order, one.
    """
    rows: list[Row] = []
    last: tuple[bytes, int] | None = None
    for version in sorted(versions, key=lambda each: (order.of(each[0]), -each[1])):
        if last is None or last[1] != version[1] or not order.is_same(last[0], version[0]):
            kind = versions[version]
            rows.append((pack(*version, kind), b"%d" % version[1] if kind else b""))
        last = version
    return rows


def newest(
    rows: Iterable[Row], user_key: bytes, sequence: int, order: KeyOrder
) -> tuple[int, bytes | None]:
    """The model of a Get: the signed tag and the value of the first version that counts."""
    for key, value in rows:
        if order.is_same(key[:-TAG_SIZE], user_key) and unpack(key)[1] <= sequence:
            return int.from_bytes(key[-TAG_SIZE:], "little", signed=True), value
    return 0, None


# Blocks by hand


def fixed32(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4, "little") for number in numbers)


def raw_entry(shared: int, suffix: bytes, value: bytes = b"") -> bytes:
    lengths = (shared, len(suffix), len(value))
    return b"".join(encode_varint(length) for length in lengths) + suffix + value


def build_block(rows: Iterable[Row], interval: int = 16) -> bytes:
    """The rows' keys are written as they are."""
    builder = BlockBuilder(interval)
    empty = True
    for key, value in rows:
        builder.add(key, value)
        empty = False
    assert builder.empty == empty
    size = builder.size_estimate()
    data = builder.finish()
    assert len(data) == size
    return data


# Tables


def build_table(rows: Sequence[Row], options: Options = SMALL) -> bytes:
    """A table of internal keys."""
    directory = MemoryEnv().open_directory("/")
    with directory.create("table") as file:
        builder = TableBuilder(options, file)
        for key, value in rows:
            builder.add(key, value)
        builder.finish()
    return directory.read_file("table", builder.file_size)


def build(rows: Sequence[Row], options: Options = SMALL) -> bytes:
    """A table of plain keys."""
    return build_table(with_tag(rows), options)


def opened(data: bytes, options: Options = SMALL) -> tuple[Table, BytesFile]:
    """The table, and its file with the reads of opening forgotten."""
    file = BytesFile(data)
    table = Table(options, file)
    file.reads.clear()
    return table, file


def sealed(rows: Iterable[Row]) -> bytes:
    """A block as it is stored; its keys are written as they are."""
    return seal_block(build_block(rows), NO_COMPRESSION)


def assemble(
    blocks: Sequence[tuple[Sequence[Row], bytes]],
    meta: Sequence[Row] = (),
    extra: bytes = b"",
    index_rows: Sequence[Row] | None = None,
) -> bytes:
    """A table by hand: ``(rows, index key)`` of each block, in whatever disorder.

    All keys are plain; ``extra`` is what the file begins with.
    """
    data = bytearray(extra)
    index = []
    for rows, index_key in blocks:
        stored = sealed(with_tag(rows))
        index.append((index_key, BlockHandle(len(data), len(stored) - 5).encode()))
        data += stored
    handles = []
    for rows in (meta, with_tag(index if index_rows is None else index_rows)):
        stored = sealed(rows)
        handles.append(BlockHandle(len(data), len(stored) - 5))
        data += stored
    return bytes(data) + Footer(*handles).encode()


BLOOM = BloomFilterPolicy(10)
LAYOUTS: list[FilterLayout] = ["block", "table", "both"]
VALUE_TAG = 1 << 8 | 1
"""The tag of plain keys as a number."""


class OneAnswer:
    """A policy that says the same of every key, and keeps which filters it was asked."""

    name = "test.OneAnswer"

    def __init__(self, answer: bool) -> None:
        self.answer = answer
        self.asked: list[bytes] = []

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        return b"%d" % len(keys)

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        self.asked.append(filter_data)
        return self.answer


def get(
    table: Table,
    user_key: bytes,
    counters: ReadCounters | None = None,
    sequence: int = MAX_SEQUENCE,
    fill_cache: bool = True,
) -> tuple[int, int, bytes | None]:
    """A Get of a user key: outcome, tag, value."""
    order = table.comparator.order.of(user_key)
    used = ReadCounters() if counters is None else counters
    return table.get(user_key, order, sequence, KeyHashes(user_key), used, fill_cache)


def found(value: bytes, outcome: int = FROM_FILE) -> tuple[int, int, bytes]:
    """What a Get of a plain key returns."""
    return outcome, VALUE_TAG, value


ROWS = [(b"k%04d" % number, b"value %d" % number) for number in range(0, 2000, 2)]
ABSENT = [b"k%04d" % number for number in range(1, 2000, 2)]
"""Keys between those of ``ROWS``."""


FEW = [(b"a", b"1"), (b"bb", b"22"), (b"c" * 30, b"3" * 30), (b"d", b""), (b"e", b"5")]

HUGE = [BlockHandle(2**64 - 1, 2**64 - 1), BlockHandle(0, 2**64 - 1), BlockHandle(2**63, 0)]
GARBAGE = [b"", b"\x80", b"\xff" * 11, b"\x00", b"\x00" + b"\xff" * 10]
"""Bytes that are no handle of a block."""
