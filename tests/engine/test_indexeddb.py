"""Chromium's order of keys, what the keys mean, and databases that Chromium wrote.

How ``tests/data`` was made stands in ``tests/data/README-browser.md``.
"""

from __future__ import annotations

import functools
import json
import math
import random
import shutil
import struct
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from chromium_data import fingerprint, indexeddb, local_storage, open_indexeddb, reported
from hypothesis import given
from hypothesis import strategies as st

import lsmkv
from lsmkv.engine.util.coding import encode_varint
from lsmkv.indexeddb import Date, IndexedDBComparator, decode_key

ORDER = IndexedDBComparator()
DATA = Path(__file__).parents[1] / "data"


# Keys, made by hand


def prefix(database: int, store: int, index: int) -> bytes:
    ids = [
        number.to_bytes(max(1, (number.bit_length() + 7) // 8), "little")
        for number in (database, store, index)
    ]
    sizes = [len(part) - 1 for part in ids]
    return bytes([sizes[0] << 5 | sizes[1] << 2 | sizes[2]]) + b"".join(ids)


def text(value: str) -> bytes:
    encoded = value.encode("utf-16-be", "surrogatepass")
    return encode_varint(len(encoded) // 2) + encoded


def idb(value: Any) -> bytes:
    """An IDB key; ``...`` and None are the lowest and the highest."""
    if value is ...:
        return b"\x05"
    if value is None:
        return b"\x00"
    if isinstance(value, Date):
        return b"\x02" + struct.pack("<d", value.milliseconds)
    if isinstance(value, (int, float)):
        return b"\x03" + struct.pack("<d", value)
    if isinstance(value, str):
        return b"\x01" + text(value)
    if isinstance(value, bytes):
        return b"\x06" + encode_varint(len(value)) + value
    return b"\x04" + encode_varint(len(value)) + b"".join(map(idb, value))


def record(value: Any, database: int = 1, store: int = 1) -> bytes:
    return prefix(database, store, 1) + idb(value)


def entry(value: Any, primary: Any, number: int = 0, index: int = 30) -> bytes:
    return prefix(1, 1, index) + idb(value) + encode_varint(number) + idb(primary)


def meta(database: int, kind: int, *fields: int | str) -> bytes:
    """Metadata; its last byte, where there is one, is below 128 and so a varint as well."""
    encoded = [encode_varint(f) if isinstance(f, int) else text(f) for f in fields]
    return prefix(database, 0, 0) + bytes([kind]) + b"".join(encoded)


# As the specification of IndexedDB orders them: https://w3c.github.io/IndexedDB/#compare-two-keys
VALUES: list[Any] = [
    ...,
    *(-math.inf, -1e300, -256.0, -1.0, -5e-324, 0.0, 5e-324, 0.5, 1.0, 2.0, 255.0, 256.0, math.inf),
    *(Date(-8.64e15), Date(-1.0), Date(0.0), Date(1.0), Date(8.64e15)),
    *("", "\0", "\0\0", "\0a", "a", "a\0", "a\0b", "a\1", "aa", "b", "é", "Ā", "я"),
    *("\ud83d", "🔑", "\udd11", "\uffff"),  # by UTF-16 units, not by code points
    *(b"", b"\0", b"\0\0", b"\0\xff", b"\1", b"a", b"\xff", b"\xff\0"),
    *([], [-1.0], [1.0], [1.0, 1.0], [1.0, "a"], [1.0, []], [2.0], [Date(0.0)], ["a"]),
    *(["a", 0.0], ["aa"], [b""], [[]], [[], 1.0], [[1.0]], [[1.0], 0.0], [[1.0, 0.0]], [[[]]]),
    None,
]
PREFIXES = [
    *(prefix(0, 0, 0), meta(0, 0), meta(0, 6), meta(0, 50, 0, 9), meta(0, 50, 1)),
    *(meta(0, 100, 1), meta(0, 100, 127), meta(0, 100, 128), meta(0, 100, 1 << 60)),
    *(
        meta(0, 201, "", ""),
        meta(0, 201, "a", "b"),
        meta(0, 201, "a", "ba"),
        meta(0, 201, "aa", ""),
    ),
    *(prefix(1, 0, 0), meta(1, 0), meta(1, 5), meta(1, 50, 1, 0), meta(1, 50, 1, 7)),
    *(meta(1, 50, 300, 0), meta(1, 100, 1, 30, 0), meta(1, 100, 1, 30, 3), meta(1, 100, 1, 31, 0)),
    *(meta(1, 100, 2, 30, 0), meta(1, 150, 9), meta(1, 150, 10), meta(1, 151, 1, 5)),
    *(meta(1, 151, 1, 300), meta(1, 200, ""), meta(1, 200, "b"), meta(1, 200, "ba")),
    *(meta(1, 201, 1, "b"), meta(1, 201, 2, "a")),
    *(prefix(1, 1, 1), record(1.0), record([None]), prefix(1, 1, 2), prefix(1, 1, 2) + idb(1)),
    *(prefix(1, 1, 3), prefix(1, 1, 3) + idb(...), prefix(1, 1, 4)),
    *(prefix(1, 1, 30), prefix(1, 1, 30) + idb("a"), entry("a", 1), entry("a", 2), entry("a", "")),
    *(entry("b", 0), entry("a", 1, index=31), entry("a", 1, index=1 << 24)),
    *(record("a", 1, 2), record(1.0, 1, 255), record(1.0, 1, 256), record(1.0, 1, 1 << 55)),
    *(record(None, 1, 1 << 62), meta(2, 0), record(0, 2, 1), meta(255, 0), meta(256, 0)),
    *(record(1, (1 << 63) - 1, 1), b"", b"\0", b"\0\0", b"\xff"),
]


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


def assert_in_order(keys: list[bytes]) -> None:
    for (i, a), (j, b) in product(enumerate(keys), repeat=2):
        assert ORDER.compare(a, b) == sign(i - j), (a, b)
    shuffled = random.Random(1).sample(keys, len(keys))
    assert sorted(shuffled, key=ORDER.sort_key) == keys


def test_values_sort_as_the_specification_says() -> None:
    assert_in_order([record(value) for value in VALUES])


def test_values_sort_alike_in_an_index_and_inside_arrays() -> None:
    assert_in_order([entry(value, 1) for value in VALUES])
    assert_in_order([entry("a", value) for value in VALUES])
    assert_in_order([record(["a", value]) for value in VALUES])
    assert_in_order([record([[value], 1]) for value in VALUES])


def test_prefixes_and_metadata() -> None:
    assert_in_order(PREFIXES)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (record(0.0), record(-0.0)),
        (record([0.0, Date(0.0)]), record([-0.0, Date(-0.0)])),
        (record("a"), prefix(1, 1, 1) + b"\x01\x81\x00\x00a"),
        (record(1.0), b"\x20\x01\x00" + record(1.0)[2:]),
        (record(1.0), record(1.0) + b"more"),
        (meta(0, 6), meta(0, 6) + b"more"),
        (meta(1, 5), meta(1, 5) + b"more"),
        (meta(1, 200, "a"), meta(1, 200, "a") + b"\0"),
        (prefix(1, 1, 30) + idb(1), prefix(1, 1, 30) + idb(1) + b"\7"),
        (entry("a", 1, 7), entry("a", 1.0, 7) + b"\0"),
    ],
)
def test_different_bytes_may_be_equal(a: bytes, b: bytes) -> None:
    assert a != b
    assert ORDER.compare(a, b) == ORDER.compare(b, a) == 0
    assert ORDER.sort_key(a) == ORDER.sort_key(b)


def test_the_obsolete_number_of_an_entry_counts_last() -> None:
    assert_in_order(
        [entry("a", 1, 0), entry("a", 1, 5), entry("a", 1, 300), entry("a", 2, 0), entry("b", 1, 0)]
    )


# Against the rules of Chromium, one pair at a time

scalars = st.one_of(
    st.floats(allow_nan=False),
    st.sampled_from([0.0, -0.0, 1.0]),
    st.floats(allow_nan=False).map(Date),
    st.text(st.characters(), max_size=4),
    st.text("\0\1a\ud83d\uffff", max_size=3),
    st.binary(max_size=4),
    st.sampled_from([None, ...]),
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3), max_leaves=6)
ids = st.sampled_from([1, 2, 255, 256, (1 << 40) + 1])
well_formed = st.one_of(
    st.builds(
        lambda d, s, i, v: prefix(d, s, i) + idb(v), ids, ids, st.sampled_from([1, 2, 3]), values
    ),
    st.builds(record, values),
    st.builds(entry, values, values, st.sampled_from([0, 1, 200]), st.sampled_from([30, 31, 300])),
    st.builds(lambda v: prefix(1, 1, 30) + idb(v), values),
    st.sampled_from(PREFIXES[:-4]),
)
hostile = st.one_of(
    st.binary(max_size=24),
    st.builds(lambda key, n: key[:n], well_formed, st.integers(0, 30)),
    st.builds(
        lambda key, n, byte: key[: n % len(key)] + bytes([byte]) + key[n % len(key) + 1 :],
        well_formed,
        st.integers(0, 100),
        st.integers(0, 255),
    ),
    well_formed,
)


