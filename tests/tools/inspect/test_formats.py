from __future__ import annotations

from collections.abc import Callable

import pytest

from lsmkv.tools.inspect.formats import Format, chunk_key, meaning, recognize, storage_text

BYTEWISE = "leveldb.BytewiseComparator"


def having(*keys: bytes) -> Callable[[bytes], bool]:
    return lambda start: any(key.startswith(start) for key in keys)


def known(*keys: bytes) -> Format:
    found = recognize(BYTEWISE, having(*keys))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ((b"META:https://a.org", b"_https://a.org\x00\x01k"), "Chromium's Local Storage"),
        ((b"namespace-1-https://a.org/",), "Chromium's Session Storage"),
        ((b"~local_player",), "a world of Minecraft's Bedrock edition"),
        ((b"\x0e\x00obfuscate_key",), "Bitcoin Core's chain state"),
        ((b"LastBlock",), "geth's chain data"),
    ],
)
def test_formats_are_recognized_by_their_keys(keys: tuple[bytes, ...], name: str) -> None:
    assert known(*keys).name == name


def test_other_stores_are_not_recognized() -> None:
    assert recognize(BYTEWISE, having(b"ant", b"META", b"VERSION", b"map-1")) is None
    assert recognize(None, having()) is None


def test_indexed_db_is_recognized_by_its_order() -> None:
    found = recognize("idb_cmp1", having())
    assert found is not None
    assert found.name == "Chromium's IndexedDB"
    assert (found.key(b"\x00"), found.value(b"\x00", b"\x00")) == (None, None)


def test_local_storage() -> None:
    storage = known(b"META:https://a.org")
    assert storage.key(b"_https://a.org\x00\x00" + "ключ".encode("utf-16-le")) == (
        "https://a.org: ключ"
    )
    assert storage.key(b"META:https://a.org") == "facts about https://a.org"
    assert storage.key(b"VERSION") == "the version of this format"
    assert storage.key(b"_no zero byte") is storage.key(b"other") is None
    assert storage.value(b"VERSION", b"1") == "1"
    assert storage.value(b"_a\x00\x01k", b"\x01x") == "x"
    assert storage.value(b"META:a", b"\x01x") is None
    assert storage_text(b"\x00odd") is None
    assert storage_text(b"") is None


def test_session_storage() -> None:
    storage = known(b"namespace-")
    assert storage.key(b"map-3-a-b") == "map 3: a-b"
    assert storage.key(b"map-3-") == "map 3"
    assert storage.key(b"version") is None
    assert storage.value(b"map-3-a", "é€".encode("utf-16-le")) == "é€"
    assert storage.value(b"namespace-", b"33") is None


def test_chunks() -> None:
    place = (1).to_bytes(4, "little") + (-2).to_bytes(4, "little", signed=True)
    assert chunk_key(place + b"\x2d") == "chunk 1, -2: heights and biomes (2D)"
    assert chunk_key(place + b"\x2f\xff") == "chunk 1, -2: blocks of subchunk -1"
    assert chunk_key(place + b"\x02\x00\x00\x00\x36") == "chunk 1, -2 in the End: finalized state"
    assert chunk_key(place + b"\x07\x00\x00\x00\x36") is None
    assert chunk_key(place + b"\xee") is None
    for key in (b"", b"Overworld", b"BiomeData", b"player_server"):
        assert chunk_key(key) is None


def test_a_meaning_is_one_printable_line() -> None:
    assert meaning(None) is None
    assert meaning("a\n\u202e") == "a\\n\\xe2\\x80\\xae"
    long = meaning("x" * 5000)
    assert long is not None
    assert len(long) == 301
