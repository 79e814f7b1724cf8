"""Batches: the operations of a record, and its fields."""

from __future__ import annotations

from itertools import pairwise

import lsmkv
from lsmkv.files import Batch


def test_a_batchs_fields_leave_no_byte_out() -> None:
    batch = lsmkv.WriteBatch()
    batch.put(b"key", b"value" * 50)
    batch.delete(b"")
    read = Batch(batch.encode(7))
    fields = list(read.fields())
    assert fields[0].start == 0
    assert all(one.end == two.start for one, two in pairwise(fields))
    assert fields[-1].end == len(read.payload)
    put, deletion = read.operations()
    assert [field.name for field in put.fields] == [
        *("kind", "key length", "key", "value length", "value"),
    ]
    assert read.payload[put.fields[4].start : put.fields[4].end] == b"value" * 50
    assert (deletion.key, deletion.value, deletion.sequence) == (b"", None, 8)
    assert [field.name for field in deletion.fields] == ["kind", "key length", "key"]
