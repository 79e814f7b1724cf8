"""What a script can reach, and how much it may use."""

# ruff: noqa: E501 - a script is one line

from __future__ import annotations

import pytest
from serving import Client

from lsmkv.server.resp import CommandError, Reply
from lsmkv.server.scripts.sandbox import Sandbox, ScriptError, Stopped

pytest.importorskip("lupa")


class Forever:
    """Commands of a script that is to be stopped after a few looks at the time."""

    resp3 = False
    looks = 0

    def must_stop(self) -> bool:
        self.looks += 1
        return self.looks > 5

    def run(self, words: list[bytes]) -> Reply:
        if self.looks > 5:
            raise Stopped
        self.looks += words[0] == b"get"
        if words[0] == b"nosuch":
            self.looks += 1
            raise CommandError("ERR nosuch")
        return b"value"

    def set_resp3(self, resp3: bool) -> None:
        raise NotImplementedError

    def log(self, level: int, text: bytes) -> None:
        raise NotImplementedError

    def permits(self, words: list[bytes]) -> bool | None:
        raise NotImplementedError


HOSTILE = {
    "a loop with pcall": "while true do pcall(function() while true do end end) end",
    "a loop with xpcall": "local f = function() while true do end end while true do xpcall(f, f) end",
    "a loop that only calls pcall": "while true do pcall(error) end",
    "coroutines": "while true do coroutine.wrap(function() while true do end end)() end",
    "coroutines in coroutines": """
        local function nest()
            while true do pcall(coroutine.wrap(nest)) pcall(coroutine.resume, coroutine.create(nest)) end
        end
        nest()""",
    "a metamethod": "local t = setmetatable({}, {__index=function() while true do end end}) return t.x",
    "a reply of a billion values": "local t = {} for i = 1, 30 do t = {t, t} end return t",
    "a pattern": "return string.find(('a'):rep(250), '.-.-.-.-b')",
    "a text": "local s = ('a'):rep(2e6) return string.find(s, s:sub(1, 1e6) .. 'b', 1, true)",
    "a sort": "local t = {} for i = 1, 1e5 do t[i] = 1 end table.sort(t, rawequal) while true do end",
    "a reader of C": "return load(gcinfo)",
    "a comparison": "table.sort({1, 2, 3}, function() while true do end end)",
    "a replacement": "while true do string.gsub('aaa', 'a', function() while true do end end) end",
    "commands": "while true do redis.pcall('get', 'k') end",
    "errors of commands": "while true do pcall(redis.call, 'nosuch') end",
    "a reader": "return load(function() while true do end end)",
    "JSON": "while true do pcall(cjson.decode, ('['):rep(900)) end",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_every_endless_script_can_be_ended(client: Client, name: str) -> None:
    commands = Forever()
    sandbox = Sandbox(commands, "7.0.15")
    with pytest.raises(ScriptError):
        sandbox.run(sandbox.compile(HOSTILE[name].encode()), [], [], False, 1 << 26)
    commands.looks = -1000
    assert sandbox.run(sandbox.compile(b"return 'usable'"), [], [], False, 1 << 26) == b"usable"


TOO_LARGE = {
    "a string": "local s = 'x' while true do s = s .. s end",
    "a repetition": "return #string.rep('x', 1000000000)",
    "a table": "local t = {} while true do t[#t + 1] = {} end",
    "caught errors": "local t, n = {}, 0 while n < 100 do"
    " if not pcall(function() t[#t + 1] = ('x'):rep(100000) .. #t end) then n = n + 1 end end return 'end'",
    "a reply of a command": "local t = {} while true do t[#t + 1] = redis.call('lrange', 'l', 0, -1) end",
    "values of a command": "local t = {} while true do t[#t + 1] = redis.call('get', 's') .. #t end",
    "coroutines": "local t = {} while true do t[#t + 1] = coroutine.create(function() end) end",
    "a packed table": "local s = ('x'):rep(100000) local t = {}"
    " for i = 1, 1000 do t[i] = s end return #cmsgpack.pack(t)",
}  # fmt: skip


@pytest.mark.parametrize("name", TOO_LARGE)
def test_memory_is_bounded(client: Client, name: str) -> None:
    client("CONFIG SET script-max-memory 4mb")
    client("RPUSH", "l", *["x" * 100] * 1000)
    client("SET", "s", "x" * 100000)
    reply = client("EVAL", TOO_LARGE[name], "0")
    assert reply == b"end" or reply.startswith(("ERR not enough memory", "ERR user_script:1: not"))
    assert client("EVAL", "return {#ARGV[1], string.rep('x', 3)}", "0", "x" * 5000000) == [
        5000000,
        b"xxx",
    ]


@pytest.mark.parametrize(
    "script",
    [
        "return string.find(string.rep('a', 300000), string.rep('a?', 300000))",
        "return string.rep('', 2^31 - 1)",
        "local function f() return pcall(f) end return tostring(f())",
        "local function f() return f() + 1 end return f()",
        "local t = {} for i = 1, 100000 do t = {t} end return t",
        "local t = {} t[1] = t return t",
        "local t = {} t[1] = t return cjson.encode(t)",
        "local t = {} t.map = t return t",
        "error({})",
        "error(setmetatable({}, {__tostring = function() error('again') end}))",
        "return {unpack({}, 1, 1e8)}",
        "return redis.call(unpack(cjson.decode('[' .. ('1,'):rep(7000) .. '1]')))",
        "return string.format('%' .. ('9'):rep(100) .. 'd', 1)",
        "return loadstring(('('):rep(10000))",
        "return table.concat({}, 'x', 1, 1e9)",
        "return cmsgpack.unpack('\\221\\255\\255\\255\\255')",
        "return cmsgpack.unpack(('\\145'):rep(100000))",
        "return struct.unpack('c2147483647', 'x')",
        "return struct.pack('i2147483648', 1)",
        "return bit.tohex(0/0)",
        "return math.random(0/0)",
        "return tostring(setmetatable({}, {__index=setmetatable({}, {__index=_G})}).x)",
    ],
)
def test_what_ends_other_interpreters_ends_no_server(client: Client, script: str) -> None:
    client("EVAL", script, "0")
    assert client("EVAL", "return 1", "0") == 1


@pytest.mark.parametrize(
    "name",
    [
        "python",
        "os",
        "io",
        "debug",
        "package",
        "require",
        "module",
        "dofile",
        "loadfile",
        "print",
        "getfenv",
        "setfenv",
        "newproxy",
    ],
)
def test_what_is_not_for_scripts_is_not_there(client: Client, name: str) -> None:
    error = client("EVAL", f"return {name}", "0")
    assert f"attempted to access nonexistent global variable '{name}'" in error
    assert client("EVAL", f"return tostring(rawget(_G, '{name}'))", "0") == b"nil"


@pytest.mark.parametrize(
    "change",
    [
        "x = 1",
        "_G.x = 1",
        "rawset(_G, 'x', 1)",
        "string.rep = nil",
        "rawset(string, 'rep', 1)",
        "table.insert(string, 1)",
        "table.insert(_G, 1)",
        "getmetatable('').__index = {}",
        "getmetatable(_G).__index = {}",
        "getmetatable('').__index.rep = 1",
        "getmetatable('').__add = function() return 1 end",
        "setmetatable(string, {})",
        "for name, one in pairs(_G) do if type(one) == 'table' then table.insert(one, 1) end end",
        "redis.call = nil",
        "rawset(cjson, 'encode', nil)",
        "cjson.encode_max_depth(1)",
        "cjson.encode_sparse_array(true, 'x')",
        "local f = loadstring('x = 1') f()",
        "KEYS.x = 1 ARGV.x = 1",
    ],
)
def test_no_script_leaves_something_to_another(client: Client, change: str) -> None:
    client("EVAL", f"pcall(function() {change} end) {change}", "0")
    look = """
    local found = {rawget(_G, 'x'), rawget(_G, 1), rawget(string, 1), rawget(redis, 1), KEYS.x}
    local json = cjson.encode({{{}}}) .. tostring(cjson.encode_sparse_array())
    return {#found, ('a'):rep(2), type(redis.call), json, #KEYS}
    """
    assert client("EVAL", look, "0") == [0, b"aa", b"function", b"[[{}]]false", 0]


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("return f(" * 100_000, "script too long: 900000 bytes (limit 524288)"),
        ("local x return " + "x or " * 10_001 + "x", "script too complex: 10001 jumps"),
        ("while 1 do " + "if x then break end " * 10_001 + "end", "script too complex"),
        ("if x then " + "elseif x then " * 10_001 + "end", "script too complex"),
        ("local f = function(a, b, c, d, ...) return ... end", "more than 3 named parameters"),
    ],
)
def test_a_script_that_takes_long_to_compile_is_refused(
    client: Client, script: str, problem: str
) -> None:
    error = client("SCRIPT", "LOAD", script)
    assert error.startswith("ERR Error compiling script (new function): ")
    assert problem in error
    assert problem in client("EVAL", "return select(2, loadstring(ARGV[1]))", "0", script).decode()


