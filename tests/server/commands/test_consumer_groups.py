"""XGROUP, XACK, XPENDING, XCLAIM and XAUTOCLAIM."""

from __future__ import annotations

import pytest
from serving import Client


@pytest.fixture
def group(client: Client) -> Client:
    """A stream of five entries, of which a consumer has three."""
    for number in range(1, 6):
        client(f"XADD x {number} n {number}")
    client("XGROUP CREATE x g 0")
    client("XREADGROUP GROUP g one COUNT 3 STREAMS x >")
    return client


def entry(number: int) -> list[object]:
    return [b"%d-0" % number, [b"n", b"%d" % number]]


def test_groups(client: Client) -> None:
    missing = "ERR The XGROUP subcommand requires the key to exist."
    assert client("XGROUP CREATE x g 0").startswith(missing)
    assert client("XGROUP DESTROY x g").startswith(missing)
    client.plays(
        ("XGROUP CREATE x g $ MKSTREAM", b"OK"),
        ("XLEN x", 0),
        ("XGROUP CREATE x g 0", "BUSYGROUP Consumer Group name already exists"),
        ("XGROUP CREATE x h abc", "ERR Invalid stream ID specified as stream command argument"),
        ("XGROUP CREATE x h 0 ENTRIESREAD -2", "ERR value for ENTRIESREAD must be positive or -1"),
        ("XGROUP CREATE x h 0 FOO", "ERR unknown subcommand or wrong number of arguments for"
         " 'CREATE'. Try XGROUP HELP."),
        ("XADD x 1 n 1", b"1-0"),
        ("XREADGROUP GROUP g c STREAMS x >", [[b"x", [entry(1)]]]),
        ("XGROUP SETID x g 0", b"OK"),
        ("XREADGROUP GROUP g d STREAMS x >", [[b"x", [entry(1)]]]),  # from another consumer
        ("XPENDING x g", [1, b"1-0", b"1-0", [[b"d", b"1"]]]),
        ("XGROUP SETID x none 0", "NOGROUP No such consumer group 'none' for key name 'x'"),
        ("XGROUP DESTROY x g", 1),
        ("XGROUP DESTROY x g", 0),
    )  # fmt: skip
    assert client("XGROUP HELP")[0].startswith(b"XGROUP <subcommand>")


def test_consumers(group: Client) -> None:
    group.plays(
        ("XGROUP CREATECONSUMER x g two", 1),
        ("XGROUP CREATECONSUMER x g two", 0),
        ("XGROUP DELCONSUMER x g two", 0),
        ("XGROUP DELCONSUMER x g one", 3),
        ("XGROUP DELCONSUMER x g one", 0),
        ("XPENDING x g", [0, None, None, None]),
        (
            "XGROUP CREATECONSUMER x none c",
            "NOGROUP No such consumer group 'none' for key name 'x'",
        ),
    )


def test_acknowledging(group: Client) -> None:
    group.plays(
        ("XACK x g 1 3 4 99", 2),
        ("XACK x g 1", 0),
        ("XACK x g 2 abc", "ERR Invalid stream ID specified as stream command argument"),
        ("XACK x none 1", 0),
        ("XACK none g 1", 0),
        ("XPENDING x g", [1, b"2-0", b"2-0", [[b"one", b"1"]]]),
    )


def test_pending(group: Client) -> None:
    group("XREADGROUP GROUP g two STREAMS x >")
    found = group("XPENDING x g - + 10")
    assert [(id_, who, times) for id_, who, _, times in found] == [
        *((b"%d-0" % number, b"one", 1) for number in (1, 2, 3)),
        *((b"%d-0" % number, b"two", 1) for number in (4, 5)),
    ]
    assert all(0 <= idle < 60_000 for _, _, idle, _ in found)
    assert [one[0] for one in group("XPENDING x g (1-0 4 10")] == [b"2-0", b"3-0", b"4-0"]
    assert [one[0] for one in group("XPENDING x g - + 1 two")] == [b"4-0"]
    group.plays(
        ("XPENDING x g", [5, b"1-0", b"5-0", [[b"one", b"3"], [b"two", b"2"]]]),
        ("XPENDING x g IDLE 60000 - + 10", []),
        ("XPENDING x g - + 10 none", []),
        ("XPENDING x g - + 0", []),
        ("XPENDING x g - +", "ERR syntax error"),
        ("XPENDING x none", "NOGROUP No such key 'x' or consumer group 'none'"),
    )