class Slice:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, size: int) -> bytes:
        assert size <= len(self.data)
        taken, self.data = self.data[:size], self.data[size:]
        return taken

    def varint(self) -> int:
        value = shift = 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value


def by_chromiums_rules(a: bytes, b: bytes) -> int:
    """Two well-formed keys side by side, field by field: what differs first, decides."""
    x, y = Slice(a), Slice(b)
    heads = []
    for part in (x, y):
        (sizes,) = part.take(1)
        heads.append(
            [
                int.from_bytes(part.take(1 + size), "little")
                for size in (sizes >> 5, sizes >> 2 & 7, sizes & 3)
            ]
        )
    if heads[0] != heads[1]:
        return -1 if heads[0] < heads[1] else 1
    database, store, index = heads[0]
    if not x.data or not y.data:
        return len(x.data) - len(y.data)
    if database and store:
        found = compare_idb(x, y)
        if found or index < 30:
            return found
        numbers = [part.varint() if part.data else -1 for part in (x, y)]
        if not x.data or not y.data:
            return len(x.data) - len(y.data)
        return compare_idb(x, y) or numbers[0] - numbers[1]
    kinds = x.take(1)[0], y.take(1)[0]
    if kinds[0] != kinds[1]:
        return kinds[0] - kinds[1]
    fields = {100: "v", 201: "ss"} if not database else {}
    if database:
        fields = {50: "vv", 100: "vvv", 150: "v", 151: "vv", 200: "s", 201: "vs"}
    elif kinds[0] == 50:
        return -1 if x.data < y.data else int(x.data > y.data)
    for field in fields.get(kinds[0], ""):
        found = x.varint() - y.varint() if field == "v" else compare_sized(x, y, 2)
        if found:
            return found
    return 0


