"""Replies as bytes, read back by hiredis."""

from __future__ import annotations

import io
import itertools
import logging
import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis_pair import RANDOM
from redis_requests import (
    STREAM_TEMPLATES,
    TEMPLATES,
    WORDS,
    Maker,
    Request,
    fill,
    parsed_templates,
)
from resp_wire import Reply, read_reply
from serving import Client, an_engine, parsed

from lsmkv.server.commands import COMMANDS
from lsmkv.server.resp import (
    NULL_ARRAY,
    OK,
    ByKey,
    CommandError,
    Members,
    Pairs,
    Push,
    Simple,
    Verbatim,
    encode,
    encode_in_pieces,
    format_double,
)


@pytest.mark.parametrize(
    ("reply", "resp2", "resp3"),
    [
        (None, b"$-1\r\n", b"_\r\n"),
        (NULL_ARRAY, b"*-1\r\n", b"_\r\n"),
        (b"a\r\n", b"$3\r\na\r\n\r\n", b"$3\r\na\r\n\r\n"),
        (-7, b":-7\r\n", b":-7\r\n"),
        (True, b":1\r\n", b"#t\r\n"),
        (False, b":0\r\n", b"#f\r\n"),
        (1.5, b"$3\r\n1.5\r\n", b",1.5\r\n"),
        ([], b"*0\r\n", b"*0\r\n"),
        ([1, (b"a", None)], b"*2\r\n:1\r\n*2\r\n$1\r\na\r\n$-1\r\n",
         b"*2\r\n:1\r\n*2\r\n$1\r\na\r\n_\r\n"),
        (Members([1]), b"*1\r\n:1\r\n", b"~1\r\n:1\r\n"),
        ({b"k": [True]}, b"*2\r\n$1\r\nk\r\n*1\r\n:1\r\n", b"%1\r\n$1\r\nk\r\n*1\r\n#t\r\n"),
        (Pairs([(b"m", 2.0)]), b"*2\r\n$1\r\nm\r\n$1\r\n2\r\n", b"*1\r\n*2\r\n$1\r\nm\r\n,2\r\n"),
        (ByKey([(b"k", [1])]),
         b"*1\r\n*2\r\n$1\r\nk\r\n*1\r\n:1\r\n", b"%1\r\n$1\r\nk\r\n*1\r\n:1\r\n"),
        (Push([b"message"]), b"*1\r\n$7\r\nmessage\r\n", b">1\r\n$7\r\nmessage\r\n"),
        (Verbatim(b"hi"), b"$2\r\nhi\r\n", b"=6\r\ntxt:hi\r\n"),
        (Simple("PONG"), b"+PONG\r\n", b"+PONG\r\n"),
        (OK, b"+OK\r\n", b"+OK\r\n"),
        (CommandError("ERR a\r\nb\udcff"), b"-ERR a  b\xff\r\n", b"-ERR a  b\xff\r\n"),
    ],
)  # fmt: skip
def test_each_type(reply: Any, resp2: bytes, resp3: bytes) -> None:
    assert encode(reply) == resp2
    assert encode(reply, resp3=True) == resp3
    for nested, data in ((encode([reply, reply]), resp2), (encode([reply, reply], True), resp3)):
        assert nested == b"*2\r\n" + data * 2


def large(count: int, kind: type) -> Any:
    pairs = [(b"%d" % number, float(number)) for number in range(count)]
    if kind is dict:
        return dict(pairs)
    if kind is Pairs:
        return Pairs(pairs)
    if kind is ByKey:
        return ByKey([(b"stream", [[b"1-1", [b"field", one]] for one, _ in pairs]), (b"k", [])])
    return kind([[b"%d" % number, [None, True, b"x"]] for number in range(count)])


@pytest.mark.parametrize("resp3", [False, True])
@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 1000])
@pytest.mark.parametrize("kind", [list, Members, Push, Pairs, ByKey, dict])
def test_a_reply_in_pieces_is_the_reply(kind: type, count: int, resp3: bool) -> None:
    for wrapped in (large(count, kind), [b"before", large(count, kind), None, 1.5]):
        whole, rests = encode(wrapped, resp3), itertools.count()
        assert encode_in_pieces(wrapped, resp3, rests.__next__) == whole
        assert kind is dict or next(rests) >= count // 256


