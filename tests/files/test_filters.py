"""Filters: which a table has, and what they answer."""

from __future__ import annotations

import pytest
from made_files import make_store

import lsmkv
from lsmkv.files import Filter, Table


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
