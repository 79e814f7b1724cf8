"""Faults of Lua 5.1 and of Redis' libraries for it: each has the scripts that used it.

They run in a process of their own, which some of them ended.
"""

# ruff: noqa: E501 - a script is one line

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("lupa")

LOOK = "return {rawget(_G, 'x'), type(redis.call), ('a'):rep(2), #cjson.encode({1})}"
VARARG = ", ".join(f"p{number}" for number in range(180))
FAULTS: dict[str, list[tuple[str, str]]] = {
    "CVE-2014-5461: variable arguments after many named ones": [
        (f"local function f({VARARG}, ...) local a = ... return a end return f()", "more than 3 named"),
        (f"return tostring(loadstring('return function({VARARG}, ...) return ... end'))", "nil"),
        ("local function f(a, b, c, ...) return select('#', ...) end return f(1)", "0"),
        (f"local function f({VARARG}) return p0 end return f(1)", "1"),
    ],
    "CVE-2015-4335: bytecode": [
        ("return tostring(loadstring(string.dump(function() end)))", "nil"),
        ("local s = string.dump(function() end) return tostring(load(function() local r = s s = nil return r end))", "nil"),
        ("\x1bLuaQ", "bytecode is not loaded"),
    ],
    "CVE-2015-8080, CVE-2020-14147: integers of struct": [
        ("return struct.pack('i99999999999999999999', 1)", "integral size overflow"),
        ("return struct.size('c99999999999999999999')", "integral size overflow"),
        ("return struct.unpack('i2147483648', 'x')", "integral size overflow"),
        ("return struct.pack('!' .. ('9'):rep(400) .. 'i', 1)", "\x01\x00\x00\x00"),
    ],
    "CVE-2018-11218: values of cmsgpack": [
        ("return cmsgpack.unpack(('\\145'):rep(1000000))", "stack overflow"),
        ("return cmsgpack.unpack(('\\221\\255\\255\\255\\255'):rep(10000))", "Missing bytes"),
        ("return select('#', cmsgpack.unpack(('\\1'):rep(9000)))", "too many results to unpack"),
        ("local t = {} for i = 1, 100 do t = {t} end return #cmsgpack.pack(t)", "17"),
        ("return #cmsgpack.pack(unpack({}, 1, 7000))", "7000"),
    ],
    "CVE-2018-11219: offsets of struct": [
        ("return struct.unpack('c0', 'x')", "needs a previous size"),
        ("return struct.unpack('i8c0', ('\\255'):rep(9))", "data string too short"),
        ("return struct.unpack('i4', 'abcd', 2^31)", "data string too short"),
        ("return struct.unpack('i4', 'abcd', -1)", "offset must be 1 or greater"),
        ("return struct.unpack('c2147483647', 'x')", "data string too short"),
    ],
    "CVE-2021-32626: many values on the stack": [
        ("return redis.call('set', unpack({}, 1, 7990))", "must be strings or integers"),
        ("local t = {} for i = 1, 9000 do t[i] = 'x' end return redis.call('get', unpack(t))", "too many results to unpack"),
        ("local t = {} for i = 1, 1900 do t = {t} end return t", "*1\\r\\n"),
        ("local t = {} for i = 1, 9000 do t = {t} end return t", "reached lua stack limit"),
        ("return select('#', string.byte(('x'):rep(9000), 1, -1))", "string slice too long"),
    ],
    "CVE-2022-0543: a library that loads others": [
        ("return package.loadlib", "nonexistent global variable 'package'"),
        ("return require", "nonexistent global variable 'require'"),
    ],
    "CVE-2022-24735, CVE-2025-46818: code for the scripts of others": [
        ("x = 1", "Attempt to modify a readonly table"),
        ("redis.call = 1", "Attempt to modify a readonly table"),
        ("rawset(_G, 'x', 1)", "Attempt to modify a readonly table"),
        ("setmetatable(_G, nil)", "Attempt to modify a readonly table"),
        ("table.insert(redis, 1)", "Attempt to modify a readonly table"),
        ("table.insert(_G, 1, 1)", "Attempt to modify a readonly table"),
        ("getmetatable('').__index = {}", "Attempt to modify a readonly table"),
        ("getmetatable('').__index.rep = 1", "Attempt to modify a readonly table"),
        ("getmetatable(1).x = 1", "attempt to index"),
        (LOOK, "*0"),
    ],
    "CVE-2022-24736: scripts that do not compile": [
        ("return loadstring('return ' .. ('('):rep(1000))", "None"),
        ("local f = loadstring(('x'):rep(1000, ' ')) return f()", "attempt to call"),
        ("return error()", "ERR"),
        ("return error(nil)", "ERR"),
        ("return pcall(error)", "None"),
        ("error({err = {}})", "unknown error"),
        ("error(coroutine.create(print or type))", "nonexistent"),
    ],
    "CVE-2022-24834: lengths of cjson and cmsgpack": [
        ("return cjson.encode(('\\1'):rep(2^23))", "not enough memory"),
        ("local s = ('x'):rep(2^23) return #cmsgpack.pack({s, s, s, s, s})", "not enough memory"),
    ],
    "CVE-2024-31449: digits of bit.tohex": [
        ("return bit.tohex(65535, -2147483648)", "0000FFFF"),
        ("return bit.tohex(-1, 2147483647)", "ffffffff"),
        ("return bit.tohex(0, 2^32)", ""),
    ],
    "CVE-2024-46981: finalizers": [
        ("return newproxy", "nonexistent global variable 'newproxy'"),
        ("return setmetatable(cjson.null, {})", "table expected, got userdata"),
        ("return tostring(getmetatable(cjson.null))", "false"),
    ],
    "CVE-2025-46817: ranges of unpack": [
        ("return unpack({}, -2147483648, 2147483647)", "too many results to unpack"),
        ("return unpack({}, 0, 2147483647)", "too many results to unpack"),
        ("return tostring(select(2, pcall(unpack, {}, 1, 2147483647)))", "too many results to unpack"),
        ("return unpack({}, -1/0, 1/0)", "too many results to unpack"),
        ("return select('#', unpack({}, 2147483647, -2147483648))", "0"),
        ("return select('#', unpack({}, 2147483640, 2147483647))", "8"),
        ("return select('#', unpack({}, 0/0, 0/0))", "1"),
    ],
    "CVE-2025-46819: long brackets": [
        ("return tostring(loadstring('[' .. ('='):rep(100000)))", "nil"),
        ("return #loadstring('return [' .. ('='):rep(1000) .. '[x]' .. ('='):rep(1000) .. ']')()", "1"),
        ("return tostring(loadstring(('='):rep(2^20)))", "nil"),
    ],
    "CVE-2025-49844: a chunk's name is collected while its text is read": [
        ("for i = 1, 200 do load(function() collectgarbage() return nil end, 'x' .. i) end return 1", "1"),
        ("local n = 0 local f = load(function() n = n + 1 collectgarbage() return n < 50 and 'local a' .. n .. ' = 1 ' or nil end, 'y' .. n) f() return n", "50"),
    ],
}  # fmt: skip

CHILD = """
import json, sys
from lsmkv.server.scripts.sandbox import Sandbox, ScriptError

class Nothing:
    resp3 = False
    def must_stop(self): return False
    def run(self, words): return b"value"
    def set_resp3(self, resp3): pass
    def log(self, level, text): pass
    def exists(self, name): return False

sandbox = Sandbox(Nothing(), "7.0.15")
for number, script in enumerate(json.load(sys.stdin)):
    print(number, end=" ", flush=True)
    try:
        found = sandbox.run(sandbox.compile(script.encode("latin-1")), [], [], False, 1 << 25)
        text = found.decode("latin-1") if isinstance(found, bytes) else str(found)
    except ScriptError as error:
        text = str(error.args[0])
    print(json.dumps(text), flush=True)
"""


@pytest.mark.parametrize("name", FAULTS)
def test_no_script_uses_a_known_fault(name: str) -> None:
    scripts = [script for script, _ in FAULTS[name]]
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps(scripts),
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"{scripts[len(lines) - 1]}: {done.returncode} {done.stderr}"
    for (script, expected), line in zip(FAULTS[name], lines, strict=True):
        text = json.loads(line.partition(" ")[2])
        assert expected.encode().decode("unicode_escape") in text, f"{script}: {text}"
