"""Scripts do in lsmkv's server what they do in Redis 7.0: values, errors with their lines,
libraries."""

# ruff: noqa: E501 - a script is one line

from __future__ import annotations

import json
import math
import os
import random
import struct

import pytest
from redis_pair import Pair
from resp_wire import Reply
from script_corpus import SCRIPTS
from serving import PLACES

COUNT = int(os.environ.get("LSMKV_REDIS_COMMANDS", "6000"))
SEED = int(os.environ.get("LSMKV_REDIS_SEED", "0"))
_BIT_FUNCTIONS = [
    "tobit",
    "bnot",
    "band",
    "bor",
    "bxor",
    "lshift",
    "rshift",
    "arshift",
    "rol",
    "ror",
    "bswap",
    "tohex",
]
_NUMBERS = [0, 1, -1, 2, 31, 32, 33, 255, 256, 2**31 - 1, 2**31, -(2**31), 2**32, 2**32 + 5, 1.5]
_STRUCT_OPTIONS = [
    "b",
    "B",
    "h",
    "H",
    "i",
    "I",
    "l",
    "L",
    "T",
    "i3",
    "I3",
    "i7",
    "i16",
    "f",
    "d",
    "s",
    "c3",
    "x",
    ">",
    "<",
    "=",
    "!",
    "!2",
    "!4",
]


@pytest.fixture(scope="module", params=PLACES)
def options(request: pytest.FixtureRequest) -> list[str]:
    """Scripts run in the server, and in a process of their own."""
    return ["--scripts", request.param]


def _same(pair: Pair, script: str, *arguments: object) -> None:
    words = [str(word).encode() if not isinstance(word, bytes) else word for word in arguments]
    pair.run(0, [b"EVAL", script.encode(), b"0", *words])


@pytest.mark.parametrize("protocol", [2, 3])
def test_scripts_get_the_same_replies(pair: Pair, protocol: int) -> None:
    pair.run(0, [b"HELLO", b"%d" % protocol])
    for script in SCRIPTS:
        pair.run(0, [b"EVAL", script.encode(), b"2", b"key1", b"key2", b"arg1", b"arg2"])
    pair.check_contents()


def test_requests_to_run_scripts_are_checked_alike(pair: Pair) -> None:
    loaded = b"return {KEYS, ARGV}"
    sha = pair.lsmkv.clients[0].ask("SCRIPT", "LOAD", loaded).value
    assert isinstance(sha, bytes)
    requests = [
        [b"SCRIPT", b"LOAD", loaded],
        [b"SCRIPT", b"LOAD", b"syntax error"],
        [b"SCRIPT", b"LOAD"],
        [b"SCRIPT", b"EXISTS", sha, sha.upper(), b"x", b"0" * 40],
        [b"SCRIPT", b"EXISTS"],
        [b"SCRIPT", b"NOSUCH"],
        [b"SCRIPT"],
        [b"SCRIPT", b"KILL"],
        [b"SCRIPT", b"FLUSH", b"x"],
        *([name, sha, b"1", b"k", b"a"] for name in (b"EVALSHA", b"EVALSHA_RO")),
        [b"EVALSHA", sha.upper(), b"0"],
        [b"EVALSHA", b"x", b"0"],
        [b"EVALSHA", b"0" * 40, b"0"],
        [b"EVALSHA", sha],
        [b"EVALSHA", sha, b"-1"],
        [b"EVALSHA", sha, b"3", b"a"],
        [b"EVALSHA", sha, b"x"],
        [b"EVAL"],
        [b"EVAL", b"return 1"],
        [b"EVAL", b"return 1", b"-1"],
        [b"EVAL", b"return 1", b"2", b"a"],
        [b"EVAL", b"return 1", b"1.5"],
        [b"EVAL_RO", b"return redis.call('get', KEYS[1])", b"1", b"k"],
        [b"EVAL_RO", b"return redis.call('set', KEYS[1], 1)", b"1", b"k"],
        [b"EVAL_RO", b"return redis.pcall('set', KEYS[1], 1)", b"1", b"k"],
        [b"EVAL_RO", b"return redis.call('pfcount', KEYS[1])", b"1", b"none"],
        [b"EVAL_RO", b"return redis.call('publish', 'c', 'm')", b"0"],
        [b"EVAL", b"return {#KEYS, #ARGV}", b"300", *[b"x"] * 1000],
        [b"EVAL", b"return #ARGV", b"0", *[b"x"] * 20000],
        [b"COMMAND", b"GETKEYS", b"EVAL", b"return 1", b"2", b"a", b"b", b"c"],
        [b"COMMAND", b"GETKEYS", b"EVALSHA_RO", b"x", b"1", b"a", b"b", b"c"],
        [b"COMMAND", b"GETKEYS", b"EVAL", b"x", b"5", b"a"],
        [b"MULTI"],
        [b"EVAL", b"return redis.call('set', KEYS[1], ARGV[1])", b"1", b"k", b"v"],
        [b"EVAL", b"return redis.call('incr', KEYS[1])", b"1", b"k"],
        [b"EVALSHA", b"0" * 40, b"0"],
        [b"EVAL", b"return redis.call('get', KEYS[1])", b"1", b"k"],
        [b"EXEC"],
        [b"SELECT", b"1"],
        [b"EVAL", b"redis.call('select', 2) return redis.call('set', 'two', 1)", b"0"],
        [b"SET", b"one", b"1"],
        [b"WATCH", b"one"],
        [b"EVAL", b"return redis.call('set', 'one', 2)", b"0"],
        [b"MULTI"],
        [b"PING"],
        [b"EXEC"],
        [b"SCRIPT", b"FLUSH", b"ASYNC"],
        [b"EVALSHA", sha, b"0"],
        [b"SCRIPT", b"FLUSH", b"SYNC", b"x"],
    ]
    for request in requests:
        redis, lsmkv = pair._ask(0, request)
        assert redis == lsmkv, request
    pair.check_contents()


