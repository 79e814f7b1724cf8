"""What the SCAN commands share."""

from __future__ import annotations

import pytest
from serving import Client

from lsmkv.server.resp import CommandError
from lsmkv.server.scanning import ScanOptions, scan_options


def test_what_is_there_throughout_a_scan_is_returned_once(client: Client) -> None:
    for number in range(50):
        client(f"SET key{number:02d} v")
    cursor, seen = client("SCAN 0 COUNT 20")
    for number in range(0, 50, 2):
        client(f"DEL key{number:02d}")
    client("SET key205 new")
    while cursor != b"0":
        cursor, found = client(f"SCAN {cursor.decode()} COUNT 7")
        seen += found
    odd = [b"key%02d" % number for number in range(1, 50, 2)]
    assert [key for key in seen if key in odd] == odd
    assert len(set(seen)) == len(seen)


def test_options_are_read_in_any_order_and_case() -> None:
    options = scan_options([b"count", b"5", b"MATCH", b"a*", b"type", b"Hash"], kinds=True)
    assert options == ScanOptions(b"a*", 5, "hash")
    assert options.matches(b"ab")
    assert not options.matches(b"b")
    assert scan_options([b"COUNT", b"1000000"]).limit == 10_000
    assert scan_options([]) == ScanOptions(b"*", 10, None)


@pytest.mark.parametrize("words", [b"COUNT", b"COUNT 0", b"TYPE hash", b"NONE 1", b"COUNT x"])
def test_options_that_are_none_are_refused(words: bytes) -> None:
    with pytest.raises(CommandError):
        scan_options(words.split())
