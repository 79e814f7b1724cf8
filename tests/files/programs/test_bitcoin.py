from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.files.programs.bitcoin import OBFUSCATE_KEY, Bitcoin, is_block_index, is_coin

TRANSACTION = bytes(range(32))
SHOWN = TRANSACTION[::-1].hex()
OUTPUT = b"C" + TRANSACTION + b"\x00"
MASK = b"\x08\x01\x02\x03\x04\x05\x06\x07\xff"
HASH20 = "816115944e077fe7c803cfa57f29b36bf87c1d35"


def nothing(_start: bytes, _most: int) -> list[tuple[bytes, bytes]]:
    return []


def in_the_clear(_start: bytes, _most: int) -> list[tuple[bytes, bytes]]:
    return [(OBFUSCATE_KEY, b"\x08" + bytes(8))]


def masked(_start: bytes, _most: int) -> list[tuple[bytes, bytes]]:
    return [(OBFUSCATE_KEY, MASK)]


# The first two are those of Bitcoin Core's own tests, src/test/coins_tests.cpp.
COINS = [
    (
        "97f23c835800816115944e077fe7c803cfa57f29b36bf87c1d35",
        f"600.00000000 BTC, height 203998, to public key hash (P2PKH) {HASH20}",
    ),
    (
        "8ddf77bbd123008c988f1a4a4de2161e0f50aac7f17e7f9555caa4",
        "0.00110397 BTC, height 120891, mined, to public key hash (P2PKH)"
        " 8c988f1a4a4de2161e0f50aac7f17e7f9555caa4",
    ),
    ("000006", "0.00000000 BTC, height 0, to script (empty)"),
    ("000107516a", None),  # a script of one byte, and a byte that follows it
    ("0001076a", "0.00000001 BTC, height 0, to script 6a"),
    (f"013201{HASH20}", f"50.00000000 BTC, height 0, mined, to script hash (P2SH) {HASH20}"),
    (f"013203{HASH20}{'00' * 12}", f"50.00000000 BTC, height 0, mined, to public key (P2PK)"
     f" {HASH20}{'00' * 12}"),
    (f"01321c0014{HASH20}", "50.00000000 BTC, height 0, mined, to witness public key hash"
     f" (P2WPKH) {HASH20}"),
    (f"0132285120{'ab' * 32}", f"50.00000000 BTC, height 0, mined, to taproot (P2TR) {'ab' * 32}"),
]  # fmt: skip


@pytest.mark.parametrize(("stored", "text"), COINS)
def test_coins(stored: str, text: str | None) -> None:
    plain = bytes.fromhex(stored)
    assert Bitcoin(in_the_clear).value(OUTPUT, plain) == text
    assert Bitcoin(nothing).value(OUTPUT, plain) is None
    hidden = bytes(byte ^ MASK[1 + at % 8] for at, byte in enumerate(plain))
    assert Bitcoin(masked).value(OUTPUT, hidden) == text
    for end in range(len(plain) if text else 0):
        assert Bitcoin(in_the_clear).value(OUTPUT, plain[:end]) is None


def test_keys() -> None:
    decoder = Bitcoin(masked)
    assert decoder.key(OUTPUT) == f"output {SHOWN}:0"
    assert decoder.key(OUTPUT[:-1] + b"\x80\x00") == f"output {SHOWN}:128"
    assert decoder.key(b"B") == "the newest block"
    assert decoder.key(OBFUSCATE_KEY) == "the mask of all values"
    assert decoder.key(OUTPUT[:-1]) is decoder.key(b"other") is None
    assert decoder.value(OBFUSCATE_KEY, MASK) == "01020304050607ff"


def test_the_newest_block_is_masked_too() -> None:
    hidden = bytes(byte ^ MASK[1 + at % 8] for at, byte in enumerate(TRANSACTION))
    assert Bitcoin(masked).value(b"B", hidden) == SHOWN
    assert Bitcoin(in_the_clear).value(b"B", TRANSACTION) == SHOWN
    assert (
        Bitcoin(in_the_clear).value(b"B", b"short") is Bitcoin(nothing).value(b"B", hidden) is None
    )


@pytest.mark.parametrize("mask", [b"", b"\x00", b"\x08" + bytes(8), b"\x01\xff", MASK])
@given(key=st.binary(max_size=40), value=st.binary())
def test_any_bytes_have_texts_or_none(mask: bytes, key: bytes, value: bytes) -> None:
    decoder = Bitcoin(lambda _start, _most: [(OBFUSCATE_KEY, mask)])
    for one in (key, OUTPUT, b"B", b"C" + TRANSACTION + key):
        for text in (decoder.key(one), decoder.value(one, value)):
            assert text is None or isinstance(text, str)


@pytest.mark.parametrize("number", [b"\x00", b"\x7f", b"\x80\x00", b"\xff\xff\xff\xff\x7f"])
def test_the_key_of_a_coin_ends_in_a_number(number: bytes) -> None:
    assert is_coin(b"C" + bytes(32) + number)
    assert not is_coin(b"c" + bytes(32) + number)
    assert not is_coin(b"C" + bytes(32) + number + b"\x00")
    assert not is_coin(b"C" + bytes(32) + number[:-1])


def test_keys_of_the_block_index() -> None:
    assert is_block_index(b"b" + bytes(32))
    assert is_block_index(b"f" + bytes(4))
    assert not is_block_index(b"f" + bytes(5))