@pytest.mark.parametrize("count", [7899, 7900, 7999])
def test_a_command_has_as_many_words_as_unpack_gives(client: Client, count: int) -> None:
    script = f"local t = {{}} for i = 1, {count} do t[i] = i end return redis.call('rpush', 'l', unpack(t))"
    assert client("EVAL", script, "0") == count
    assert client("LRANGE l 0 0") == [b"1"]
    assert client("LINDEX l -1") == str(count).encode()


def test_a_long_script_that_is_simple_is_run(client: Client) -> None:
    script = "local t = {}\n" + "t[#t + 1] = 'a word'\n" * 20_000 + "return redis.call('echo', #t)"
    assert client("EVAL", script, "0") == b"20000"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("return setmetatable({}, {__index = function() redis.call('set', 'k', 1) return 1 end})", []),
        ("return {map = setmetatable({}, {__index = rawequal})}", []),
        ("return setmetatable({1, nil, 3}, {__index = function() return 2 end})", [1]),
        ("return {setmetatable({}, {__index = coroutine.wrap(function() end)})}", [[]]),
        ("return cjson.encode(setmetatable({1, [3] = 3}, {__index = gcinfo}))", b"[1,null,3]"),
        ("return setmetatable({err = 'x'}, {__index = function() redis.call('set', 'k', 1) end})", "x"),
        ("local t = setmetatable({}, {}) getmetatable(t).__index = t return t", []),
    ],
)  # fmt: skip
def test_a_reply_is_read_raw(client: Client, script: str, expected: object) -> None:
    assert client("EVAL", script, "0") == expected
    assert client("EXISTS", "k") == 0


