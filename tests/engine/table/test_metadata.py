"""lsmkv.engine.table.metadata: what is read when a table is opened, which filters are used, and
damage.
"""

from __future__ import annotations

import pytest
from byte_files import BytesFile
from orders import FOLDING
from plain import (
    ABSENT,
    BLOOM,
    FEW,
    GARBAGE,
    HUGE,
    LAYOUTS,
    ROWS,
    SMALL,
    TAG,
    OneAnswer,
    assemble,
    build,
    found,
    get,
    opened,
)

from lsmkv.engine.counters import ReadCounters
from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.filter.bloom64 import Bloom64Policy
from lsmkv.engine.filter.fuse import BinaryFusePolicy, shape_of
from lsmkv.engine.filter.policy import FilterPolicy
from lsmkv.engine.filter.prefix import FixedPrefix
from lsmkv.engine.options import FilterLayout
from lsmkv.engine.table.format import FOOTER_SIZE, BlockHandle, Footer, seal_block
from lsmkv.engine.table.reader import Table
from lsmkv.engine.util.compression import NO_COMPRESSION
from lsmkv.errors import CorruptionError


@pytest.mark.parametrize(
    ("layout", "policy", "reads"),
    [("block", None, 2), ("block", BLOOM, 4), ("table", BLOOM, 4), ("both", BLOOM, 5)],
)
def test_opening_counts_its_reads(
    layout: FilterLayout, policy: BloomFilterPolicy | None, reads: int
) -> None:
    options = SMALL._replace(filter_policy=policy, filter_layout=layout)
    file = BytesFile(build(ROWS, options))
    table = Table(options, file)
    assert table.metadata_reads == len(file.reads) == reads
    assert table.metadata_bytes == sum(length for _, length in file.reads)
    assert table.has_filter == (policy is not None)
    assert table.path == file.path
    table.close()
    assert file.closed


def test_opening_a_table_takes_2_to_6_reads_and_one_for_its_first_key() -> None:
    """As docs/how/read.md says."""
    prefixed = SMALL._replace(
        filter_policy=Bloom64Policy(10), filter_layout="both", prefix_extractor=FixedPrefix(3)
    )
    most = Table(prefixed, BytesFile(build(ROWS, prefixed)))
    least = Table(SMALL._replace(filter_policy=None), BytesFile(build(ROWS, SMALL)))
    assert (least.metadata_reads, most.metadata_reads) == (2, 6)
    for table in (least, most):
        assert table.begins_with(ROWS[0][0] + TAG, True)
        assert table.identity_check.blocks_read == 1


def test_readers_use_the_filters_that_they_find() -> None:
    for written in LAYOUTS:
        data = build(ROWS, SMALL._replace(filter_policy=BLOOM, filter_layout=written))
        for layout in LAYOUTS:
            options = SMALL._replace(filter_policy=BLOOM, filter_layout=layout)
            table, _ = opened(data, options)
            assert table.has_filter
            layouts = [reader.layout for reader in table.filters.readers]
            assert layouts == (["table", "block"] if written == "both" else [written])


class Renamed(OneAnswer):
    name = "test.Renamed"


def test_filters_of_an_unknown_policy_are_not_read() -> None:
    data = build(ROWS, SMALL._replace(filter_policy=Renamed(False), filter_layout="both"))
    policy = OneAnswer(False)
    table, _ = opened(data, SMALL._replace(filter_policy=policy))
    assert not table.has_filter
    assert get(table, ROWS[3][0]) == found(ROWS[3][1])
    assert policy.asked == []


OWN: list[FilterPolicy] = [BLOOM, Bloom64Policy(10), BinaryFusePolicy()]


@pytest.mark.parametrize("written", OWN, ids=repr)
@pytest.mark.parametrize("given", [*OWN, OneAnswer(False)], ids=lambda policy: policy.name)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_filters_that_are_known_are_read(
    written: FilterPolicy, given: FilterPolicy, layout: FilterLayout
) -> None:
    """A table may have been written under another policy: its filters are good all the same."""
    data = build(ROWS, SMALL._replace(filter_policy=written, filter_layout=layout))
    table, _ = opened(data, SMALL._replace(filter_policy=given))
    assert {reader.policy.name for reader in table.filters.readers} == {written.name}
    counters = ReadCounters()
    for key, value in ROWS:
        assert get(table, key, counters) == found(value)
    for key in ABSENT:
        assert get(table, key, counters)[2] is None
    assert counters.filter_negatives > len(ABSENT) * 0.8


