"""The requests in a stream of bytes, wherever it is cut."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from wire import packed

from lsmkv.server.requests import MAX_ARGUMENTS, MAX_INLINE, ProtocolError, RequestReader


def requests_in(*chunks: bytes) -> tuple[list[list[bytes]], str]:
    """The requests, and the error that ends them."""
    reader = RequestReader()
    found: list[list[bytes]] = []
    for chunk in chunks:
        reader.feed(chunk)
        try:
            while (request := reader.next_request()) is not None:
                found.append(request)
        except ProtocolError as error:
            with pytest.raises(ProtocolError, match=r"^Protocol error: "):
                reader.next_request()  # from then on always
            return found, str(error).removeprefix("Protocol error: ")
    return found, ""


def pieces(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    bounds = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    return [data[start:stop] for start, stop in itertools.pairwise(bounds)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (packed(b"SET", b"k", b"v"), [[b"SET", b"k", b"v"]]),
        (packed(b"", b"\r\n", b"\0\xff"), [[b"", b"\r\n", b"\0\xff"]]),
        (packed(b"GET", b"k") * 3, [[b"GET", b"k"]] * 3),
        (packed(b"ECHO", b"x" * 100_000), [[b"ECHO", b"x" * 100_000]]),
        (packed(*[b"%d" % n for n in range(300)]), [[b"%d" % n for n in range(300)]]),
        (b"PING\r\n", [[b"PING"]]),
        (b"PING\n", [[b"PING"]]),
        (b"  GET   k  \r\n", [[b"GET", b"k"]]),
        (b"SET 'a b' \"\\x00\\n\"\r\n", [[b"SET", b"a b", b"\0\n"]]),
        (b"\r\n\n \r\nPING\r\n", [[b"PING"]]),
        (b"*0\r\n" + packed(b"PING") + b"*0\r\nPING\r\n", [[b"PING"]] * 2),
        (b"*-1\r\n" + packed(b"PING") + b"*-1\r\n", [[b"PING"]]),
        (b"*-7\r\n" + packed(b"PING"), [[b"PING"]]),
        (packed(b"PING") + b"PING\r\n" + packed(b"PING"), [[b"PING"]] * 3),
        (b"GET $1\r\n*1\r\n$2\r\nab\r\n", [[b"GET", b"$1"], [b"ab"]]),
        (packed(b"ECHO", b"*9999999 > |9999999") * 2, [[b"ECHO", b"*9999999 > |9999999"]] * 2),
        (b"~1\r\n" + packed(b"PING") + b"~1\r\n", [[b"~1"], [b"PING"], [b"~1"]]),
    ],
)
def test_requests(data: bytes, expected: list[list[bytes]]) -> None:
    assert requests_in(data) == (expected, "")
    if len(data) < 1000:
        assert requests_in(*(data[at : at + 1] for at in range(len(data)))) == (expected, "")
        for at in range(len(data)):
            assert requests_in(data[:at], data[at:]) == (expected, "")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"*x\r\n", "invalid multibulk length"),
        (b"*\r\n", "invalid multibulk length"),
        (b"*01\r\n$1\r\na\r\n", "invalid multibulk length"),
        (b"*+1\r\n$1\r\na\r\n", "invalid multibulk length"),
        (b"*%d\r\n" % (MAX_ARGUMENTS + 1), "invalid multibulk length"),
        (b"*99999999999999999999\r\n", "invalid multibulk length"),
        (b"*" + b"1" * 100, "invalid multibulk length"),
        (b"*1\r\n$x\r\n", "invalid bulk length"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$01\r\na\r\n", "invalid bulk length"),
        (b"*1\r\n$536870913\r\n", "invalid bulk length"),
        (b"*2\r\n$1\r\na\r\n$99999999999999999999\r\n", "invalid bulk length"),
        (b"*1\r\n+PING\r\n", "expected '$', got '+'"),
        (b"*1\r\n:1\r\n", "expected '$', got ':'"),
        (b"*1\r\n*1\r\n$4\r\nPING\r\n", "expected '$', got '*'"),
        (b"*1\r\n=8\r\ntxt:PING\r\n", "expected '$', got '='"),
        (b"*1\r\n%1\r\n*0\r\n$1\r\na\r\n", "expected '$', got '%'"),  # hiredis: TypeError
        (b"*2\r\n*1000000000\r\n", "expected '$', got '*'"),  # hiredis: room for so many
        (b"GET 'k\r\n", "unbalanced quotes in request"),
        (b'GET "a"b\r\n', "unbalanced quotes in request"),
        (b"a" * (MAX_INLINE + 1), "too big inline request"),
        (b"a" * (MAX_INLINE + 1) + b"\r\n", "too big inline request"),
    ],
)
def test_what_is_no_request(data: bytes, reason: str) -> None:
    ping = packed(b"PING")
    assert requests_in(data + ping) == ([], reason)
    assert requests_in(ping * 2 + data + ping) == ([[b"PING"]] * 2, reason)
    assert requests_in(ping, data[:3], data[3:]) == ([[b"PING"]], reason)


def test_the_largest_of_each() -> None:
    line = b"a" * MAX_INLINE
    assert requests_in(line + b"\n") == ([[line]], "")
    many = b"*%d\r\n" % MAX_ARGUMENTS
    reader = RequestReader()
    reader.feed(many)
    assert reader.next_request() is None
    assert reader.buffered == len(many)
    reader = RequestReader(max_bulk=3)
    reader.feed(b"*2\r\n$3\r\nGET\r\n$4\r\n")
    with pytest.raises(ProtocolError, match="invalid bulk length"):
        reader.next_request()


words = st.lists(st.binary(max_size=20), min_size=1, max_size=4)
plain = st.lists(st.from_regex(rb"[a-z0-9!*$+~]{1,8}", fullmatch=True), min_size=1, max_size=3)
marks = st.sampled_from([b"*1\r\n", b"$1\r\n", b"*-1\r\n", b"+a\r\n", b"\r\n", b"a", b"*1234567"])


@given(
    st.lists(words.map(lambda w: (packed(*w), w)) | plain.map(lambda w: (b" ".join(w) + b"\n", w))),
    st.lists(st.integers(min_value=0)),
)
@example([(b"*1\r\n$2\r\n\r\n\r\n", [b"\r\n"])] * 2, [5, 9])
def test_wherever_it_is_cut(sent: list[tuple[bytes, list[bytes]]], cuts: list[int]) -> None:
    sent = [one for one in sent if one[0][:1] != b"*" or len(one[0].split(b"\n")) > 2]
    data = b"".join(one for one, _ in sent)
    expected = [request for _, request in sent]
    assert requests_in(data) == (expected, "")
    assert requests_in(*pieces(data, cuts)) == (expected, "")


@given(st.lists(marks | words.map(lambda w: packed(*w)), max_size=8), st.lists(st.integers(0, 99)))
def test_anything_is_the_same_in_pieces(parts: list[bytes], cuts: list[int]) -> None:
    data = b"".join(parts)
    assert requests_in(*pieces(data, cuts)) == requests_in(data)


@given(st.integers(0, 60))
def test_buffered_is_what_has_come_of_the_unfinished_request(size: int) -> None:
    whole = packed(b"SET", b"key", b"x" * 20) * 2
    one = len(whole) // 2
    data = whole[: size % (2 * one)]
    for chunks in ([data], [data[at : at + 1] for at in range(len(data))]):
        reader = RequestReader()
        for chunk in chunks:
            reader.feed(chunk)
            while reader.next_request():
                pass
        assert reader.buffered == len(data) % one


def test_a_large_value_in_many_chunks_is_joined_once() -> None:
    value = bytes(range(256)) * 8000
    data = packed(b"SET", b"k", value)
    chunks = [data[at : at + 1000] for at in range(0, len(data), 1000)]
    assert requests_in(*chunks, packed(b"PING")) == ([[b"SET", b"k", value], [b"PING"]], "")


def test_more_than_a_million_elements() -> None:
    count = 2**20 + 10
    reader = RequestReader()
    reader.feed(b"*%d\r\n" % count)
    for size in (2**18,) * 4 + (10,):
        assert reader.next_request() is None
        reader.feed(b"$1\r\nx\r\n" * size)
    request = reader.next_request()
    assert request is not None
    assert len(request) == count


def test_memory_counts_what_short_elements_take() -> None:
    reader = RequestReader()
    reader.feed(b"*1000\r\n" + b"$1\r\nx\r\n" * 999)
    assert reader.next_request() is None
    assert reader.buffered == len(b"*1000\r\n") + 999 * 7
    assert reader.memory > 999 * 40
    reader.feed(b"$1\r\nx\r\n")
    assert reader.next_request() == [b"x"] * 1000
    assert reader.memory == 0
