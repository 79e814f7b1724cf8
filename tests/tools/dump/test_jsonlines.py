"""Records as JSON."""

from __future__ import annotations

import random
from pathlib import Path

from dumped import LOG, MANIFEST, TABLE, dump, objects

import lsmkv
from lsmkv.tools.text import unescape


def test_json_agrees_with_the_text(tmp_path: Path) -> None:
    rng = random.Random(1)
    with lsmkv.DB(tmp_path / "db", create_if_missing=True, block_size=300) as db:
        for n in range(400):
            key = rng.randbytes(3)
            db.put(key, rng.randbytes(n % 20))  # some are empty
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
