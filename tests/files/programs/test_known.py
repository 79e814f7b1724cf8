from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lsmkv
from lsmkv.programs import LANDMARKS, PROGRAMS, guess, program_named

BYTEWISE = "leveldb.BytewiseComparator"
DATA = Path(__file__).parents[2] / "data"
LOCAL = "Chromium's Local Storage"
SESSION = "Chromium's Session Storage"
INDEXED = "Chromium's IndexedDB"
WORLD = "a world of Minecraft's Bedrock edition"
COINS = "Bitcoin Core's chain state"
BLOCKS = "Bitcoin Core's block index"


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ([b"META:https://a.org"], LOCAL),
        ([b"ant", b"_https://a.org\x00\x01k"], LOCAL),
        ([b"_app://notes\x00\x01k", b"META:app://notes"], LOCAL),
        ([b"namespace-dabc53e1_8291_4de5_824f_dab8aa69c846-https://a.org/", b"a", b"b"], SESSION),
        ([b"map-1-a", b"map-22-b"], SESSION),
        ([b"~local_player"], WORLD),
        ([bytes(8) + b"\x2c", bytes(8) + b"\x2f\x01", b"digp" + bytes(8)], WORLD),
        ([b"\x0e\x00obfuscate_key"], COINS),
        ([b"C" + bytes(32) + b"\x80\x01", b"C" + bytes(33)], COINS),
        ([b"b" + bytes(32), b"f" + bytes(4)], BLOCKS),
        ([b"LastBlock"], "geth's chain data"),
    ],
)
def test_programs_are_known_by_their_keys(keys: list[bytes], name: str) -> None:
    assert guess(keys) == guess(keys, BYTEWISE) == guess(keys, BYTEWISE, "db") == name
    assert guess(keys, "leveldb.ReverseBytewiseComparator", "chainstate") == ""


@pytest.mark.parametrize(
    "keys",
    [
        [],
        [b""],
        [b"ant", b"META", b"VERSION", b"map-1"],
        [
            b"namespace-1",
            b"META:http",
            b"_https://",
            b"Overworld-1",
            b"~local_players",
            b"LastBlocks",
        ],
        [b"%09d" % number for number in range(100)],
        [number.to_bytes(8, "big") for number in range(100)],
        [number.to_bytes(9, "big") for number in range(100)],
        [b"user:%d" % number for number in range(100)],
        [b"C" + bytes(32), b"C" + bytes(31) + b"\x80", b"C" + bytes(32) + b"\x80\x00\x00"],
    ],
)
def test_other_stores_are_not_known(keys: list[bytes]) -> None:
    assert guess(keys) == guess(keys, BYTEWISE) == ""


def test_a_tenth_of_the_keys_may_have_another_form() -> None:
    chunks = [bytes(8) + bytes([tag]) for tag in (43, 44, 45, 49, 50, 51, 53, 54, 56)]
    assert guess([*chunks, b"other"]) == WORLD
    assert guess([*chunks, b"other", b"one more"]) == ""


def test_indexed_db_is_known_by_its_order_and_without_it_by_its_keys() -> None:
    with lsmkv.DB(DATA / "indexeddb-chromium", read_only=True) as db:
        keys = [key for key, _ in db]
    assert guess([], "idb_cmp1") == guess([b"ant"], "idb_cmp1") == INDEXED
    assert guess(sorted(keys)) == INDEXED
    assert guess(sorted(keys), BYTEWISE) == ""


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/home/a/.config/chromium/Default/Local Storage/leveldb", LOCAL),
        ("Local Storage/leveldb/", LOCAL),
        (r"C:\Users\a\AppData\Roaming\App\Local Storage\leveldb", LOCAL),
        ("Default/Session Storage", SESSION),
        ("IndexedDB/https_a.org_0.indexeddb.leveldb", INDEXED),
        (r"C:\com.mojang\minecraftWorlds\xyz=\db", WORLD),
        ("minecraftWorlds/db", ""),
        ("db", ""),
        ("~/.bitcoin/chainstate", COINS),
        ("chainstate", COINS),
        (".bitcoin/blocks/index", BLOCKS),
        ("leveldb", ""),
        ("", ""),
    ],
)
def test_a_path_decides_where_keys_do_not(path: str, name: str) -> None:
    assert guess([], None, path) == guess([b"ant"], None, path) == name
    assert guess([b"~local_player"], None, path) == WORLD


def test_programs_are_found_by_their_names() -> None:
    for program in PROGRAMS:
        assert program_named(program.name) is program
        assert set(program.landmarks) <= set(LANDMARKS)
    assert program_named("") is None


@given(st.lists(st.binary(max_size=80)), st.sampled_from([None, BYTEWISE]), st.text())
def test_any_bytes_can_be_guessed(keys: list[bytes], comparator: str | None, path: str) -> None:
    found = guess(keys, comparator, path)
    assert found == "" or program_named(found) is not None
