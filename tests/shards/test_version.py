"""Version documents: their bytes, and that nothing but these bytes is taken for one."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lsmkv
from lsmkv.shards.version import (
    COMPARATOR,
    ShardEntry,
    StoredFile,
    VersionDocument,
    parse_version_name,
    utc_now,
    version_name,
)

URL = "s3://bucket/set/versions/00000017.json"


def stored(name: str, size: int = 10) -> StoredFile:
    return StoredFile(name, size, sha256(name.encode()).hexdigest())


def shard(at: int, first: bytes) -> ShardEntry:
    files = (stored("CURRENT"), stored("MANIFEST-000002"), stored("000003.ldb", 100))
    return ShardEntry(f"shards/b1/{at:04d}-1", first, 5 + at, stored("META"), files)


def document(*firsts: bytes, **other: Any) -> VersionDocument:
    shards = tuple(shard(at, first) for at, first in enumerate(firsts))
    created = "2026-11-26T11:20:00+00:00"
    whole = VersionDocument(17, "9f86d081", "b1", created, COMPARATOR, None, None, shards)
    return whole._replace(**other)


def sealed(text: str) -> bytes:
    """Text of a document, all but its end, with a seal that fits."""
    head = text.encode()
    return head + f',\n "sha256": "{sha256(head).hexdigest()}"\n}}\n'.encode()


def changed(path: list[Any], value: Any) -> bytes:
    """A document in which one field has another value, with a seal that fits."""
    fields = json.loads(document(b"", b"m").encode())
    del fields["sha256"]
    place: Any = fields
    for step in path[:-1]:
        place = place[step]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return sealed(json.dumps(fields, indent=1).removesuffix("\n}"))


def decode(data: bytes) -> VersionDocument:
    return VersionDocument.decode(data, URL)


# The bytes


def test_the_bytes_of_a_document() -> None:
    head = b"""{
 "format": 1,
 "number": 17,
 "nonce": "9f86d081",
 "build": "b1",
 "created": "2026-11-26T11:20:00+00:00",
 "comparator": "leveldb.BytewiseComparator",
 "filter_policy": "leveldb.BuiltinBloomFilter2",
 "prefix_extractor": null,
 "shards": [
  {
   "path": "shards/b1/0000-1",
   "first": "",
   "pairs": 3,
   "meta": {
    "name": "META",
    "size": 7,
    "sha256": "%s"
   },
   "files": []
  },
  {
   "path": "shards/b1/0001-2",
   "first_base64": "/w==",
   "pairs": 0,
   "meta": {
    "name": "META",
    "size": 8,
    "sha256": "%s"
   },
   "files": []
  }
 ]""" % (b"ab" * 32, b"cd" * 32)
    shards = (
        ShardEntry("shards/b1/0000-1", b"", 3, StoredFile("META", 7, "ab" * 32), ()),
        ShardEntry("shards/b1/0001-2", b"\xff", 0, StoredFile("META", 8, "cd" * 32), ()),
    )
    whole = document(shards=shards, filter_policy="leveldb.BuiltinBloomFilter2")
    assert whole.encode() == sealed(head.decode())
    assert decode(whole.encode()) == whole


names = st.text(st.characters(categories=["L", "N"], include_characters="-_."), min_size=1).filter(
    lambda name: name not in (".", "..")
)
numbers = st.integers(0, (1 << 63) - 1)
files = st.builds(
    StoredFile, names, numbers, st.binary(min_size=32, max_size=32).map(lambda digest: digest.hex())
)


@st.composite
def documents(draw: st.DrawFn) -> VersionDocument:
    bounds = sorted(draw(st.sets(st.binary(min_size=1, max_size=5), max_size=4)))
    shards = []
    for at, first in enumerate([b"", *bounds]):
        meta, *rest = draw(
            st.lists(files, min_size=1, max_size=4, unique_by=lambda file: file.name)
        )
        path = f"shards/{draw(names)}/{at}-{draw(names)}"
        shards.append(ShardEntry(path, first, draw(numbers), meta, tuple(rest)))
    optional = st.none() | names
    return VersionDocument(
        number=draw(st.integers(1, 10**18 - 1)),
        nonce=draw(st.binary(min_size=4, max_size=32)).hex(),
        build=draw(names),
        created=utc_now(),
        comparator=COMPARATOR,
        filter_policy=draw(optional),
        prefix_extractor=draw(optional),
        shards=tuple(shards) if draw(st.booleans()) else (),
    )


@given(documents())
def test_a_document_is_decoded_as_it_was_encoded(whole: VersionDocument) -> None:
    data = whole.encode()
    assert data.isascii()
    again = decode(data)
    assert again == whole
    assert again.encode() == data


def test_the_sums_of_a_document() -> None:
    whole = document(b"", b"g", b"m")
    assert whole.pairs == 5 + 6 + 7
    assert whole.bytes == 3 * (10 + 10 + 10 + 100)
    assert len(set(whole.objects())) == 12
    assert next(whole.objects()) == ("shards/b1/0000-1/META", stored("META"))


@pytest.mark.parametrize("firsts", [(), (b"",)])
def test_an_empty_set_is_a_version(firsts: tuple[bytes, ...]) -> None:
    whole = document(*firsts)
    whole = whole._replace(shards=tuple(one._replace(pairs=0) for one in whole.shards))
    assert decode(whole.encode()) == whole
    assert whole.pairs == 0


# Damage


def test_damage_of_any_byte_is_found() -> None:
    data = document(b"", b"m\xff").encode()
    for at in range(len(data)):
        for flip in (0x01, 0x20, 0x80):
            damaged = bytearray(data)
            damaged[at] ^= flip
            with pytest.raises(lsmkv.CorruptionError, match=r"00000017.json.*SHA-256"):
                decode(bytes(damaged))


def test_a_document_cut_anywhere_is_found() -> None:
    data = document(b"").encode()
    for length in range(len(data)):
        with pytest.raises(lsmkv.CorruptionError):
            decode(data[:length])
    with pytest.raises(lsmkv.CorruptionError):
        decode(data + b"\n")


def test_a_newer_format_is_named_as_such() -> None:
    with pytest.raises(lsmkv.CorruptionError, match="format is 2: it was written by a newer lsmkv"):
        decode(changed(["format"], 2))


def test_the_error_names_the_object() -> None:
    with pytest.raises(lsmkv.CorruptionError) as caught:
        decode(changed(["number"], "17"))
    assert caught.value.path == URL
    assert str(caught.value) == f"{URL}: not a version of a shard set: number is '17'"


SHARD = ["shards", 0]
FILE = ["shards", 1, "files", 2]


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (["number"], 0, "out of range"),
        (["number"], 10**18, "out of range"),
        (["number"], True, "number is True"),
        (["number"], 17.0, "number is 17.0"),
        (["nonce"], "xyzxyzxyz", "not a nonce"),
        (["nonce"], ..., "nonce is missing"),
        (["more"], 1, "unknown fields: 'more'"),
        (["format"], True, "format is True"),
        (["format"], 0, "there is no format 0"),
        (["build"], "a/b", "not a plain name"),
        (["build"], "", "not a plain name"),
        (["created"], "yesterday", "yesterday"),
        (["created"], "2026-11-26T11:20:00+02:00", "not in UTC"),
        (["created"], "2026-11-26T11:20:00", "not in UTC"),
        (["comparator"], "idb_cmp1", "in the order of 'leveldb.BytewiseComparator'"),
        (["comparator"], None, "comparator is None"),
        (["filter_policy"], 3, "filter_policy is 3"),
        (["filter_policy"], "", "not a name"),
        (["prefix_extractor"], "a\nb", "not a name"),
        (["shards"], {}, "shards is {}"),
        (SHARD, [], "not a JSON object"),
        ([*SHARD, "first"], "a", "does not begin at the empty key"),
        (["shards", 1, "first"], "", "bound of shard 1 is not above"),
        ([*SHARD, "first"], "\ud800", "surrogate"),
        ([*SHARD, "first"], ..., "the first is missing"),
        ([*SHARD, "path"], "/shards/a", "not the name of an object"),
        ([*SHARD, "path"], "shards/../a", "not the name of an object"),
        ([*SHARD, "path"], "shards/a\\b", "not a plain name"),
        ([*SHARD, "path"], "versions/a", "outside shards/"),
        ([*SHARD, "path"], "shards/b1/0001-1", "two shards have the same path"),
        ([*SHARD, "pairs"], -1, "-1 pairs"),
        ([*SHARD, "meta"], None, "meta is None"),
        ([*SHARD, "meta", "name"], "CURRENT", "two files of one name"),
        ([*FILE, "name"], "..", "not a plain name"),
        ([*FILE, "name"], "/etc/passwd", "not a plain name"),
        ([*FILE, "name"], "\ud800", "not a plain name"),
        ([*FILE, "size"], -1, "-1 bytes"),
        ([*FILE, "size"], 1 << 63, "bytes"),
        ([*FILE, "size"], 1.5, "size is 1.5"),
        ([*FILE, "sha256"], "AB" * 32, "not a SHA-256"),
        ([*FILE, "sha256"], "ab" * 32 + "\n", "not a SHA-256"),
        ([*FILE, "extra"], 1, "unknown fields"),
    ],
)
def test_a_document_that_cannot_be_is_refused(path: list[Any], value: Any, reason: str) -> None:
    with pytest.raises(lsmkv.CorruptionError, match=reason):
        decode(changed(path, value))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[list[Any]]:
    """The paths to all values in a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found = [list(path)] if path else []
    if isinstance(value, (dict, list)):
        for step, below in inner:
            found += places(below, (*path, step)) if isinstance(below, (dict, list)) else []
            found += [] if isinstance(below, (dict, list)) else [[*path, step]]
    return found


FIELDS = json.loads(document(b"", b"m").encode())
del FIELDS["sha256"]
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner)
)


