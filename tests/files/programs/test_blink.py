from __future__ import annotations

import struct

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.engine.util.coding import encode_varint
from lsmkv.files.programs.blink import value_text

HEAD = bytes.fromhex("ff15fe000000000000000000000000ff10")
OF_A_BROWSER = "<a browser object>"

# Chromium 150 stored these values, from the expression that the comment has.
STORED = [
    ("5f", "undefined"),
    ("30", "null"),
    ("54", "true"),
    ("46", "false"),
    ("4900", "0"),
    ("4909", "-5"),
    ("4e0000e0ffffffef41", "4294967295"),
    ("4e9a9999999999b93f", "0.1"),
    ("4e000000000000f87f", "NaN"),
    ("4e000000000000f0ff", "-Infinity"),
    ("4e50efe2d6e41a4b44", "1e+21"),
    ("5a20d20a3f4eeee073c3f60fe98e01000000", "123456789012345678901234567890n"),
    ("5a110700000000000000", "-7n"),
    ("2205706c61696e", '"plain"'),
    ("2200", '""'),
    ("0063103a043b044e040103470420003dd811dd", '"клю\u0301ч 🔑"'),
    ("0063043dd82100", '"\ufffd!"'),  # half of a surrogate pair
    ("22076122620a09635c", r'"a\"b\n\tc\\"'),
    # {3: "num", a: 1, "b c": [true, null]}
    (
        "6f490622036e756d22016149022203622063410254302400027b03",
        '{3: "num", a: 1, "b c": [true, null]}',
    ),
    ("6f7b00", "{}"),
    ("4104490222016141002400006f7b00240004", '[1, "a", [], {}]'),
    ("61034900490249044906400203", "[0: 1, 2: 3]"),  # [1, , 3]
    ("61e907490a22017849d00f2201794002e907", '[5: "x", 1000: "y"]'),
    ("41024902490422056578747261220165240102", '[1, 2, extra: "e"]'),
    ("3b22016b490249046f22017849027b013a04", 'Map {"k" => 1, 2 => {x: 1}}'),
    ("2749022201622c02", 'Set {1, "b"}'),
    ("44000000e876487742", "Date('2020-09-13T12:26:40+00:00')"),
    ("44000000000000f87f", "Date(invalid)"),
    ("522205615c2f622b03", r"/a\/b+/gi"),
    ("726d2201787322034572722201792e", None),  # unknown parts end the text
    ("72546d22096261642074686e67737322044572723a2e", 'TypeError("bad thngs")'),
    ("726d2201787322034572726322017a2e", 'Error("x")'),  # new Error("x", {cause: "z"})
    ("6e0000000000001440", "5"),  # new Number(5)
    ("73220173", '"s"'),
    ("78", "false"),
    ("42030102035642000300", "Uint8Array <3 bytes: 01 02 03>"),
    ("4208000000000000f83f5646000800", "Float64Array <8 bytes: 00 00 00 00 00 00 f8 3f>"),
    ("420400000000563f000400", "DataView <4 bytes: 00 00 00 00>"),
    ("420a0001020304050607080956420502" + "00", "Uint8Array <2 bytes: 05 06>"),
    ("7e08100000000000000000", "ArrayBuffer <8 bytes: 00 00 00 00 00 00 00 00>"),
    ("6f22046e616d65220163220473656c665e007b02", '{name: "c", self: <object 0>}'),
    ("5c6900", "<blob 0>"),
    ("5c6500", "<file 0>"),
    # {before: 1, key: a CryptoKey, after: 2}
    ("6f22066265666f7265490222036b65795c4b0109100310da", f"{{before: 1, key: {OF_A_BROWSER}…"),
]


@pytest.mark.parametrize(("stored", "text"), STORED)
def test_what_chromium_stored(stored: str, text: str | None) -> None:
    assert value_text(HEAD + bytes.fromhex(stored)) == text


def test_older_versions_have_other_headers() -> None:
    for head in ("ff0f", "ff11ff0d", "ff14ff0f", "ff09"):
        assert value_text(bytes.fromhex(head) + b'"\x01a') == '"a"'
    view = bytes.fromhex("4203010203 5642 00 03")  # without flags, before V8's version 14
    assert value_text(b"\xff\x11\xff\x0d" + view) == "Uint8Array <3 bytes: 01 02 03>"


def test_a_compressed_value() -> None:
    stored = HEAD + b'"\xe8\x07' + b"z" * 1000
    packed = b"\xff\x11\x02" + bytes(cramjam.snappy.compress_raw(stored))
    assert len(packed) < 200
    assert value_text(packed) == f'"{"z" * 1000}"'
    assert value_text(packed[:-1]) is None
    bomb = b"\xff\x11\x02" + encode_varint(1 << 31) + b"\x00"
    assert value_text(bomb) is None


def test_compression_inside_compression_ends() -> None:
    packed = HEAD + b"T"
    for _ in range(50):
        packed = b"\xff\x11\x02" + bytes(cramjam.snappy.compress_raw(packed))
    assert value_text(packed) == "true"


def test_a_value_in_a_file_of_its_own() -> None:
    assert value_text(b"\xff\x11\x01\xc0\x84\x3d\x00") == "<1,000,000 bytes in a separate file>"


def test_deep_nesting_ends_the_text() -> None:
    for opening in (b"A\x01", b"o\x49\x00", b";", b"'", b"a\x01", b"rc"):
        text = value_text(HEAD + opening * 100_000)
        assert text is None or (text.endswith("…") and len(text) < 1000)


def test_a_text_is_not_much_longer_than_its_bytes() -> None:
    for tag in (b"A", b"a", b"c", b"B"):
        text = value_text(HEAD + tag + encode_varint((1 << 63) - 1))
        assert text is None or len(text) < 10
    assert value_text(HEAD + b"Z" + encode_varint(100_000) + b"\xff" * 50_000) == (
        f"<bigint of 50,000 bytes: {'ff ' * 16}…>"
    )


@given(st.sampled_from(STORED), st.data())
def test_a_cut_value_shows_its_beginning(case: tuple[str, str | None], data: st.DataObject) -> None:
    stored, _ = case
    whole = HEAD + bytes.fromhex(stored)
    text = value_text(whole[: data.draw(st.integers(0, len(whole) - 1))])
    assert text is None or isinstance(text, str)


@given(st.binary(), st.sampled_from([b"", HEAD, b"\xff\x0f", b"\xff\x11\x02"]))
def test_any_bytes_have_a_text_or_none(data: bytes, head: bytes) -> None:
    text = value_text(head + data)
    assert text is None or text


@given(
    st.lists(
        st.sampled_from(
            [bytes([c]) for c in b"_0TFIUNZ\"cSo{A$a@;:',DBV^\\rR~?\0-yxnszmi."]
            + [b"\x00", b"\x01", b"\x02", struct.pack("<d", 1e300)]
        )
    )
)
def test_any_letters_have_a_text_or_none(parts: list[bytes]) -> None:
    text = value_text(HEAD + b"".join(parts))
    assert text is None or text