@pytest.mark.parametrize("reply", [b"x", None, 1, OK, NULL_ARRAY, CommandError("ERR no")])
def test_a_small_reply_in_pieces_is_the_reply(reply: Any) -> None:
    assert encode_in_pieces(reply, True, list) == encode(reply, True)


def test_another_type_is_none() -> None:
    with pytest.raises(TypeError, match="no reply: 'text'"):
        encode("text")
    with pytest.raises(TypeError, match="no reply"):
        encode([object()])


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.binary()
    | st.floats(allow_nan=False)
)
replies = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.dictionaries(st.binary(), inner),
    max_leaves=20,
)


@given(st.lists(replies, min_size=1))
def test_hiredis_reads_resp3_back(sent: list[Any]) -> None:
    assert parsed(b"".join(encode(one, resp3=True) for one in sent)) == sent


def flat(reply: Any) -> Any:
    """What RESP2 makes of a reply."""
    if isinstance(reply, bool):
        return int(reply)
    if isinstance(reply, float):
        return format_double(reply)
    if isinstance(reply, dict):
        return [flat(one) for pair in reply.items() for one in pair]
    return [flat(one) for one in reply] if isinstance(reply, list) else reply


@given(st.lists(replies, min_size=1))
def test_hiredis_reads_resp2_back(sent: list[Any]) -> None:
    assert parsed(b"".join(encode(one) for one in sent)) == [flat(one) for one in sent]


@given(st.floats(allow_nan=False))
def test_a_double_keeps_its_value(value: float) -> None:
    text = format_double(value)
    assert float(text) == value
    assert math.copysign(1, float(text)) == math.copysign(1, value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.0, b"3"), (-0.0, b"-0"), (0.1, b"0.1"), (0.1 + 0.2, b"0.30000000000000004"),
        (1e16, b"10000000000000000"), (1e17, b"1e+17"), (1e-7, b"1e-07"), (-math.inf, b"-inf"),
    ],
)  # fmt: skip
def test_how_a_double_is_written(value: float, text: bytes) -> None:
    assert format_double(value) == text


# Replies of all commands to numbers at the edges of 64 bits

EDGES = [
    b"%d" % number
    for edge in (1 << 32, 1 << 53, 1 << 62, 1 << 63, 1 << 64)
    for number in (edge - 1, edge, edge + 1, -edge - 1, -edge, -edge + 1)
    if number != (1 << 32) - 1  # a string of 512 MB
]
EDGES += [b"0", b"1", b"-1", b"2", b"9" * 30, b"1e308", b"-1e308", b"1.7e308", b"inf", b"-inf"]
EDGE_IDS = [b"%d-%d" % (one, other) for one in (0, (1 << 64) - 1) for other in (1, (1 << 64) - 1)]
NUMBERS = (
    "int pos size score bound dyadic ttl at at-ms idle ms db bit bit-offset field-number member"
    " value"
)
OTHERS = parsed_templates("""
BF.RESERVE b score edge [(NONSCALING|EXPANSION edge)]
BF.RESERVE b 0.01 1099511627776 EXPANSION 32768
BF.ADD b edge
BF.INFO b
BF.CARD b
CONFIG SET setting edge
CONFIG GET *
SLOWLOG GET edge
CLIENT LIST ID edge
CLIENT REPLY ON
MEMORY USAGE k SAMPLES edge
OBJECT FREQ k
INFO
SCAN edge COUNT edge
WAIT 0 edge
EVAL lua 0
""")
OF_STREAMS = parsed_templates("""
XADD x id a b
XADD x edge-id a b
XSETID x edge-id ENTRIESADDED edge MAXDELETEDID edge-id
XSETID x 99-1 ENTRIESADDED 9223372036854775807
XADD x * a b
XGROUP CREATE x group 0 MKSTREAM ENTRIESREAD edge
XGROUP SETID x group 1-1 ENTRIESREAD 9223372036854775807
XREADGROUP GROUP group consumer COUNT 1 STREAMS x >
XCLAIM x group consumer 0 {id} IDLE edge RETRYCOUNT edge FORCE
XCLAIM x group consumer 0 {id} RETRYCOUNT 9223372036854775807 FORCE
XCLAIM x group consumer 0 {id} FORCE
XPENDING x group - + 100
XINFO STREAM x FULL
XINFO GROUPS x
DEL x
""")
LUA = (
    b"return 9223372036854775807",
    b"return 1e300",
    b"return -1e300",
    b"return 0/0",
    b"return {double=1e400}",
    b"return {double=-0/0}",
    b"redis.setresp(3) return {double=1e400}",
    b"redis.setresp(3) return {big_number='123456789012345678901234567890'}",
    b"return {2^63, -2^63, 2^64}",
    b"return redis.status_reply('a b')",
)


