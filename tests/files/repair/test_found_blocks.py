"""lsmkv.repair.find_blocks: the data blocks of a table without its footer or index."""

from __future__ import annotations

from pathlib import Path

import pytest
from dumped import make_table

from lsmkv.engine.format.keys import pack
from lsmkv.errors import UnsupportedCompressionError
from lsmkv.files import Block, Table
from lsmkv.repair import Hole, find_blocks

ENTRIES = [(pack(b"%05d" % n, n + 1, 1), b"%d" % n * 9) for n in range(300)]
TABLE = make_table(ENTRIES, block_size=500)


def places(data: bytes) -> list[tuple[int, int]]:
    return [(one.place.offset, one.place.size) for one in find_blocks(data) if is_block(one)]


def is_block(piece: Block | Hole) -> bool:
    return isinstance(piece, Block)


def test_a_sound_table_has_its_blocks_and_no_hole() -> None:
    with Table(TABLE) as table:
        blocks = list(table.data_blocks())
    found = list(find_blocks(TABLE))
    assert [one.place for one in found if isinstance(one, Block)] == [one.place for one in blocks]
    assert len(found) == len(blocks) > 5


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9, 0.99])
def test_a_table_that_was_cut_has_every_block_before_the_cut(kept: float) -> None:
    whole = places(TABLE)
    cut = int(kept * len(TABLE))
    assert places(TABLE[:cut]) == [one for one in whole if sum(one) + 5 <= cut]


def test_a_damaged_block_is_a_hole_between_the_others() -> None:
    whole = places(TABLE)
    broken = bytearray(TABLE[:-48])  # without the footer, too
    broken[whole[3][0] + 20] ^= 1
    found = list(find_blocks(bytes(broken)))
    assert places(bytes(broken)) == [*whole[:3], *whole[4:]]
    (hole,) = [one for one in found if isinstance(one, Hole) and one.size > 0]
    assert (hole.offset, hole.size) == (whole[3][0], whole[3][1] + 5)


def test_a_block_of_an_unknown_codec_is_raised() -> None:
    path = Path(__file__).parents[2] / "data" / "hand-unknown-codec" / "000005.ldb"
    with pytest.raises(UnsupportedCompressionError, match="type 9"):
        list(find_blocks(path))
