"""lsmkv.engine.table.index: the block of a key and a sequence against a model, and hostile
handles.
"""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from orders import COMPARATORS
from plain import BOUNDS, BYTES, HALF, ORDERS, TAG, Versions, rows_of

from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.keys import MAX_SEQUENCE, before_versions, pack, unpack
from lsmkv.engine.table.format import BLOCK_TRAILER_SIZE, BlockHandle
from lsmkv.engine.table.index import TableIndex
from lsmkv.errors import CorruptionError

IN_EVERY_ORDER = pytest.mark.parametrize(
    "order", ORDERS, ids=[comparator.name for comparator in COMPARATORS]
)

keys = st.binary(max_size=10) | st.text("abAB", max_size=5).map(str.encode)
sequences = st.integers(0, 20) | st.sampled_from(BOUNDS)


def index_of(index_keys: list[bytes], order: KeyOrder = BYTES, limit: int = 1 << 40) -> TableIndex:
    """Blocks of ten bytes, one after the other."""
    size = 10 + BLOCK_TRAILER_SIZE
    handles = [BlockHandle(number * size, 10).encode() for number in range(len(index_keys))]
    return TableIndex(index_keys, handles, order, limit)


def model(index_keys: list[bytes], user_key: bytes, sequence: int, order: KeyOrder) -> int:
    """The first block whose index key is at or after the newest version that counts."""
    for number, index_key in enumerate(index_keys):
        found, newest, _ = unpack(index_key)
        compared = order.compare(found, user_key)
        if compared > 0 or (
            compared == 0 and sequence >= 0 and (newest <= sequence or sequence == MAX_SEQUENCE)
        ):
            return number
    return len(index_keys)


@IN_EVERY_ORDER
@given(
    st.dictionaries(st.tuples(keys, sequences), st.sampled_from([0, 1]), max_size=30),
    st.lists(keys, max_size=5),
    st.lists(sequences, max_size=4),
)
@example({(b"k", 9): 1, (b"k", 5): 1, (b"k", 1): 0, (b"l", 3): 1}, [b"K"], [8])
def test_find(order: KeyOrder, versions: Versions, others: list[bytes], bounds: list[int]) -> None:
    """Versions of one key that end several blocks among them."""
    index_keys = [key for key, _ in rows_of(versions, order)]
    index = index_of(index_keys, order)
    assert len(index) == len(index_keys)
    own = {sequence + step for _, sequence in versions for step in (-1, 0)}
    wanted_keys = {key for key, _ in versions} | set(others)
    wanted_keys |= {key + b"\0" for key in wanted_keys} | {key.swapcase() for key in wanted_keys}
    for wanted in wanted_keys:
        for sequence in {-1, MAX_SEQUENCE, MAX_SEQUENCE - 1, *own, *bounds}:
            expected = model(index_keys, wanted, sequence, order)
            assert index.block_for(order.of(wanted), sequence) == expected


def test_one_key_in_many_blocks() -> None:
    index_keys = [pack(b"k", sequence, 1) for sequence in (MAX_SEQUENCE, HALF, HALF - 1, 9, 5, 1)]
    index = index_of([b"j" + TAG, *index_keys, before_versions(b"l")])
    for sequence, number in {
        MAX_SEQUENCE: 1,
        MAX_SEQUENCE - 1: 2,
        HALF: 2,
        HALF - 1: 3,
        HALF - 2: 4,
        9: 4,
        8: 5,
        5: 5,
        1: 6,
        0: 7,
        -1: 7,
    }.items():
        assert index.block_for(b"k", sequence) == number
    assert index.block_for(b"j", 0) == 1
    assert index.block_for(b"l", MAX_SEQUENCE) == 7
    assert index.block_for(b"l", 3) == index.block_for(b"l", -1) == index.block_for(b"m", 3) == 8


def test_no_block() -> None:
    for order in ORDERS:
        index = index_of([], order)
        assert len(index) == 0
        assert [
            index.block_for(order.of(b"k"), sequence) for sequence in (-1, 0, MAX_SEQUENCE)
        ] == [
            0,
            0,
            0,
        ]


def test_where_blocks_lie() -> None:
    handles = [BlockHandle(0, 10), BlockHandle(15, 20), BlockHandle(50, 0), BlockHandle(20, 5)]
    index_keys = [b"%d" % number + TAG for number in range(4)]
    index = TableIndex(index_keys, [handle.encode() for handle in handles], BYTES, 55)
    assert index.keys == index_keys
    assert list(index.offsets) == [0, 15, 50, 20]
    assert list(index.sizes) == [15, 25, 5, 10]
    assert [index.end(number) for number in range(4)] == [15, 40, 55, 30]
    assert [index.handle(number) for number in range(4)] == handles
    assert [index.adjoins(number) for number in (1, 2, 3)] == [True, False, False]


@pytest.mark.parametrize("size", range(8))
def test_an_index_key_without_a_tag(size: int) -> None:
    for order in ORDERS:
        with pytest.raises(CorruptionError, match="shorter than its tag"):
            index_of([b"k" * size], order)


@pytest.mark.parametrize("handle", [b"", b"\x80", b"\xff" * 11, b"\x00", b"\x00" + b"\xff" * 10])
def test_what_is_no_handle(handle: bytes) -> None:
    with pytest.raises(CorruptionError):
        TableIndex([b"k" + TAG], [handle], BYTES, 1000)


@pytest.mark.parametrize(
    "handle",
    [BlockHandle(0, 96), BlockHandle(96, 0), BlockHandle(2**63, 0), BlockHandle(0, 2**64 - 1)],
)
def test_a_block_beyond_the_limit(handle: BlockHandle) -> None:
    with pytest.raises(CorruptionError, match="beyond"):
        TableIndex([b"k" + TAG], [handle.encode()], BYTES, 100)
    edge = BlockHandle(10, 85)
    assert TableIndex([b"k" + TAG], [edge.encode()], BYTES, 100).end(0) == 100
