"""Every byte of a log or a MANIFEST, with its meaning."""

from __future__ import annotations

from pathlib import Path

from dumped import LOG, MANIFEST, batch_record, dump, encode_put, lines, make_log, meanings, records

from lsmkv.engine.format.log import BLOCK_SIZE


def test_a_log_byte_by_byte(store: Path) -> None:
    expected = r"""
 0  ba bf 3b 8c              checksum of type and data
 4  17 00                    length 23
 6  01                       type 1: FULL
 7  07 00 00 00 00 00 00 00  sequence 7
15  01 00 00 00              operations: 1
19  01                       put, sequence 7
20  03                       key length 3
21  66 69 67                 key 'fig'
24  05                       value length 5
25  67 72 65 65 6e           value 'green'
30  2a f8 fd 53              checksum of type and data
34  1e 00                    length 30
36  01                       type 1: FULL
37  08 00 00 00 00 00 00 00  sequence 8
45  03 00 00 00              operations: 3
49  01                       put, sequence 8
50  03                       key length 3
51  c3 a9 09                 key 'é\t'
54  02                       value length 2
55  ff 5c                    value '\xff\\'
57  00                       delete, sequence 9
58  03                       key length 3
59  6f 6c 64                 key 'old'
62  00                       delete, sequence 10
63  03                       key length 3
64  6f 6c 64                 key 'old'
"""
    assert dump(store / "000009.log", "--annotate") == (0, lines(expected), "")


def test_a_manifest_byte_by_byte() -> None:
    assert meanings("MANIFEST-1", MANIFEST)[3:12] == [
        (7, "01", "tag 1: comparator"),
        (8, "1a", "length 26"),
        (9, b"leveldb.BytewiseComparator".hex(), "name 'leveldb.BytewiseComparator'"),
        (35, "02", "tag 2: log number"),
        (36, "03", "3"),
        (37, "09", "tag 9: previous log number"),
        (38, "00", "0"),
        (
            39,
            "16dc262a",
            "checksum of type and data",
        ),
        (43, "3400", "length 52"),
    ]
    assert [meaning for _, _, meaning in meanings("MANIFEST-1", MANIFEST)[13:]] == [
        "tag 3: next file number",
        "8",
        "tag 4: last sequence",
        "300",
        "tag 5: compact pointer",
        "level 1",
        "key, length 9",
        "key 'm'",
        "tag: sequence 9, val",
        *[
            one
            for level, number in ((0, 3), (0, 5), (1, 4))
            for one in ("tag 6: deleted file", f"level {level}", f"number {number}")
        ],
        "tag 7: new file",
        "level 2",
        "number 7",
        "size 1234",
        "smallest key, length 10",
        r"smallest key 'a\n'",
        "tag: sequence 1, val",
        "largest key, length 9",
        "largest key 'z'",
        "tag: sequence 300, del",
    ]


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
