"""Every byte of a table, with its meaning."""

from __future__ import annotations

from pathlib import Path

import pytest
from dumped import (
    GOOD,
    ONE_RESTART,
    covers,
    dump,
    faults,
    forged,
    make_table,
    records,
)

from lsmkv.engine.format.keys import pack
from lsmkv.engine.table.format import Footer
from lsmkv.files import Block
from lsmkv.tools.dump.records import Piece


@pytest.mark.parametrize("compression", [1, 2])
def test_a_compressed_block_is_shown_stored_and_plain(compression: int, tmp_path: Path) -> None:
    entries = [(pack(b"key%03d" % n, n, 1), b"value") for n in range(50)]
    data = make_table(entries, bits=0, compression=compression)
    plain = make_table(entries, bits=0)
    heading, content = (records("1.ldb", one)[0] for one in (data, plain))
    assert isinstance(heading, Block)
    assert isinstance(content, Block)
    codec = ("snappy", "zstd")[compression - 1]
    assert (heading.codec, heading.plain) == (codec, content.plain)
    pieces = [one for one in records("1.ldb", data, annotate=True) if isinstance(one, Piece)]
    assert pieces[0].offset == 0
    assert pieces[0].data == data[: heading.place.size]
    assert codec in pieces[0].meaning
    decoded = [one for one in pieces if one.block == 0]
    assert b"".join(one.data for one in decoded) == heading.plain
    (tmp_path / "1.ldb").write_bytes(data)
    row = dump(tmp_path / "1.ldb", "--annotate", "--limit", "2")[1][-1]
    assert row.endswith("  00                       shared 0")
    assert row.startswith("    ")


def test_overlapping_blocks_are_a_fault_and_not_repeated() -> None:
    data = forged(GOOD + ONE_RESTART)
    footer = Footer.decode(data[-48:])
    twice = Footer(footer.index, footer.index).encode()
    covers("1.ldb", data[:-48] + twice, same_faults=False)
    reasons = [one.reason for one in faults("1.ldb", data[:-48] + twice, annotate=True)]
    assert "a metaindex block inside another one" in reasons