def compare_sized(x: Slice, y: Slice, unit: int) -> int:
    sizes = x.varint(), y.varint()
    a, b = x.take(unit * sizes[0]), y.take(unit * sizes[1])
    return -1 if a < b else int(a > b)


def compare_idb(x: Slice, y: Slice) -> int:
    kinds = x.take(1)[0], y.take(1)[0]
    ranks = [(5, 3, 2, 1, 6, 4, 0).index(kind) for kind in kinds]
    if ranks[0] != ranks[1]:
        return ranks[0] - ranks[1]
    if kinds[0] in (2, 3):
        a, b = struct.unpack("<d", x.take(8))[0], struct.unpack("<d", y.take(8))[0]
        return -1 if a < b else int(a > b)
    if kinds[0] in (1, 6):
        return compare_sized(x, y, 2 if kinds[0] == 1 else 1)
    if kinds[0] == 4:
        counts = x.varint(), y.varint()
        for _ in range(min(counts)):
            if found := compare_idb(x, y):
                return found
        return counts[0] - counts[1]
    return 0


@given(well_formed, well_formed)
def test_well_formed_keys_compare_as_in_chromium(a: bytes, b: bytes) -> None:
    assert sign(ORDER.compare(a, b)) == sign(by_chromiums_rules(a, b))


def test_compare_agrees_with_chromiums_rules_on_every_pair() -> None:
    keys = PREFIXES[:-4] + [record(value) for value in VALUES] + [entry(v, v) for v in VALUES]
    for a, b in product(keys, repeat=2):
        assert sign(ORDER.compare(a, b)) == sign(by_chromiums_rules(a, b)), (a, b)


# Any bytes