def _or_edges(usual: Maker) -> Maker:
    def make(choices: random.Random) -> Request:
        return [choices.choice(EDGES)] if choices.random() < 0.5 else usual(choices)

    return make


def _one(words: list[bytes] | tuple[bytes, ...]) -> Maker:
    return lambda choices: [choices.choice(words)]


def _requests(seed: int, count: int) -> Iterator[Request]:
    choices = random.Random(seed)
    settings = (b"timeout", b"maxclients", b"slowlog-max-len", b"slowlog-log-slower-than")
    makers = {**WORDS, **{word: _or_edges(WORDS[word]) for word in NUMBERS.split()}}
    makers |= {"edge": _one(EDGES), "edge-id": _one(EDGE_IDS)}
    makers |= {"setting": _one(settings), "lua": _one(LUA)}
    usual = parsed_templates(TEMPLATES) + parsed_templates(STREAM_TEMPLATES)
    one_stream = {**makers, "x": _one([b"x"]), "group": _one([b"g"]), "id": _one([b"1-1", b"2-1"])}
    for at in range(count):
        if at % 2:
            request = list(fill(choices.choice(OF_STREAMS), choices, one_stream))
        else:
            request = list(fill(choices.choice(choices.choice((OTHERS, usual))), choices, makers))
        endless = request[0].decode() in RANDOM and any(
            word[:1] == b"-" and len(word) > 9 for word in request
        )
        found = COMMANDS.get(request[0])
        blocks = found is None or "blocking" in found.flags or b"BLOCK" in request
        if not endless and not blocks and request[0] not in (b"WAIT", b"HELLO"):
            yield request


def _checked(client: Client, request: Request) -> None:
    client.engine.run(client.session, request)
    data = client.session.take_output()
    file = io.BytesIO(data)
    while file.tell() < len(data):
        reply = read_reply(file)
        failed = isinstance(reply.value, bytes) and b"internal error" in reply.value
        assert not (reply.mark == "-" and failed), request
    parsed(data)


@pytest.mark.parametrize("seed", range(6))
def test_every_number_in_a_reply_has_64_bits(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever numbers clients send, and however often they add to what is there."""
    caplog.set_level(logging.CRITICAL, "lsmkv.server")
    with an_engine() as engine:
        clients = [Client(engine), Client(engine)]
        clients[1]("HELLO 3")
        for at, request in enumerate(_requests(seed, 4000)):
            client = clients[at % 2]
            try:
                _checked(client, request)
            except (ValueError, AssertionError) as error:
                pytest.fail(f"{at}: {request}: {error}", pytrace=False)


def test_a_reply_that_clients_refuse_is_found() -> None:
    for data in (b":9223372036854775808\r\n", b":01\r\n", b"$3\r\nab\r\n", b"$-2\r\n", b"#x\r\n"):
        with pytest.raises(ValueError, match=r"RESP|64 bits|length"):
            read_reply(io.BytesIO(data))
    assert read_reply(io.BytesIO(b":-9223372036854775808\r\n")) == Reply(":", -(1 << 63))
