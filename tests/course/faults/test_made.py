"""Tables of blocks that somebody else wrote."""

from __future__ import annotations

from lsmkv.course.faults.made import offsets_of, table_with
from lsmkv.course.labs.block import built
from lsmkv.files import Table, make_key


def test_the_engines_reader_reads_them() -> None:
    blocks = [built([(make_key(key, 1), b"v")], 16) for key in (b"ant", b"bee")]
    with Table(table_with(blocks)) as table:
        assert [entry.user_key for entry in table.entries()] == [b"ant", b"bee"]
        assert [entry.block for entry in table.entries()] == offsets_of(blocks)[:-1]


def test_an_unreadable_block_is_in_the_index() -> None:
    with Table(table_with([b"", built([(make_key(b"bee", 1), b"v")], 16)])) as table:
        assert len(list(table.walk())) == 2