@given(st.lists(hostile, min_size=3, max_size=8))
def test_any_keys_are_totally_ordered(keys: list[bytes]) -> None:
    for a, b in product(keys, repeat=2):
        compared = ORDER.compare(a, b)
        assert ORDER.compare(b, a) == -compared
        assert compared == sign(
            (ORDER.sort_key(a) > ORDER.sort_key(b)) - (ORDER.sort_key(a) < ORDER.sort_key(b))
        )
    by_comparing = sorted(keys, key=functools.cmp_to_key(ORDER.compare))
    assert by_comparing == sorted(keys, key=ORDER.sort_key)
    for a, b, c in product(keys, repeat=3):
        if ORDER.compare(a, b) <= 0 and ORDER.compare(b, c) <= 0:
            assert ORDER.compare(a, c) <= 0


@given(hostile, hostile)
def test_keys_for_an_index_lie_between(a: bytes, b: bytes) -> None:
    assert ORDER.compare(a, ORDER.find_short_successor(a)) <= 0
    if ORDER.compare(a, b) < 0:
        between = ORDER.find_shortest_separator(a, b)
        assert ORDER.compare(a, between) <= 0
        assert ORDER.compare(between, b) < 0


@pytest.mark.parametrize(
    "malformed",
    [
        record(math.nan),
        record("abc")[:-1],
        record(b"abc")[:-1],
        record(1.0)[:-1],
        prefix(1, 1, 1) + b"\x07",
        prefix(1, 1, 1) + b"\xff",
        prefix(1, 1, 1) + b"\x01" + b"\xff" * 9 + b"\x01",
        prefix(1, 1, 1) + b"\x01" + b"\xff" * 11,
        prefix(1, 1, 1) + b"\x06" + b"\xff" * 8 + b"\x7f",
    ],
)
def test_a_malformed_key_follows_all_that_are_well_formed(malformed: bytes) -> None:
    for value in VALUES:
        assert ORDER.compare(record(value), malformed) < 0
    assert ORDER.compare(malformed, prefix(1, 1, 2)) < 0


def test_the_well_formed_part_of_a_malformed_key_counts() -> None:
    start = prefix(1, 1, 1) + b"\x04\x02"
    assert_in_order(
        [
            record([1.0, None]),
            start + idb(1.0) + b"\x08",
            start + idb(1.0) + b"\x09",
            record([2.0, 1.0]),
            start + idb(2.0),
            start + b"\x08",
            record(None),
        ]
    )
    assert_in_order([entry("a", None), entry("a", 1)[:-1], entry("b", ...)])


def test_arrays_deeper_than_the_stack() -> None:
    deep = prefix(1, 1, 1) + b"\x04\x01" * 20_000
    assert_in_order([deep + idb(1.0), deep + idb("a"), deep + idb([]), deep])
    wide = prefix(1, 1, 1) + b"\x04" + encode_varint((1 << 63) - 1)
    assert_in_order([wide + idb(1.0) * 1000, wide + idb(1.0) * 1001 + idb(2.0)][::-1])
    assert decode_key(deep + idb(1.0)).values == ()
    assert decode_key(wide + idb(1.0)).rest == wide[4:] + idb(1.0)


# The engine


def test_a_store_in_this_order(tmp_path: Path) -> None:
    keys = [record(value) for value in VALUES] + [entry(value, 1) for value in VALUES]
    keys += PREFIXES
    options: dict[str, Any] = {"comparator": IndexedDBComparator(), "write_buffer_size": 4096}
    rng = random.Random(5)
    model: dict[bytes, tuple[bytes, bytes]] = {}
    db = lsmkv.DB(tmp_path / "db", create_if_missing=True, block_size=256, **options)
    for n in range(2000):
        key = rng.choice(keys)
        if rng.random() < 0.3:
            db.delete(key)
            model.pop(ORDER.sort_key(key), None)
        else:
            db.put(key, b"%d" % n * 9)
            model[ORDER.sort_key(key)] = key, b"%d" % n * 9
        if n % 500 == 499:
            db.check()
            db.close()
            db = lsmkv.DB(tmp_path / "db", block_size=256, **options)
    with db:
        for _ in range(2):
            assert list(db) == [model[order] for order in sorted(model)]
            assert list(db.iterator(reverse=True)) == list(db)[::-1]
            for key in keys:
                assert db.get(key) == model.get(ORDER.sort_key(key), (key, None))[1]
            db.compact_range()
            db.check()
        assert db.stats().filters_asked == 0


