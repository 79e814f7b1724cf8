"""Tables, block by block: spans, filters, damage, memory."""

from __future__ import annotations

from itertools import pairwise

import pytest
from made_files import Made, make_store

import lsmkv
from lsmkv.errors import CorruptionError, ForeignFormatError, UnsupportedCompressionError
from lsmkv.files import Block, Damage, Entry, Filter, Table, TableEntry
from lsmkv.util.checksum import masked_crc32c


class Counted:
    """A file's content, which counts reads and their bytes."""

    path = "counted"

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)
        self.reads: list[int] = []
        self.closed = False

    def read(self, offset: int, length: int, /) -> bytes:
        self.reads.append(length)
        return self._data[offset : offset + length]

    def close(self) -> None:
        self.closed = True


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def damages(table: Table) -> list[Damage]:
    return [part for part in table.walk() if isinstance(part, Damage)]


def test_entries_are_those_that_were_put(made: Made) -> None:
    entries = list(Table(made.table()).entries())
    assert {one.user_key: one.value for one in entries if one.kind == 1} == {
        key: value.replace(b"/2", b"/1") for key, value in made.entries.items()
    }
    assert [one.user_key for one in entries if one.kind == 0] == [b"gone"]
    assert [one.user_key for one in entries] == sorted(one.user_key for one in entries)


@pytest.mark.parametrize("compression", [None, "snappy", "zstd"])
def test_fields_of_a_block_leave_no_byte_out(compression: str | None) -> None:
    table = Table(make_store(compression=compression).table())
    blocks = [table.block(place) for place in table.places()]
    for block in blocks:
        if block.place.kind == "filter":
            continue
        at = 0
        for entry in block.entries():
            for start, end in entry.spans:
                assert start == at
                at = end
            assert block.plain[entry.value_at : entry.end] == entry.value
            delta = block.plain[entry.key_at : entry.value_at]
            assert entry.key[entry.shared :] == delta
            assert (entry.shared == 0) >= entry.is_restart
        assert at == block.entries_end
        assert len(block.plain) == at + 4 * len(block.restart_points()) + 4
        assert block.trailer.is_good
    names = {block.codec for block in blocks if block.place.kind == "data"}
    assert names <= {compression or "uncompressed", "uncompressed"}


def test_blocks_and_footer_leave_no_byte_of_the_table_out(made: Made) -> None:
    table = Table(made.table())
    places = table.places()
    assert places[0].offset == 0
    assert all(one.end == next_one.offset for one, next_one in pairwise(places))
    assert places[-1].end == table.footer.offset == table.size - 48
    assert [field.end for field in table.footer.fields][-2:] == [40, 48]
    assert all(one.end == two.start for one, two in pairwise(table.footer.fields))


def test_the_index_names_the_last_keys_of_blocks(made: Made) -> None:
    table = Table(made.table())
    entries = table.index.entries()
    blocks = list(table.data_blocks())
    assert [entry.handle for entry in entries] == [block.place.handle for block in blocks]
    for entry, block in zip(entries, blocks, strict=True):
        last = block.entries()[-1].internal_key.user_key
        assert last <= entry.internal_key.user_key


@pytest.mark.parametrize(
    ("options", "kinds", "policy"),
    [
        ({}, {"block"}, "leveldb.BuiltinBloomFilter2"),
        ({"filter_layout": "both"}, {"block", "table"}, "leveldb.BuiltinBloomFilter2"),
        (
            {"filter_policy": lsmkv.Bloom64Policy(), "filter_layout": "table"},
            {"table"},
            lsmkv.Bloom64Policy().name,
        ),
        (
            {"filter_policy": lsmkv.BinaryFusePolicy(), "filter_layout": "table"},
            {"table"},
            lsmkv.BinaryFusePolicy().name,
        ),
        (
            {"prefix_extractor": lsmkv.DelimitedPrefix(b":")},
            {"block", "prefix"},
            "leveldb.BuiltinBloomFilter2",
        ),
        ({"bloom_filter_bits": 0}, set(), ""),
    ],
)
def test_filters_have_the_keys_of_their_blocks(
    options: dict[str, object], kinds: set[str], policy: str
) -> None:
    table = Table(make_store(400, 1, **options).table())
    filters = [one for one in table.filters() if isinstance(one, Filter)]
    assert {one.kind for one in filters} == kinds
    assert {one.policy_name for one in filters if one.kind != "prefix"} == ({policy} - {""})
    for block in table.data_blocks():
        mine = table.filters_for(block.place.offset)
        assert {one.kind for one in mine} == kinds - {"prefix"}
        for entry in block.entries():
            for one in mine:
                probe = one.probe(entry.internal_key.user_key)
                assert probe is not None
                assert probe.may_match
    absent = [b"absent:%d" % number for number in range(300)]
    for one in filters:
        assert one.expected_rate is not None
        if one.kind == "prefix":
            prefix = one.member(b"key:007")
            assert prefix == b"key:"
            assert one.member(b"none") is None
            assert one.probe(prefix).may_match  # type: ignore[union-attr]
            continue
        probes = [one.probe(key) for key in absent]
        passed = [probe for probe in probes if probe is not None and probe.may_match]
        assert len(passed) < len(absent) // 5
        if one.fuse is not None:
            assert one.bits is None
            assert one.fuse.slots == len(one.data) - 7
        else:
            assert one.bits == 8 * (len(one.data) - 1)
            assert one.estimated_keys


