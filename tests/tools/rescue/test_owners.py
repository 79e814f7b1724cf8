"""Whose a store is."""

from __future__ import annotations

from pathlib import Path

import pytest

import lsmkv
from lsmkv.tools.rescue.finding import Found
from lsmkv.tools.rescue.owners import UNKNOWN, owner_by_keys, owner_of

CASES = [
    (".config/chromium/Default/Local Storage/leveldb", "Chromium", "profile 'Default'"),
    (".config/google-chrome/Profile 2/Session Storage", "Chrome", "Session Storage"),
    (
        "AppData/Local/Microsoft/Edge/User Data/Default/IndexedDB/https_x.org_0.indexeddb.leveldb",
        "Edge",
        "IndexedDB of https://x.org",
    ),
    (".config/Slack/Local Storage/leveldb", "Slack", "an Electron app"),
    (".config/Code/Service Worker/Database", "Code", "Service Worker/Database"),
    ("u/Default/Local Extension Settings/abcdef", "the browser", "Local Extension Settings"),
    ("worlds/AbC=/db", "Minecraft", "Bedrock"),
    (".bitcoin/chainstate", "Bitcoin Core", "chain state"),
    (".bitcoin/blocks/index", "Bitcoin Core", "index of blocks"),
    (".ethereum/geth/chaindata", "go-ethereum", "chaindata"),
    ("backup/index", UNKNOWN.program, "unknown"),
    ("db", UNKNOWN.program, "unknown"),
]


def found(path: str, *names: str, siblings: tuple[str, ...] = ()) -> Found:
    parts = ("/", "home", "u", *path.split("/"))
    return Found(path, parts, None, names, siblings, None)


@pytest.mark.parametrize(("path", "program", "words"), CASES)
def test_by_names(path: str, program: str, words: str) -> None:
    siblings = ("db", "level.dat") if "worlds" in path else ("db",)
    owner = owner_of(found(path, "CURRENT", siblings=siblings))
    assert owner.program == program
    assert words in owner.words
    assert (owner.comparator == "idb_cmp1") == path.endswith(".indexeddb.leveldb")


def test_another_engine_a_shard_set_and_a_shared_store() -> None:
    other = found("x", "CURRENT")._replace(engine="RocksDB")
    assert owner_of(other).words == "a database of RocksDB, another engine"
    assert "shard set" in owner_of(found("x")._replace(is_shard_set=True)).words
    assert "shares" in owner_of(found("x", "CURRENT", "SHARED")).words


KEYS = [
    (b"META:https://a.org", "Chromium"),
    (b"namespace-0b5c6a5e_1d4f_4f0a_8a6b_1c2d3e4f5a6b-https://a.org/", "Chromium"),
    (b"~local_player", "Minecraft"),
    (b"\x0e\x00obfuscate_key", "Bitcoin Core"),
    (b"LastBlock", "geth"),
    (b"mine", None),
]


@pytest.mark.parametrize(("key", "program"), KEYS)
@pytest.mark.parametrize("order", [None, lsmkv.ReverseBytewiseComparator()])
def test_by_keys(
    tmp_path: Path, key: bytes, program: str | None, order: lsmkv.ReverseBytewiseComparator | None
) -> None:
    with lsmkv.DB(tmp_path / "s", create_if_missing=True, comparator=order) as db:
        db.put(key, b"value")
    owner = owner_by_keys(str(tmp_path / "s"))
    if program is None or order is not None:
        assert owner is None
    else:
        assert owner is not None
        assert owner.program == program