def test_equal_keys_are_one_key_in_a_store(tmp_path: Path) -> None:
    with lsmkv.DB(tmp_path / "db", create_if_missing=True, comparator=ORDER) as db:
        db.put(record(0.0), b"zero")
        db.flush()
        assert db.get(record(-0.0)) == b"zero"
        db.put(record(-0.0), b"minus zero")
        assert [value for _, value in db] == [b"minus zero"]
        db.compact_range()
        assert db.get(record(0.0)) == b"minus zero"
        assert len(list(db)) == 1


def test_a_range_of_one_object_store() -> None:
    with lsmkv.DB(":memory:", create_if_missing=True, comparator=ORDER) as db:
        for key in PREFIXES:
            db.put(key, b"")
        found = list(db.iterator(start=prefix(1, 1, 1), stop=prefix(1, 1, 2), include_value=False))
        assert found == [prefix(1, 1, 1), record(1.0), record([None])]


# Decoding


@pytest.mark.parametrize("value", [value for value in VALUES if value is not None and value != ...])
def test_values_come_back(value: Any) -> None:
    found = decode_key(record(value, 300, 70000))
    assert (found.database, found.object_store, found.index) == (300, 70000, 1)
    assert (found.what, found.values, found.rest) == ("record", (value,), b"")
    assert type(found.values[0]) is type(value)
    found = decode_key(entry([value], value, index=31))
    assert (found.index, found.what, found.values) == (31, "entry", ([value], value))


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        (meta(0, 0), "all databases: schema version"),
        (meta(0, 201, "http_x_0", "a"), "all databases: id of database 'http_x_0' 'a'"),
        (meta(2, 4), "database 2: version"),
        (meta(2, 50, 3, 1), "database 2: object store 3 'key path'"),
        (meta(2, 50, 3, 99), "database 2: object store 3 99"),
        (meta(2, 100, 3, 30, 3), "database 2: index 3 30 'multi-entry'"),
        (prefix(2, 3, 2) + idb("a"), "database 2, object store 3: exists 'a'"),
        (prefix(2, 3, 3) + idb("a"), "database 2, object store 3: blobs 'a'"),
        (prefix(2, 3, 1), "database 2, object store 3: lower bound"),
        (
            entry("a", Date(1.5)),
            "database 1, object store 1, index 30: entry 'a'"
            " Date('1970-01-01T00:00:00.001500+00:00')",
        ),
        (record(Date(8.64e15)), "database 1, object store 1: record Date(8640000000000000.0)"),
        (record("a")[:-1], "database 1, object store 1: record and the bytes b'\\x01\\x01\\x00'"),
        (record("a") + b"!", "database 1, object store 1: record 'a' and the bytes b'!'"),
        (record(...), "database 1, object store 1: record and the bytes b'\\x05'"),
        (prefix(1, 1, 9) + b"x", "database 1, object store 1: unknown and the bytes b'x'"),
        (
            prefix(1, 1, 30) + idb(1) + b"\2",
            "database 1, object store 1, index 30: entry 1.0 and the bytes b'\\x02'",
        ),
        (b"", "all databases: unreadable"),
        (b"\xff", "all databases: unreadable and the bytes b'\\xff'"),
    ],
)
def test_keys_in_words(key: bytes, shown: str) -> None:
    assert str(decode_key(key)) == shown


def test_a_number_out_of_range_is_malformed() -> None:
    largest = meta(0, 100, (1 << 63) - 1)
    assert decode_key(largest).values == ((1 << 63) - 1,)
    assert decode_key(meta(0, 100, 1 << 63)).rest == encode_varint(1 << 63)
    assert decode_key(record(1, 1 << 63)).what == "unreadable"


@given(hostile)
def test_decoding_raises_nothing(key: bytes) -> None:
    found = decode_key(key)
    assert key.endswith(found.rest)
    assert str(found).isprintable()


# What Chromium wrote


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    """What the page saw."""
    text = (DATA / "chromium-seen.json").read_text(encoding="ascii")
    found: dict[str, Any] = json.loads(text)
    assert set(found) == {"origin", "local", "databases"}
    return found


def test_chromiums_indexeddb(seen: dict[str, Any]) -> None:
    directory = DATA / "indexeddb-chromium"
    before = fingerprint(directory)
    with open_indexeddb(directory) as db:
        found = indexeddb(db)
        assert found == reported(seen["databases"])
        entries = list(db)
        assert entries == list(db.iterator(reverse=True))[::-1]
        assert [db.get(key) for key, _ in entries] == [value for _, value in entries]
        assert all(ORDER.compare(a, b) < 0 for (a, _), (b, _) in pairwise(entries))
        assert db.verify() == []
        db.check()
        assert sum(level.files for level in db.stats().levels) == 1
    assert fingerprint(directory) == before
    assert len(entries) > 900
    assert {len(store["keys"]) for store in found["library"].values()} == {43, 140, 0}
    kinds = {type(key) for key in found["library"]["anything"]["keys"]}
    assert kinds == {float, Date, str, bytes, list}


