from __future__ import annotations

import pytest

from lsmkv.programs.bitcoin import is_block_index, is_coin


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