def test_writes_before_an_error_stay(pair: Pair) -> None:
    script = """
    redis.call('set', 'first', 1)
    redis.pcall('lpush', 'first', 'x')
    redis.call('rpush', 'list', 'a', 'b')
    redis.call('incr', 'list')
    redis.call('set', 'never', 1)
    """
    _same(pair, script)
    pair.check_contents()
    assert pair.lsmkv.clients[0].ask("EXISTS", "first", "list", "never").value == 2


def test_a_monitor_sees_the_commands_of_a_script(pair: Pair) -> None:
    shown = []
    for side in (pair.redis, pair.lsmkv):
        assert side.clients[1].ask("MONITOR") == Reply("+", b"OK")
        script = "redis.call('set', 'k', 1) return redis.pcall('nosuch')"
        side.clients[0].ask("EVAL", script, 0)
        side.clients[0].ask("EVALSHA", "0" * 40, 0)
        lines = [side.clients[1].receive().value for _ in range(3)]
        shown.append([bytes(line).partition(b"] ")[2] for line in lines if isinstance(line, bytes)])
    assert shown[0] == shown[1]


# The libraries, with values at random


def _json_value(choices: random.Random, depth: int = 0) -> object:
    kind = choices.randrange(9 if depth < 4 else 6)
    if kind == 0:
        return choices.choice([None, True, False])
    if kind == 1:
        return choices.choice([0, 1, -1, 10**12, 2**53, choices.randrange(10**9)])
    if kind == 2:
        return choices.choice([0.5, -1.25e10, 1e-7, 123.456, choices.random()])
    if kind <= 5:
        letters = 'ab"\\/\n\t\x01\x7f\u00e9\u20ac\U0001f600 '
        return "".join(choices.choice(letters) for _ in range(choices.randrange(8)))
    if kind <= 7:
        return [_json_value(choices, depth + 1) for _ in range(choices.randrange(4))]
    return {"k": _json_value(choices, depth + 1)} if choices.random() < 0.8 else {}


def _broken(choices: random.Random, text: str) -> str:
    """A text with a few characters removed, replaced or added."""
    for _ in range(choices.randrange(1, 3)):
        at = choices.randrange(len(text) + 1)
        junk = choices.choice(
            ['"', "{", "]", ",", ":", "\\", "-", "e", "0", "x", "n", " ", "", "\\u12"]
        )
        text = text[:at] + junk + text[at + choices.randrange(2) :]
    return text


