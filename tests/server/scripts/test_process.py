"""The process of scripts, as the server sees it."""

from __future__ import annotations

import math
import time

import pytest

from lsmkv.engine.env.process import interpreter
from lsmkv.server.resp import NULL_ARRAY, ByKey, Members, Pairs, Simple, Verbatim, encode
from lsmkv.server.scripts.process import ProcessEnded, ScriptProcess, is_one_reply

pytest.importorskip("lupa")
pytestmark = pytest.mark.skipif(not interpreter(), reason="no process can be started")
MEMORY = 1 << 24
REPLIES = [
    [b"a", 1, -1, None, True, 1.5, [], [[[]]], b""],
    {b"k": [Simple("OK")], b"l": {}},
    Members([b"a"]),
    Pairs([(b"m", 1.0)]),
    ByKey([(b"k", [1])]),
    Verbatim(b"text\r\n"),
    b"\r\n",
    NULL_ARRAY,
]


@pytest.mark.parametrize("resp3", [False, True])
@pytest.mark.parametrize("reply", REPLIES)
def test_one_reply_is_told_from_any_part_of_it(reply: object, resp3: bool) -> None:
    data = encode(reply, resp3)
    assert is_one_reply(data)
    assert not is_one_reply(data + data)
    for size in range(len(data)):
        assert not is_one_reply(data[:size])


@pytest.mark.parametrize(
    "data",
    [
        b"$5\r\nab\r\n\r\n",
        b"$-2\r\n",
        b"$9999\r\n",
        b"*2\r\n:1\r\n\r\n",
        b"$1x\r\na\r\n",
        b"*99999999999\r\n",
        b"+a\nb\r\n",
        b"!3\r\nabc\r\n",
        b">1\r\n:1\r\n",
        b"\r\n",
        b"%1\r\n:1\r\n",
    ],
)
def test_what_is_no_reply(data: bytes) -> None:
    assert not is_one_reply(data)


def test_large_messages_pass_both_ways() -> None:
    process = ScriptProcess("7.0.15", MEMORY, 1 << 30)
    source = b"return redis.call('echo', ARGV[1]) .. KEYS[1]"
    value = b"x" * 5_000_000
    process.send(("run", b"sha", source, [b"key"], [value], False, MEMORY))
    assert process.receive(math.inf) == [b"compiled"]
    assert process.receive(math.inf) == [b"call", b"echo", value]
    assert process.receive(time.perf_counter()) is None
    process.send(value)
    verb, reply, memory = process.receive(math.inf) or []
    assert (verb, reply) == (b"done", encode(value + b"key"))
    assert int(memory) > len(value)
    assert process.is_idle()
    process.interrupt()
    with pytest.raises(ProcessEnded):
        process.receive(math.inf)
    process.close()
    assert process.close() == ""


def test_a_script_may_have_the_name_of_any_error() -> None:
    process = ScriptProcess("7.0.15", MEMORY, 1 << 30)
    process.send(("load", b"sha", b"return f("))
    verb, text = process.receive(math.inf) or []
    assert verb == b"refused"
    assert text.startswith(b"user_script:1: ")
    process.send(("run", b"sha", b"error('x')", [], [], False, MEMORY))
    assert process.receive(math.inf) == [b"compiled"]
    assert process.receive(math.inf) == [b"failed", b"ERR user_script:1: x", b"@user_script:1"]
    process.close()