def test_the_order_is_found_by_its_name_for_writing_too(tmp_path: Path) -> None:
    path = tmp_path / "db"
    shutil.copytree(DATA / "indexeddb-chromium", path)
    with open_indexeddb(path) as db:
        before = list(db)
    late, early = record("zz"), record(-1.0)
    with lsmkv.DB(path, bloom_filter_bits=None) as db:
        assert db.options.comparator.name == "idb_cmp1"
        assert db.options.filter_policy is None  # unequal bytes may be equal keys
        assert list(db) == before
        db.put(late, b"late")
        db.put(early, b"early")
        db.flush()
        db.compact_range()
        written = list(db)
        db.check()
    assert len(written) == len(before) + 2
    assert not (path / "LOG.old").exists()  # it was opened once
    assert "failed" not in (path / "LOG").read_text()
    with open_indexeddb(path) as db:
        assert list(db) == written
        assert all(ORDER.compare(a, b) < 0 for (a, _), (b, _) in pairwise(written))
        db.refresh()
        assert list(db) == written
    with lsmkv.DB(path, bloom_filter_bits=10, write_buffer_size=4096) as db:
        assert db.options.filter_policy is not None  # as it was asked for
        assert db.options.write_buffer_size == 4096


def test_the_order_is_found_by_its_name_for_a_repair(tmp_path: Path) -> None:
    path = tmp_path / "db"
    shutil.copytree(DATA / "indexeddb-chromium", path)
    with open_indexeddb(path) as db:
        before = list(db)
    assert not lsmkv.plan_repair(path).needed
    (path / "CURRENT").unlink()
    assert lsmkv.repair_db(path).needed
    with open_indexeddb(path) as db:
        assert db.options.comparator.name == "idb_cmp1"
        assert list(db) == before


def test_the_order_is_found_by_the_keys_without_a_manifest(tmp_path: Path) -> None:
    path = tmp_path / "db"
    shutil.copytree(DATA / "indexeddb-chromium", path)
    with lsmkv.DB(path) as db:
        before = list(db)
        db.compact_range()
    next(path.glob("MANIFEST-*")).unlink()
    lsmkv.repair_db(path, into=tmp_path / "new")
    with open_indexeddb(tmp_path / "new") as db:
        assert db.options.comparator.name == "idb_cmp1"
        assert list(db) == before


def test_the_order_is_found_by_the_directorys_name_if_no_key_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "http_localhost_0.indexeddb.leveldb"
    with lsmkv.DB(path, create_if_missing=True, comparator=IndexedDBComparator()) as db:
        db.put(b"\0\0\0\0\0", b"1")
    next(path.glob("MANIFEST-*")).unlink()
    lsmkv.repair_db(path, into=tmp_path / "new")
    with open_indexeddb(tmp_path / "new") as db:
        assert db.options.comparator.name == "idb_cmp1"


def test_an_order_that_was_asked_for_is_not_replaced() -> None:
    for read in (lsmkv.plan_repair, functools.partial(lsmkv.DB, read_only=True)):
        with pytest.raises(lsmkv.ComparatorMismatchError) as caught:
            read(DATA / "indexeddb-chromium", comparator=lsmkv.BytewiseComparator())
        assert (caught.value.stored, caught.value.given) == (
            "idb_cmp1",
            "leveldb.BytewiseComparator",
        )


def test_chromiums_local_storage(seen: dict[str, Any]) -> None:
    directory = DATA / "localstorage-chromium"
    before = fingerprint(directory)
    with lsmkv.DB(directory, read_only=True) as db:
        found = local_storage(db, seen["origin"])
        assert found == seen["local"]
        assert b"VERSION" in db
        assert db.verify() == []
    assert fingerprint(directory) == before
    assert found["ключ 🔑"] == "значение"
    assert found["latin é"] == "café"
    assert found[""] == ""
    assert len(found) > 100
    assert "item 5" not in found
    assert found["item 3"] == "again"
