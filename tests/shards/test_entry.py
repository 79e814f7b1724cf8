"""lsmkv.shards.entry: a shard as a version names it, in JSON and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lsmkv.shards.entry import ShardEntry, StoredFile, check_shard, decode_shard, shard_fields

META = StoredFile("META", 10, "0" * 64)
CURRENT = StoredFile("CURRENT", 16, "f" * 64)


def entry(**other: Any) -> ShardEntry:
    return ShardEntry("shards/b/0000-1", b"m", 5, META, (CURRENT,))._replace(**other)


@pytest.mark.parametrize("first", [b"", b"m", b"\xff\x00"])
def test_an_entry_is_decoded_as_it_was_encoded(first: bytes) -> None:
    shard = entry(first=first)
    check_shard("a shard", shard)
    assert decode_shard(json.loads(json.dumps(shard_fields(shard)))) == shard


def test_its_objects_are_in_its_directory() -> None:
    assert dict(entry().objects()) == {
        "shards/b/0000-1/META": META,
        "shards/b/0000-1/CURRENT": CURRENT,
    }


@pytest.mark.parametrize(
    ("shard", "reason"),
    [
        (entry(path="versions/1"), "outside shards/"),
        (entry(path="shards/a/../b"), "not the name of an object"),
        (entry(pairs=-1), "has -1 pairs"),
        (entry(meta=META._replace(size=-1)), "has -1 bytes"),
        (entry(meta=META._replace(sha256="F" * 64)), "not a SHA-256"),
        (entry(meta=META._replace(sha256="0" * 65)), "not a SHA-256"),
        (entry(files=(META,)), "two files of one name"),
        (entry(files=(CURRENT._replace(name="a/b"),)), "not a plain name"),
    ],
)
def test_an_entry_that_cannot_be_is_refused(shard: ShardEntry, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_shard("it", shard)


def test_missing_unknown_and_mistyped_fields_are_named() -> None:
    for change, reason in (
        ({"more": 1}, "unknown fields: 'more'"),
        ({"pairs": True}, "pairs is True"),
        ({"path": None}, "path is None"),
    ):
        with pytest.raises(ValueError, match=reason):
            decode_shard(shard_fields(entry()) | change)
    fields = shard_fields(entry())
    del fields["meta"]
    with pytest.raises(ValueError, match="meta is missing"):
        decode_shard(fields)