def test_json_is_read_and_written_alike(pair: Pair) -> None:
    choices = random.Random(SEED)
    for _ in range(COUNT // 10):
        value = _json_value(choices)
        text = json.dumps(value, ensure_ascii=choices.random() < 0.5)
        if choices.random() < 0.5:
            text = _broken(choices, text)
        _same(pair, "return cjson.encode(cjson.decode(ARGV[1]))", text)


def test_message_packs_are_read_and_written_alike(pair: Pair) -> None:
    choices = random.Random(SEED)
    script = "return cmsgpack.pack(cjson.decode(ARGV[1]))"
    for _ in range(COUNT // 20):
        text = json.dumps([_json_value(choices)])
        _same(pair, script, text)
        packed = pair.lsmkv.clients[0].ask("EVAL", script, 0, text).value
        assert isinstance(packed, bytes)
        if choices.random() < 0.5:
            packed = packed[: choices.randrange(len(packed) + 1)]
        if choices.random() < 0.5 and packed:
            at = choices.randrange(len(packed))
            # No mark of an array or map of many elements, for which Redis takes the memory at once.
            packed = packed[:at] + bytes([choices.randrange(0xDC)]) + packed[at + 1 :]
        _same(pair, "return cjson.encode({cmsgpack.unpack(ARGV[1])})", packed)


def test_structures_are_packed_alike(pair: Pair) -> None:
    choices = random.Random(SEED)
    for _ in range(COUNT // 10):
        options = [choices.choice(_STRUCT_OPTIONS) for _ in range(choices.randrange(1, 6))]
        values: list[object] = []
        for option in options:
            if option in "sc3":
                values.append("".join(choices.choice("abc") for _ in range(choices.randrange(5))))
            elif option[0] in "bBhHiIlLT":
                values.append(
                    choices.choice([0, 1, -1, 127, 255, -300, 70000, 2**31, -(2**40), 1.9])
                )
            elif option in "fd":
                values.append(choices.choice([0, 1.5, -0.1, 1e30, 1e-40, 3]))
        layout = "".join(options)
        _same(pair, "return struct.pack(ARGV[1], unpack(ARGV, 2))", layout, *values)
        data = bytes(choices.randrange(256) for _ in range(choices.randrange(40)))
        script = """
        local t = {struct.unpack(ARGV[1], ARGV[2])}
        for i, v in ipairs(t) do t[i] = type(v) == 'number' and string.format('%.17g', v) or v end
        return t"""
        _same(pair, script, layout, data)
        _same(pair, "return struct.size(ARGV[1])", layout)


def test_bits_are_operated_on_alike(pair: Pair) -> None:
    choices = random.Random(SEED)
    for _ in range(COUNT // 10):
        name = choices.choice(_BIT_FUNCTIONS)
        numbers = [
            choices.choice([*_NUMBERS, choices.randrange(2**32), -choices.randrange(2**31)])
            for _ in range(choices.randrange(1, 4))
        ]
        script = f"return tostring(bit.{name}({', '.join(map(str, numbers))}))"
        _same(pair, script)


def test_floating_point_numbers_are_packed_alike(pair: Pair) -> None:
    choices = random.Random(SEED)
    script = "return {struct.pack('>d', ARGV[1]), struct.pack('>f', ARGV[1]), cmsgpack.pack(ARGV[1] + 0)}"
    for _ in range(COUNT // 10):
        bits = choices.getrandbits(64)
        if choices.random() < 0.3:
            bits &= 0x800FFFFFFFFFFFFF | choices.choice([0, 0x3810 << 48, 0x47E0 << 48])
        (number,) = struct.unpack(">d", struct.pack(">Q", bits))
        if math.isfinite(number):
            _same(pair, script, repr(number))


def test_random_numbers_are_the_same(pair: Pair) -> None:
    script = "math.randomseed(ARGV[1]) return {math.random(10^9), math.random(5, 50), tostring(math.random())}"
    for seed in (0, 1, 7, 12345, 2**31 - 1, -3):
        _same(pair, script, seed)
