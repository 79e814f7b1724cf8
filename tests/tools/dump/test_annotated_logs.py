"""Every byte of a log or a MANIFEST, with its meaning."""

from __future__ import annotations

from pathlib import Path

from dumped import LOG, batch_record, dump, encode_put, make_log, meanings, records

from lsmkv.engine.format.log import BLOCK_SIZE


def test_a_batch_across_two_blocks(tmp_path: Path) -> None:
    first = batch_record(1, 1, encode_put(b"a", bytes(BLOCK_SIZE - 54)))
    second = batch_record(2, 1, encode_put(b"a longer key", b"its value, longer still"))
    data = make_log([first, second])
    border = BLOCK_SIZE
    found = [one for one in meanings("1.log", data) if one[0] > 100]
    offset = len(make_log([first]))
    assert [(at, meaning) for at, _, meaning in found] == [
        (offset, "checksum of type and data"),
        (offset + 4, f"length {border - offset - 7}"),
        (offset + 6, "type 2: FIRST"),
        (offset + 7, "sequence 2"),
        (offset + 15, "operations: 1"),
        (offset + 19, "put, sequence 2"),
        (offset + 20, "key length 12"),
        (offset + 21, "key 'a longer key'"),
        (border, "checksum of type and data"),
        (border + 4, f"length {len(data) - border - 7}"),
        (border + 6, "type 4: LAST"),
        (border + 7, "key 'a longer key' (goes on)"),
        (len(data) - 24, "value length 23"),
        (len(data) - 23, "value 'its value, longer still'"),
    ]
    (tmp_path / "1.log").write_bytes(data)
    assert dump(tmp_path / "1.log")[1][2:] == [
        f"--- offset {offset}; sequence 2",
        "  put 'a longer key' 'its value, longer still'",
    ]


def test_the_end_of_a_block_without_room_for_a_header() -> None:
    first = batch_record(1, 1, encode_put(b"a", bytes(BLOCK_SIZE - 30)))
    data = make_log([first, LOG[7:30]])
    filler = (BLOCK_SIZE - 5, "00" * 5, "the block's end: no room for a header")
    assert filler in meanings("1.log", data)
    assert len(records("1.log", data)) == 4