def test_values_from_python_are_copies(client: Client) -> None:
    """No value that a script can get hold of is an object of Python's."""
    client("HSET h a 1")
    script = """
    local seen, kinds = {}, {}
    local function walk(value)
        local kind = type(value)
        kinds[kind] = true
        if kind == 'table' and not seen[value] then
            seen[value] = true
            for key, one in pairs(value) do walk(key) walk(one) end
        elseif kind == 'userdata' and value ~= cjson.null then
            error('an object: ' .. tostring(value))
        end
    end
    walk(_G)
    walk({pcall(redis.call, 'hgetall', 'h')})
    walk({pcall(redis.call, 'nosuch')})
    walk({pcall(redis.sha1hex, 'x')})
    walk({pcall(redis.log, 3, 'x')})
    return 'none'
    """
    assert client("EVAL", script, "0") == b"none"


def test_random_numbers_follow_from_any_seed(client: Client) -> None:
    script = "math.randomseed({}) return tostring(math.random())"
    zero = client("EVAL", script.format("0"), "0")
    for seed in ("0/0", "1/0", "-1/0"):
        assert client("EVAL", script.format(seed), "0") == zero


def test_a_message_for_the_log_is_bounded() -> None:
    class Logged(Forever):
        def log(self, level: int, text: bytes) -> None:
            messages.append((level, text))

    messages: list[tuple[int, bytes]] = []
    sandbox = Sandbox(Logged(), "7.0.15")
    sandbox.run(sandbox.compile(b"redis.log(3, 'a', ('x'):rep(1e5))"), [], [], False, 1 << 26)
    assert messages == [(3, b"a " + b"x" * 4094)]


def test_bytecode_is_not_loaded(client: Client) -> None:
    script = "return {tostring(loadstring(string.dump(function() end)))}"
    assert client("EVAL", script, "0") == [b"nil"]
    assert "bytecode" in client("EVAL", b"\x1bLua", "0")
