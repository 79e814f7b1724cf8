"""Tables, block by block: index, damage, memory."""

from __future__ import annotations

from itertools import pairwise

import pytest
from byte_files import BytesFile
from made_files import Made, flipped, make_store

from lsmkv.engine.util.checksum import masked_crc32c
from lsmkv.errors import CorruptionError, ForeignFormatError, UnsupportedCompressionError
from lsmkv.files import Damage, Table, TableEntry


def damages(table: Table) -> list[Damage]:
    return [part for part in table.walk() if isinstance(part, Damage)]


def test_entries_are_those_that_were_put(made: Made) -> None:
    entries = list(Table(made.table()).entries())
    assert {one.user_key: one.value for one in entries if one.kind == 1} == {
        key: value.replace(b"/2", b"/1") for key, value in made.entries.items()
    }
    assert [one.user_key for one in entries if one.kind == 0] == [b"gone"]
    assert [one.user_key for one in entries] == sorted(one.user_key for one in entries)


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
    counted = BytesFile(make_store(2000, 1, block_size=512).table())
    table = Table(counted)
    assert counted.reads == []
    entries = table.entries()
    next(entries)
    index = table.index.place
    assert [length for _, length in counted.reads][:2] == [48, index.size + 5]
    assert len(counted.reads) == 3
    assert sum(1 for _ in entries) == 2000
    lengths = [length for _, length in counted.reads]
    assert max(lengths) == index.size + 5
    assert sum(lengths) < counted.size + 48
    table.close()
    assert counted.closed


def test_rocksdbs_tables_are_refused(made: Made) -> None:
    data = made.table()[:-8] + bytes.fromhex("f7cff485b741e288")
    with pytest.raises(ForeignFormatError, match="<bytes> is a RocksDB table"):
        Table(data).places()
