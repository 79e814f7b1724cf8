"""docs/other-programs.md: what it shows is what the commands print."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from commands import lsm_bytes as lsm

import lsmkv
from lsmkv.programs import PROGRAMS, guess

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "other-programs.md").read_text(encoding="utf-8")
CHUNK = struct.pack("<ii", 1, -2)
MASK = b"\x01\x02\x03\x04\x05\x06\x07\xff"
TRANSACTION = bytes(range(32))


def masked(data: bytes) -> bytes:
    return bytes(byte ^ MASK[at % 8] for at, byte in enumerate(data))


def nbt(kind: int, name: bytes, payload: bytes) -> bytes:
    return bytes([kind]) + struct.pack("<H", len(name)) + name + payload


STORES: dict[str, dict[bytes, bytes]] = {
    "chromium": {
        b"VERSION": b"1",
        b"META:https://example.org": bytes.fromhex("08 e7cab5bdfcffef17 10 ec5d"),
        b"_https://example.org\x00\x01color": b"\x01blue",
        b"_https://example.org\x00\x01name": b"\x00" + "Ольга".encode("utf-16-le"),
    },
    "bedrock": {
        CHUNK + b"\x2c": b"\x29",
        CHUNK + b"\x2f\xfc": b"\x09\x02\xfcabc",
        CHUNK + b"\x01\x00\x00\x00\x31": nbt(
            10, b"", nbt(8, b"id", b"\x05\x00Chest") + nbt(9, b"Items", bytes(5)) + b"\x00"
        ),
        b"~local_player": nbt(
            10, b"", nbt(9, b"Pos", b"\x05" + struct.pack("<ifff", 3, 1.5, 64, -30.25)) + b"\x00"
        ),
    },
    "bitcoin": {
        b"\x0e\x00obfuscate_key": b"\x08" + MASK,
        b"B": masked(TRANSACTION),
        b"C" + TRANSACTION + b"\x00": masked(
            bytes.fromhex("97f23c835800816115944e077fe7c803cfa57f29b36bf87c1d35")
        ),
    },
}


@pytest.mark.parametrize("family", STORES)
def test_the_page_shows_what_scan_prints(tmp_path: Path, family: str) -> None:
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db:
        for key, value in STORES[family].items():
            db.put(key, value)
    done = lsm("scan", tmp_path / "db", "--as", family)
    assert done.out.decode().count("\n") == len(STORES[family])
    assert f"```\n{done.out.decode()}```\n" in PAGE


def test_the_page_shows_lines_of_a_database_that_chromium_wrote() -> None:
    store = ROOT / "tests" / "data" / "indexeddb-chromium"
    printed = lsm("scan", store, "--as", "chromium").out.decode().splitlines()
    shown = re.findall(r"^library / .*$", PAGE, re.MULTILINE)
    assert len(shown) == 5
    assert set(shown) <= set(printed)


def test_every_directory_that_the_page_names_is_recognized_by_its_path() -> None:
    places = [f"x/{place}" for place in re.findall(r"`([^`]*(?:[/\\]db|chainstate))`", PAGE)]
    places += ["Local Storage/leveldb", "Session Storage"]
    places += re.findall(r"`(IndexedDB/[^` ]+)`", PAGE)
    assert len(places) >= 9
    for place in places:
        assert guess([], None, place), place
    families = {program.family for program in PROGRAMS} - {""}
    assert all(f"--as {family}" in PAGE.replace("\n", " ") for family in families)
