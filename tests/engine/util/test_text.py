"""Numbers and keys in messages."""

from __future__ import annotations

import re

import pytest
from explained import HOSTILE

from lsmkv.engine.util.text import count, escape, percent, printable, quoted, shortened, size


@pytest.mark.parametrize("longest", [3, 10, 64])
@pytest.mark.parametrize("key", [*HOSTILE, b"", b"short", "né".encode(), b"\xc3", b"\x80" * 7])
def test_a_cut_key_keeps_its_characters_whole(key: bytes, longest: int) -> None:
    shown = re.fullmatch(r"'(.*)'(?:\.\.\. \(([\d,]+) bytes?\))?", quoted(key, longest))
    assert shown is not None
    assert len(shown[1]) <= longest
    assert escape(key).startswith(shown[1])
    assert (shown[2] is None) == (shown[1] == escape(key))
    assert shown[2] is None or int(shown[2].replace(",", "")) == len(key)


def test_numbers_have_their_noun_and_their_unit() -> None:
    assert (count(1, "batch"), count(1200, "key"), count(0, "entry")) == (
        "1 batch",
        "1,200 keys",
        "0 entries",
    )
    assert [size(number) for number in (1023, 1024, 5 << 20, 3 << 40)] == [
        "1,023 B",
        "1.0 KiB",
        "5.0 MiB",
        "3,072.0 GiB",
    ]
    assert (percent(0.5), percent(None)) == ("50.00%", "-")


def test_control_characters_never_reach_a_terminal() -> None:
    assert escape(b"a\tb\n\\\x1b[0m\xff") == r"a\tb\n\\\x1b[0m\xff"
    assert printable("a\x07\u202e") == r"a\x07\xe2\x80\xae"
    assert shortened(b"k" * 33) == "b'kkkkkkkk'..."