def test_a_custom_policys_filter_is_bytes() -> None:
    class Lengths:
        name = "lengths"

        def create_filter(self, keys: object, /) -> bytes:
            return b"made"

        def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
            return True

    table = Table(make_store(60, 1, filter_policy=Lengths(), filter_layout="table").table())
    (one,) = table.filters()
    assert isinstance(one, Filter)
    assert (one.policy, one.data, one.kind) == (b"lengths", b"made", "table")
    assert (one.bits, one.fuse, one.expected_rate, one.probe(b"key:001")) == (None,) * 4


def test_damage_of_a_block_is_that_blocks_alone(made: Made) -> None:
    data = made.table()
    sound = list(Table(data).entries())
    places = Table(data).places()
    for place in places:
        table = Table(flipped(data, place.offset + 1))
        assert place.kind == "index" or [
            one.place for one in table.data_blocks() if one.damage
        ] == ([place] if place.kind == "data" else [])
        found = [part for part in table.walk() if isinstance(part, TableEntry)]
        if place.kind == "data":
            assert found == [one for one in sound if one.block != place.offset]
        elif place.kind == "index":
            assert found == []
        else:
            assert found == sound
        if place.kind in ("data", "index"):
            assert damages(table) == [
                Damage("damage", place.offset, place.end - place.offset, "block checksum mismatch")
            ]
            with pytest.raises(CorruptionError) as raised:
                list(table.entries())
            assert (raised.value.offset, raised.value.path) == (place.offset, "<bytes>")
        else:
            assert [one.offset for one in table.filters() if isinstance(one, Damage)] == [
                place.offset
            ]
            with pytest.raises(CorruptionError):
                table.filters_for(0)


def test_a_damaged_block_says_what_it_stores(made: Made) -> None:
    place = Table(made.table()).places()[0]
    block = Table(flipped(made.table(), 0)).block(place)
    assert not block.trailer.is_good
    assert block.codec == "uncompressed"
    assert block.is_whole
    with pytest.raises(CorruptionError, match="block checksum mismatch"):
        _ = block.plain
    assert [part for part in block.walk() if isinstance(part, Entry)] == []


def test_an_unknown_codec_is_damage_of_its_own_kind(made: Made) -> None:
    data = bytearray(made.table())
    place = Table(bytes(data)).places()[0]
    data[place.end - 5] = 77
    crc = masked_crc32c(bytes(data[place.offset : place.end - 4]))
    data[place.end - 4 : place.end] = crc.to_bytes(4, "little")
    table = Table(bytes(data))
    assert damages(table)[0].kind == "codec"
    assert "type 77" in damages(table)[0].reason
    with pytest.raises(UnsupportedCompressionError):
        list(table.entries())
    with pytest.raises(UnsupportedCompressionError):
        table.block(place).entries()


def test_a_table_is_walked_block_by_block() -> None:
    counted = Counted(make_store(2000, 1, block_size=512).table())
    table = Table(counted)
    assert counted.reads == []
    entries = table.entries()
    next(entries)
    index = table.index.place
    assert counted.reads[:2] == [48, index.size + 5]
    assert len(counted.reads) == 3
    assert sum(1 for _ in entries) == 2000
    assert max(counted.reads) == index.size + 5
    assert sum(counted.reads) < counted.size + 48
    table.close()
    assert counted.closed


def test_rocksdbs_tables_are_refused(made: Made) -> None:
    data = made.table()[:-8] + bytes.fromhex("f7cff485b741e288")
    with pytest.raises(ForeignFormatError, match="<bytes> is a RocksDB table"):
        Table(data).places()


@pytest.mark.parametrize("kind", ["filter", "full filter", "meta"])
def test_blocks_without_entries_say_so(kind: str, made: Made) -> None:
    place = Table(made.table()).meta_blocks()[0]._replace(kind=kind)  # type: ignore[arg-type]
    block = Table(made.table()).block(place)
    assert isinstance(block, Block)
    with pytest.raises(ValueError, match=f"a {kind} block has no entries"):
        block.entries()
