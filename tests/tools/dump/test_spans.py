"""Spans: what the bytes of a record or a block mean."""

from __future__ import annotations

from dumped import (
    TABLE,
    batch_record,
    covers,
    encode_put,
    faults,
    make_log,
    make_table,
    meanings,
    records,
)

from lsmkv.engine.format.keys import pack
from lsmkv.engine.util.checksum import masked_crc32c
from lsmkv.files import Filter


def test_versions_that_share_a_part_of_their_tags() -> None:
    data = make_table([(pack(b"k", 0x207, 1), b""), (pack(b"k", 7, 1), b"")], bits=0)
    found = [meaning for _, _, meaning in meanings("1.ldb", data)]
    assert "tag of key 'k' (shares 3): sequence 7, val, its last 6 bytes" in found


def test_a_long_value_is_repeated_in_part_only() -> None:
    data = make_log([batch_record(1, 1, encode_put(b"k", b"v" * 5000))])
    assert meanings("1.log", data)[-1][2] == f"value '{'v' * 64}'... of 5,000 bytes"


def test_a_filter_block_that_begins_with_other_bytes() -> None:
    block = bytearray(TABLE[65:83])
    block[9] = 2
    body = bytes(block) + b"\0"
    data = TABLE[:65] + body + masked_crc32c(body).to_bytes(4, "little") + TABLE[88:]
    (filters,) = [one for one in records("1.ldb", data) if isinstance(one, Filter)]
    assert (filters.offset, filters.data) == (2, TABLE[67:74])
    assert (65, "4005", "bytes before the first filter") in meanings("1.ldb", data)
    covers("1.ldb", data)
    assert faults("1.ldb", data) == []
