"""Blocks: the spans of their entries, their trailers and their damage."""

from __future__ import annotations

import pytest
from made_files import Made, flipped, make_store

from lsmkv.errors import CorruptionError
from lsmkv.files import Block, Entry, Table


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


def test_a_damaged_block_says_what_it_stores(made: Made) -> None:
    place = Table(made.table()).places()[0]
    block = Table(flipped(made.table(), 0)).block(place)
    assert not block.trailer.is_good
    assert block.codec == "uncompressed"
    assert block.is_whole
    with pytest.raises(CorruptionError, match="block checksum mismatch"):
        _ = block.plain
    assert [part for part in block.walk() if isinstance(part, Entry)] == []


@pytest.mark.parametrize("kind", ["filter", "full filter", "meta"])
def test_blocks_without_entries_say_so(kind: str, made: Made) -> None:
    place = Table(made.table()).meta_blocks()[0]._replace(kind=kind)  # type: ignore[arg-type]
    block = Table(made.table()).block(place)
    assert isinstance(block, Block)
    with pytest.raises(ValueError, match=f"a {kind} block has no entries"):
        block.entries()
