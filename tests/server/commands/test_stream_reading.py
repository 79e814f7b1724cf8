"""XREAD and XREADGROUP, without waiting: ``test_blocking.py`` has the clients that wait."""

from __future__ import annotations

import pytest
from serving import Client


@pytest.fixture
def streams(client: Client) -> Client:
    for number in (1, 2, 3):
        client(f"XADD x {number} n {number}")
    client("XADD y 5 f v")
    client("XGROUP CREATE x g 0")
    client("XGROUP CREATE y g 0")
    return client


def entry(number: int) -> list[object]:
    return [b"%d-0" % number, [b"n", b"%d" % number]]


def test_reading_after_an_id(streams: Client) -> None:
    streams.plays(
        ("XREAD STREAMS x 1", [[b"x", [entry(2), entry(3)]]]),
        ("XREAD COUNT 1 STREAMS x y 0 0", [[b"x", [entry(1)]], [b"y", [[b"5-0", [b"f", b"v"]]]]]),
        ("XREAD STREAMS x y 3 0", [[b"y", [[b"5-0", [b"f", b"v"]]]]]),
        ("XREAD STREAMS x none $ 0", None),
    )
    streams("HELLO 3")
    streams.plays(
        ("XREAD STREAMS x 2", {b"x": [entry(3)]}),
        ("XREADGROUP GROUP g c COUNT 1 STREAMS x >", {b"x": [entry(1)]}),
    )


def test_a_group_reads_on_and_each_consumer_reads_again(streams: Client) -> None:
    streams.plays(
        ("XREADGROUP GROUP g one COUNT 1 STREAMS x >", [[b"x", [entry(1)]]]),
        ("XREADGROUP GROUP g two STREAMS x >", [[b"x", [entry(2), entry(3)]]]),
        ("XREADGROUP GROUP g one STREAMS x >", None),
        ("XREADGROUP GROUP g two STREAMS x 0", [[b"x", [entry(2), entry(3)]]]),
        ("XREADGROUP GROUP g two COUNT 1 STREAMS x 2", [[b"x", [entry(3)]]]),
        ("XREADGROUP GROUP g none STREAMS x 0", [[b"x", []]]),
        ("XDEL x 2", 1),
        ("XREADGROUP GROUP g two STREAMS x 0", [[b"x", [[b"2-0", None], entry(3)]]]),
        ("XACK x g 2 3", 2),
        ("XREADGROUP GROUP g two STREAMS x 0", [[b"x", []]]),
        ("XADD x 4 n 4", b"4-0"),
        ("XREADGROUP GROUP g two NOACK STREAMS x y > >",
         [[b"x", [entry(4)]], [b"y", [[b"5-0", [b"f", b"v"]]]]]),
        ("XPENDING x g", [1, b"1-0", b"1-0", [[b"one", b"1"]]]),
    )  # fmt: skip


def test_a_stream_that_is_named_twice_is_read_twice(streams: Client) -> None:
    streams.plays(
        ("XREADGROUP GROUP g c COUNT 1 STREAMS x x > >", [[b"x", [entry(1)]], [b"x", [entry(2)]]]),
        ("XPENDING x g", [2, b"1-0", b"2-0", [[b"c", b"2"]]]),
    )


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ("XREAD STREAMS x", "ERR wrong number of arguments"),
        ("XREAD STREAMS x y 0", "ERR Unbalanced XREAD list"),
        ("XREAD COUNT a STREAMS x 0", "ERR value is not an integer"),
        ("XREAD BLOCK a STREAMS x 0", "ERR timeout is not an integer"),
        ("XREAD BLOCK -1 STREAMS x 0", "ERR timeout is negative"),
        ("XREAD FOO 1 STREAMS x 0", "ERR syntax error"),
        ("XREAD COUNT 1 COUNT 2", "ERR syntax error"),
        ("XREAD STREAMS x >", "ERR The > ID can be specified only"),
        ("XREAD NOACK STREAMS x 0", "ERR The NOACK option is only supported by XREADGROUP."),
        ("XREAD GROUP g c STREAMS x 0", "ERR The GROUP option is only supported by XREADGROUP."),
        ("XREADGROUP COUNT 1 COUNT 1 STREAMS x >", "ERR Missing GROUP option"),
        ("XREADGROUP GROUP g c STREAMS x $", "ERR The $ ID is meaningless"),
        ("XREADGROUP GROUP none c STREAMS x >", "NOGROUP No such key 'x' or consumer group 'none'"),
        ("XREADGROUP GROUP g c STREAMS none >", "NOGROUP No such key 'none'"),
    ],
)
def test_wrong_requests(streams: Client, request_: str, error: str) -> None:
    assert streams(request_).startswith(error)