@given(st.sampled_from(places(FIELDS)), anything)
def test_any_value_in_any_place_is_refused_or_taken(path: list[Any], value: Any) -> None:
    data = changed(path, value)
    try:
        whole = decode(data)
    except lsmkv.CorruptionError:
        return
    assert decode(whole.encode()) == whole


@pytest.mark.parametrize("text", ["[1", '{"format": 1', '{"format": 1, "format": 1', "[" * 10**5])
def test_other_json_with_a_seal_is_refused(text: str) -> None:
    with pytest.raises(lsmkv.CorruptionError):
        decode(sealed(text))


def test_what_cannot_be_is_not_written() -> None:
    with pytest.raises(ValueError, match="number 0 is out of range"):
        document(number=0).encode()
    with pytest.raises(ValueError, match="shards must be in the order"):
        document(comparator="mine").encode()


# Keys and names


def test_the_shard_of_a_key() -> None:
    whole = document(b"", b"g", b"m\x00", b"\xff")
    keys = [b"", b"a", b"fzzz", b"g", b"m", b"m\x00", b"z", b"\xff", b"\xff\xff"]
    assert [whole.shard_for(key) for key in keys] == [0, 0, 0, 1, 1, 2, 2, 3, 3]
    assert document(b"").shard_for(b"any") == 0
    assert document().shard_for(b"any") == -1


@pytest.mark.parametrize("number", [1, 17, 99_999_999, 100_000_000, 10**18 - 1])
def test_a_version_is_named_by_its_number(number: int) -> None:
    assert parse_version_name(version_name(number)) == number


@pytest.mark.parametrize(
    "name",
    [
        "versions/00000000.json",
        "versions/1.json",
        "versions/000000017.json",
        "versions/00000017.json\n",
        "versions/00000017.json.tmp",
        "versions/0000001\u0667.json",
        "versions/probe-00000017",
        "00000017.json",
        "more/versions/00000017.json",
        "versions/-0000017.json",
    ],
)
def test_other_names_are_no_versions(name: str) -> None:
    assert parse_version_name(name) is None
