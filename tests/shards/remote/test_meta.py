"""The ranges that opening a directory reads, in one object, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.engine.util.checksum import masked_crc32c
from lsmkv.engine.util.coding import encode_fixed32
from lsmkv.errors import CorruptionError
from lsmkv.shards.remote.meta import FilePieces, Piece, decode_meta, encode_meta

HEADER = b"lsmkvMT\x01"
FILES = [
    FilePieces("000005.ldb", 300, [Piece(0, b"first"), Piece(200, b"t" * 100)]),
    FilePieces("CURRENT", 16, [Piece(0, b"MANIFEST-000002\n")]),
    FilePieces("LOG", 1 << 40, []),
]


def sealed(body: bytes) -> bytes:
    return body + encode_fixed32(masked_crc32c(body))


@st.composite
def files(draw: st.DrawFn) -> list[FilePieces]:
    names = draw(st.sets(st.sampled_from(["a", "b.ldb", "CURRENT", "été", "z" * 200])))
    found = []
    for name in sorted(names):
        at = 0
        pieces = []
        for _ in range(draw(st.integers(0, 3))):
            at += draw(st.integers(0, 1 << 20))
            data = draw(st.binary(min_size=1, max_size=200))
            pieces.append(Piece(at, data))
            at += len(data)
        found.append(FilePieces(name, at + draw(st.integers(0, 1 << 40)), pieces))
    return found


def test_no_files() -> None:
    assert encode_meta([]) == sealed(HEADER + b"\0")
    assert decode_meta(encode_meta([])) == []


def test_the_exact_bytes() -> None:
    file = FilePieces("000005.ldb", 300, [Piece(0, b"first"), Piece(298, b"\xff\0")])
    body = HEADER + bytes.fromhex(
        "02"
        "0a" + b"000005.ldb".hex() + "ac02" "02" "00" "05" + b"first".hex() + "aa02" "02" "ff00"
        "01" "62" "00" "00"
    )  # fmt: skip
    assert encode_meta([FilePieces("b", 0, []), file]) == body + bytes.fromhex("3f4738ba")
    assert sealed(body) == encode_meta([file, FilePieces("b", 0, [])])


@given(files=files())
def test_round_trip(files: list[FilePieces]) -> None:
    assert decode_meta(encode_meta(list(reversed(files)))) == sorted(files)


def test_a_cut_at_every_byte_is_corruption() -> None:
    data = encode_meta(FILES)
    for length in range(len(data)):
        with pytest.raises(CorruptionError) as caught:
            decode_meta(data[:length])
        assert caught.value.offset is not None
        assert 0 <= caught.value.offset <= length


def test_a_change_of_any_byte_is_corruption() -> None:
    data = encode_meta(FILES)
    for at in range(len(data)):
        for bit in (1, 128):
            damaged = data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]
            with pytest.raises(CorruptionError):
                decode_meta(damaged)


def test_a_body_cut_at_every_byte_and_sealed_again_is_corruption() -> None:
    body = encode_meta(FILES)[:-4]
    for length in range(8, len(body)):
        with pytest.raises(CorruptionError) as caught:
            decode_meta(sealed(body[:length]))
        assert caught.value.offset is not None
        assert 8 <= caught.value.offset <= length


@pytest.mark.parametrize(
    ("rest", "reason", "offset"),
    [
        ("00 00", "bytes after the last file", 9),
        ("01 01 2f 05 00", "not a plain file name", 9),
        ("01 02 2e2e 05 00", "not a plain file name", 9),
        ("01 01 ff 05 00", "not UTF-8", 9),
        ("02 01 61 05 00 01 61 05 00", "the name is taken", 13),
        ("02 01 62 05 00 01 61 05 00", "names out of order", 13),
        ("01 01 61 05 01 04 02 0000", "beyond the file's 5 bytes", 9),
        ("01 01 61 05 01 02 00", "an empty piece at 2", 9),
        ("01 01 61 05 02 01 02 0000 02 01 00", "a piece at 2, before the end", 9),
    ],
)
def test_what_no_writer_writes_is_corruption(rest: str, reason: str, offset: int) -> None:
    with pytest.raises(CorruptionError, match=reason) as caught:
        decode_meta(sealed(HEADER + bytes.fromhex(rest)))
    assert caught.value.offset == offset


def test_another_magic_number_and_another_version() -> None:
    with pytest.raises(CorruptionError, match="not a META"):
        decode_meta(sealed(b"lsmkvXX\x01\0"))
    with pytest.raises(CorruptionError, match="version 2; this lsmkv reads version 1") as caught:
        decode_meta(sealed(b"lsmkvMT\x02\0"))
    assert caught.value.offset == 7


@pytest.mark.parametrize(
    "files",
    [
        [FilePieces("a/b", 1, [])],
        [FilePieces("a", 1, []), FilePieces("a", 1, [])],
        [FilePieces("a", -1, [])],
        [FilePieces("a", 1 << 64, [])],
        [FilePieces("a", 1, [Piece(-1, b"x")])],
        [FilePieces("a", 1, [Piece(0, b"xy")])],
        [FilePieces("a", 9, [Piece(2, b"xy"), Piece(0, b"x")])],
        [FilePieces("a", 9, [Piece(0, b"")])],
    ],
)
def test_what_cannot_be_encoded(files: list[FilePieces]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the message is the file's
        encode_meta(files)
