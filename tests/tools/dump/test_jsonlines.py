"""Records as JSON."""

from __future__ import annotations

import random
from pathlib import Path

from dumped import LOG, MANIFEST, TABLE, dump, objects

import lsmkv
from lsmkv.tools.text import unescape


def test_json_of_a_log(store: Path) -> None:
    assert objects(store / "000009.log") == [
        {"file": "000009.log", "record": "heading", "kind": "write-ahead log", "size": 67},
        {"file": "000009.log", "record": "batch"}
        | {"offset": 0, "end": 30, "sequence": 7, "operations": 1},
        {"file": "000009.log", "record": "operation", "offset": 0, "sequence": 7}
        | {"kind": "put", "key": "fig", "value": "green"},
        {"file": "000009.log", "record": "batch"}
        | {"offset": 30, "end": 67, "sequence": 8, "operations": 3},
        {"file": "000009.log", "record": "operation", "offset": 30, "sequence": 8}
        | {"kind": "put", "key": r"é\t", "value": r"\xff\\"},
        {"file": "000009.log", "record": "operation", "offset": 30, "sequence": 9}
        | {"kind": "del", "key": "old"},
        {"file": "000009.log", "record": "operation", "offset": 30, "sequence": 10}
        | {"kind": "del", "key": "old"},
    ]


def test_json_of_a_manifest(store: Path) -> None:
    assert objects(store / "MANIFEST-000002", "--hex")[2] == {
        "file": "MANIFEST-000002",
        "record": "edit",
        "offset": 39,
        "end": len(MANIFEST),
        "next_file_number": 8,
        "last_sequence": 300,
        "compact_pointers": [{"level": 1, "key": "6d", "sequence": 9, "kind": "val"}],
        "deleted_files": [
            {"level": level, "number": number} for level, number in ((0, 3), (0, 5), (1, 4))
        ],
        "new_files": [
            {
                "level": 2,
                "number": 7,
                "size": 1234,
                "smallest": {"key": "610a", "sequence": 1, "kind": "val"},
                "largest": {"key": "7a", "sequence": 300, "kind": "del"},
            }
        ],
    }


def test_json_of_a_table(store: Path) -> None:
    found = [one for one in objects(store / "000007.ldb") if one.pop("file") == "000007.ldb"]
    assert found == [
        {"record": "heading", "kind": "table", "size": len(TABLE)},
        {"record": "block", "kind": "data", "name": "", "offset": 0, "size": 60}
        | {"compression": "uncompressed", "plain_size": 60, "restarts": [0]},
        {"record": "entry", "block": 0, "offset": 0, "restart": True}
        | {"key": "apple", "sequence": 300, "kind": "del", "value": ""},
        {"record": "entry", "block": 0, "offset": 16, "restart": False}
        | {"key": "apple", "sequence": 1, "kind": "val", "value": "red"},
        {"record": "entry", "block": 0, "offset": 30, "restart": False}
        | {"key": "apricot", "sequence": 2, "kind": "val", "value": "orange"},
        {"record": "block", "kind": "filter", "name": "filter.leveldb.BuiltinBloomFilter2"}
        | {"offset": 65, "size": 18, "compression": "uncompressed"}
        | {"plain_size": 18, "restarts": None},
        {"record": "filter", "block": 65, "offset": 0, "number": 0, "first": 0, "last": 2047}
        | {"policy": "leveldb.BuiltinBloomFilter2", "bits": 64, "set": 12, "probes": 6}
        | {"bytes": TABLE[65:74].hex()},
        {"record": "block", "kind": "metaindex", "name": "", "offset": 88, "size": 47}
        | {"compression": "uncompressed", "plain_size": 47, "restarts": [0]},
        {"record": "handle", "block": 88, "offset": 0, "restart": True}
        | {"key": "filter.leveldb.BuiltinBloomFilter2", "handle": {"offset": 65, "size": 18}},
        {"record": "block", "kind": "index", "name": "", "offset": 140, "size": 22}
        | {"compression": "uncompressed", "plain_size": 22, "restarts": [0]},
        {"record": "handle", "block": 140, "offset": 0, "restart": True, "key": "b"}
        | {"sequence": (1 << 56) - 1, "kind": "val", "handle": {"offset": 0, "size": 60}},
        {"record": "footer", "offset": 167, "metaindex": {"offset": 88, "size": 47}}
        | {"index": {"offset": 140, "size": 22}},
    ]


def test_json_agrees_with_the_text(tmp_path: Path) -> None:
    rng = random.Random(1)
    with lsmkv.DB(tmp_path / "db", create_if_missing=True, block_size=300) as db:
        for n in range(400):
            key = rng.randbytes(3)
            db.put(key, rng.randbytes(20))
            if n % 3 == 0:
                db.delete(key)
            if n == 300:
                db.flush()
    for options in ([], ["--hex"], ["--keys-only"]):
        status, printed, _ = dump(tmp_path / "db", *options)
        assert status == 0
        rebuilt = []
        for one in objects(tmp_path / "db", *options):
            value = "" if "value" not in one else f" '{one['value']}'"
            if one["record"] == "operation":
                rebuilt.append(f"  {one['kind']} '{one['key']}'{value}")
            elif one["record"] == "entry":
                value = value and f" =>{value}"
                rebuilt.append(f"'{one['key']}' @ {one['sequence']} : {one['kind']}{value}")
        assert len(rebuilt) > 400
        assert [line for line in printed if line.startswith(("'", "  put", "  del"))] == rebuilt


def test_keys_and_values_in_json_can_be_unescaped(store: Path) -> None:
    plain = objects(store / "000009.log")
    for one, other in zip(plain, objects(store / "000009.log", "--hex"), strict=True):
        for name in ("key", "value"):
            if name in one:
                assert unescape(one[name].encode()) == bytes.fromhex(other[name])


def test_json_of_annotations(store: Path) -> None:
    for name, content in (
        ("000007.ldb", TABLE),
        ("000009.log", LOG),
        ("MANIFEST-000002", MANIFEST),
    ):
        heading, *pieces = objects(store / name, "--annotate")
        assert heading["size"] == len(content)
        assert b"".join(bytes.fromhex(one["bytes"]) for one in pieces) == content
        assert {one["record"] for one in pieces} == {"piece"}
        assert pieces[-1]["offset"] + pieces[-1]["size"] == len(content)
