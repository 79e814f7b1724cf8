from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.files.programs.bedrock import Bedrock, chunk_key, is_bedrock

PIG = b"\x0a\x00\x00\x08\x02\x00id\x03\x00pig\x00"
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
    far, near = b"\x00\x00\x00\x20", bytes(4)
    assert chunk_key(far + near + b"\x2c") is chunk_key(near + far + b"\x2c") is None
    for key in (b"", b"Overworld", b"BiomeData", b"player_server", b"000000001"):
        assert chunk_key(key) is None


@pytest.mark.parametrize("key", [PLACE + b"\x2f", PLACE + b"\x2d\x01", PLACE + b"\x00" * 5])
def test_blocks_alone_have_a_number(key: bytes) -> None:
    assert chunk_key(key) is None


@pytest.mark.parametrize(
    ("key", "value", "name", "text"),
    [
        (PLACE + b"\x2c", b"\x29", "chunk 1, -2: version", "41"),
        (PLACE + b"\x36", b"\x02\x00\x00\x00", "chunk 1, -2: finalized state", "2"),
        (
            PLACE + b"\x2d",
            b"\x40\x00" * 255 + b"\x46\x00" + b"\x01" * 3,
            "chunk 1, -2: heights and biomes (2D)",
            "heights 64 to 70, 3 bytes: 01 01 01",
        ),
        (
            PLACE + b"\x2b",
            b"\x04\x00" * 256 + b"\x03",
            "chunk 1, -2: heights and biomes (3D)",
            "heights -60 to -60, 1 byte: 03",
        ),
        (
            PLACE + b"\x02\x00\x00\x00\x2b",
            b"\x3d\x00" * 256,
            "chunk 1, -2 in the End: heights and biomes (3D)",
            "heights 61 to 61, 0 bytes",
        ),
        (
            PLACE + b"\x2f\xfc",
            b"\x09\x02\xfcabc",
            "chunk 1, -2: blocks of subchunk -4",
            "version 9, 2 layers, 6 bytes: 09 02 fc 61 62 63",
        ),
        (
            PLACE + b"\x2f\x00",
            b"\x01",
            "chunk 1, -2: blocks of subchunk 0",
            "version 1, 1 byte: 01",
        ),
        (PLACE + b"\x31", PIG * 2, "chunk 1, -2: block entities", '{id: "pig"}, {id: "pig"}'),
        (b"digp" + PLACE, bytes(7) + b"\x01", "chunk 1, -2: ids of its entities", f"{1:016x}"),
        (b"actorprefix" + bytes(7) + b"\x01", PIG, f"entity {1:016x}", '{id: "pig"}'),
        (b"~local_player", PIG, None, '{id: "pig"}'),
        (PLACE + b"\x3b", b"\x01", "chunk 1, -2: checksums", None),
        (b"digp" + b"\xff\xff\xff\x7f" * 2, b"1234567", None, None),
    ],
)
def test_records(key: bytes, value: bytes, name: str | None, text: str | None) -> None:
    decoder = Bedrock()
    assert decoder.key(key) == name
    assert decoder.value(key, value) == text


@given(st.binary(max_size=20), st.binary(), st.sampled_from([b"", PLACE, b"digp", b"actorprefix"]))
def test_any_bytes_have_texts_or_none(key: bytes, value: bytes, start: bytes) -> None:
    decoder = Bedrock()
    for text in (decoder.key(start + key), decoder.value(start + key, value)):
        assert text is None or isinstance(text, str)


def test_the_form_of_a_key() -> None:
    for key in (PLACE + b"\x2c", b"~local_player", b"digp" + PLACE, b"actorprefix" + bytes(8)):
        assert is_bedrock(key)
    assert not is_bedrock(b"ant")