def test_claiming(group: Client) -> None:
    group.plays(
        ("XCLAIM x g two 60000 1", []),
        ("XCLAIM x g two 0 1 2 4", [entry(1), entry(2)]),
        ("XCLAIM x g two 0 3 JUSTID", [b"3-0"]),
        ("XCLAIM x g two 0 5 FORCE JUSTID RETRYCOUNT 7 IDLE 1000", [b"5-0"]),
        ("XDEL x 1", 1),
        ("XCLAIM x g three 0 1", []),  # it is forgotten, too
        ("XPENDING x g", [3, b"2-0", b"5-0", [[b"two", b"3"]]]),
        ("XCLAIM x g two a 1", "ERR Invalid min-idle-time argument for XCLAIM"),
        ("XCLAIM x g two 0 1 IDLE a", "ERR Invalid IDLE option argument for XCLAIM"),
        ("XCLAIM x g two 0 1 FOO", "ERR Unrecognized XCLAIM option 'FOO'"),
        ("XCLAIM x g two 0 99 LASTID 4", []),
        ("XREADGROUP GROUP g one STREAMS x >", [[b"x", [entry(5)]]]),
    )
    counts = {id_: times for id_, _, _, times in group("XPENDING x g - + 10")}
    assert counts == {b"2-0": 2, b"3-0": 1, b"5-0": 1}


def test_claiming_what_is_idle(group: Client) -> None:
    group.plays(
        ("XAUTOCLAIM x g two 60000 0", [b"0-0", [], []]),
        ("XAUTOCLAIM x g two 0 0 COUNT 1", [b"2-0", [entry(1)], []]),
        ("XDEL x 2", 1),
        ("XAUTOCLAIM x g two 0 2 JUSTID", [b"0-0", [b"3-0"], [b"2-0"]]),
        ("XPENDING x g", [2, b"1-0", b"3-0", [[b"two", b"2"]]]),
        ("XAUTOCLAIM x g two 0 0 COUNT 0", "ERR COUNT must be > 0"),
        ("XAUTOCLAIM x g two a 0", "ERR Invalid min-idle-time argument for XAUTOCLAIM"),
        ("XAUTOCLAIM x g two 0 0 FOO", "ERR syntax error"),
        ("XAUTOCLAIM x none two 0 0", "NOGROUP No such key 'x' or consumer group 'none'"),
    )


def test_a_group_with_many_acknowledged_deliveries(client: Client) -> None:
    """The bounds of the lists move; what is left is found from any id."""
    client("XGROUP CREATE x g 0 MKSTREAM")
    for number in range(1, 301):
        client(f"XADD x {number} n {number}")
    client("XREADGROUP GROUP g c STREAMS x >")
    for number in range(1, 299):
        assert client(f"XACK x g {number}") == 1
    client.plays(
        ("XPENDING x g", [2, b"299-0", b"300-0", [[b"c", b"2"]]]),
        ("XREADGROUP GROUP g c STREAMS x 0", [[b"x", [entry(299), entry(300)]]]),
        ("XCLAIM x g c 0 5 FORCE", [entry(5)]),
        ("XAUTOCLAIM x g d 0 0 JUSTID", [b"0-0", [b"5-0", b"299-0", b"300-0"], []]),
    )


def test_deliveries_are_counted_on_after_the_highest_number(client: Client) -> None:
    client("XADD s 1-1 a b")
    client("XGROUP CREATE s g 0")
    client("XCLAIM s g c 0 1-1 RETRYCOUNT 9223372036854775807 FORCE JUSTID")
    client("XCLAIM s g c 0 1-1")
    assert client("XPENDING s g - + 9")[0][3] == -(1 << 63)