def test_no_filter_is_read_where_none_is_wanted() -> None:
    """Where the comparator may call different bytes equal, or filters are turned off."""
    data = build(ROWS, SMALL._replace(filter_policy=Bloom64Policy(10), filter_layout="table"))
    assert not opened(data, SMALL._replace(filter_policy=None))[0].has_filter
    folding = SMALL._replace(filter_policy=OneAnswer(False), comparator=FOLDING)
    assert not opened(data, folding)[0].has_filter


def test_any_byte_of_a_fuse_filter_flipped() -> None:
    """And of the prefix filter and the metaindex behind it: the table is not opened."""
    options = SMALL._replace(
        filter_policy=BinaryFusePolicy(), filter_layout="table", prefix_extractor=FixedPrefix(5)
    )
    data = build(ROWS, options)
    table, _ = opened(data, options)
    assert shape_of(table.filters.readers[0].contents) is not None
    assert table.prefix_filter is not None
    last = table.index.end(table.num_blocks - 1)
    footer = Footer.decode(data[-FOOTER_SIZE:])
    damaged = bytearray(data)
    for at in range(last, footer.metaindex.offset + footer.metaindex.size + 5):
        damaged[at] ^= 1 << at % 8
        with pytest.raises(CorruptionError) as caught:
            Table(options, BytesFile(bytes(damaged)))
        assert caught.value.offset is not None
        assert last <= caught.value.offset <= at
        damaged[at] ^= 1 << at % 8


@pytest.mark.parametrize("handle", HUGE)
@pytest.mark.parametrize("policy", [None, BLOOM])
def test_handles_in_the_footer_beyond_the_file(
    handle: BlockHandle, policy: BloomFilterPolicy | None
) -> None:
    options = SMALL._replace(filter_policy=policy)
    data = build(FEW, options)
    footer = Footer.decode(data[-FOOTER_SIZE:])
    for wrong in (Footer(handle, footer.index), Footer(footer.metaindex, handle)):
        file = BytesFile(data[:-FOOTER_SIZE] + wrong.encode())
        with pytest.raises(CorruptionError, match="beyond"):
            Table(options, file)
        assert all(length < 1000 for _, length in file.reads)


@pytest.mark.parametrize(
    "value", [*(handle.encode() for handle in HUGE), BlockHandle(0, 200).encode(), *GARBAGE]
)
def test_index_entries_that_lead_nowhere(value: bytes) -> None:
    data = assemble([([(b"a", b"")], b"b")], index_rows=[(b"b", value)])
    with pytest.raises(CorruptionError) as caught:
        Table(SMALL, BytesFile(data))
    index = Footer.decode(data[-FOOTER_SIZE:]).index
    assert (caught.value.path, caught.value.offset) == ("db/000005.ldb", index.offset)


@pytest.mark.parametrize("prefix", [b"filter.", b"fullfilter."])
@pytest.mark.parametrize("value", [*(handle.encode() for handle in HUGE), *GARBAGE])
def test_metaindex_entries_that_lead_nowhere(prefix: bytes, value: bytes) -> None:
    meta = [(prefix + BLOOM.name.encode(), value)]
    data = assemble([([(b"a", b"")], b"b")], meta)
    with pytest.raises(CorruptionError):
        Table(SMALL._replace(filter_policy=BLOOM), BytesFile(data))
    Table(SMALL, BytesFile(data))  # nobody asked for filters


@pytest.mark.parametrize(
    "contents",
    [
        b"",
        b"\x0b",
        b"\xff\xff\xff\xff\x0b",
        b"\x05\0\0\0" + b"\0\0\0\0\x0b",
        b"\xff\xff\xff\xff" * 2 + b"\0\0\0\0\x0b",
    ],
)
def test_a_filter_block_that_is_none(contents: bytes) -> None:
    extra = seal_block(contents, NO_COMPRESSION)
    meta = [(b"filter." + BLOOM.name.encode(), BlockHandle(0, len(contents)).encode())]
    data = assemble([([(b"a", b"")], b"b")], meta, extra)
    with pytest.raises(CorruptionError) as caught:
        Table(SMALL._replace(filter_policy=BLOOM), BytesFile(data))
    assert (caught.value.path, caught.value.offset) == ("db/000005.ldb", 0)
