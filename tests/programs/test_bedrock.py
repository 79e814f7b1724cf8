from __future__ import annotations

import pytest

from lsmkv.programs.bedrock import chunk_key, is_bedrock

PLACE = (1).to_bytes(4, "little") + (-2).to_bytes(4, "little", signed=True)


def test_chunks() -> None:
    assert chunk_key(PLACE + b"\x2d") == "chunk 1, -2: heights and biomes (2D)"
    assert chunk_key(PLACE + b"\x2f\xff") == "chunk 1, -2: blocks of subchunk -1"
    assert chunk_key(PLACE + b"\x02\x00\x00\x00\x36") == "chunk 1, -2 in the End: finalized state"
    assert chunk_key(PLACE + b"\x01\x00\x00\x00\x2f\x05") == (
        "chunk 1, -2 in the Nether: blocks of subchunk 5"
    )
    assert chunk_key(PLACE + b"\x07\x00\x00\x00\x36") is None
    assert chunk_key(PLACE + b"\xee") is None
    for key in (b"", b"Overworld", b"BiomeData", b"player_server", b"000000001"):
        assert chunk_key(key) is None


@pytest.mark.parametrize("key", [PLACE + b"\x2f", PLACE + b"\x2d\x01", PLACE + b"\x00" * 5])
def test_blocks_alone_have_a_number(key: bytes) -> None:
    assert chunk_key(key) is None


def test_the_form_of_a_key() -> None:
    for key in (PLACE + b"\x2c", b"~local_player", b"digp" + PLACE, b"actorprefix" + bytes(8)):
        assert is_bedrock(key)
    assert not is_bedrock(b"ant")
