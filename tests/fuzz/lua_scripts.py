"""Hostile scripts: ``lua_scripts.py [--scripts N] [--seconds S] [--seed S] [--first N] [--show]``.

Each script is made by a grammar from every function that a script can reach, with arguments at
their edges, and runs in the interpreter of the server, in a process of its own.  Every second one
is a library, of which a function runs twice.  It may return or raise what it likes.  It may not
end the process, go on for a second after it was told to end, or leave anything to the script after
it.

A script follows from the seed and its number: ``--seed S --first N --scripts 1 --show`` prints one,
and runs it again.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time

from lsmkv.server.resp import CommandError, Members, Reply, Simple
from lsmkv.server.scripts.sandbox import Sandbox, ScriptError

ENOUGH = 0.05
"""Seconds of a script before it is told to end."""
STALL = 1.0
"""Seconds of the processor that it may go on for, or take between two looks at the time."""
HANG = 60.0
"""Seconds after which the process is ended."""
MEMORY = (4 << 20, 4 << 20, 64 << 20)
"""Bytes, as in the loop's thread and in another."""
NUMBERS = [
    '0', '1', '2', '-1', '-2', '3', '16', '255', '256', '1000', '7999', '8000', '65536', '2^31',
    '2^31-1', '-2^31', '-2^31-1', '2^32', '2^53', '2^63', '-2^63', '1/0', '-1/0', '0/0', '1e308',
    '-1e308', '5e-324', '0.5', '-0.5', "'7'", "'0x10'", "'-1'",
]  # fmt: skip
TEXTS = [
    "''", "'a'", "'ab'", "'\\0'", "'\\255'", "'a,b,c'", "'%'", "'%d'", "'%99.99f'", "'%q'",
    "'%s'", "'['", "'('", "')'", "'()'", "'.-'", "'.*'", "'a?'", "'.-.-.-.-b'", "'^(.-)%s*$'",
    "'%b()'", "'%f[a]'", "'[^]'", "'(a*)*'", "'%1'", "'[%a-z]'", "'{'", "'[['",
    '\'{"a":[1,null]}\'', "'['", "'\\145'", "'\\221\\255\\255\\255\\255'", "'\\217\\255'", "'i4'",
    "'>I8c0'", "'!16'", "'c0'", "'get'", "'set'", "'on'", "'collect'", "'k'", "'x or '",
    "'return ...'", "'return f('",
]  # fmt: skip
SIZES = ["10", "100", "1e3", "1e4", "1e5", "1e6", "3e6", "2^31"]
SHAPES = [
    "{}", "{1, 2, 3}", "{{}, {{}}}", "{nil, 1}", "{[2^31] = 1}", "{err = 1}", "{ok = 'x'}",
    "{map = {1}}", "{set = {}}", "{double = 0/0}", "{big_number = '1'}", "{err = ('\\n'):rep(1e5)}",
    "_G", "redis", "string", "table", "KEYS", "ARGV", "getmetatable('')", "cjson.null", "T", "S",
    "setmetatable({}, {__index = F, __newindex = F, __call = F})",
    "setmetatable({}, {__lt = F, __eq = F, __concat = F, __tostring = F})",
    "setmetatable({}, {__mode = 'k'})", "coroutine.create(F)", "coroutine.wrap(F)", "many(1e4)",
    "many(2e5)", "nested(50)", "nested(3000)", "shared(30)", "true", "false", "nil", "print", "...",
]  # fmt: skip
FUNCTIONS = [
    "function(a, b) return a, b end", "function() end", "function() while true do end end",
    "function(...) return ... end", "function(a) return tostring(a) < 'b' end",
    "function() error({err = 'x'}) end", "function() error('x', 0) end",
    "function(a, b) return F(b, a) end", "function() coroutine.yield(1) end",
    "function() return redis.call('set', 'k', 'v') end",
    "function() collectgarbage() return 'x' end",
]  # fmt: skip
WANTED = {
    "string.rep": "sn", "string.find": "spnv", "string.match": "spn", "string.gmatch": "sp",
    "string.gsub": "spRn", "string.format": "svvv", "string.byte": "snn", "string.char": "nnn",
    "string.sub": "snn", "string.upper": "s", "string.reverse": "s", "string.dump": "f",
    "string.len": "s", "string.lower": "s", "table.concat": "tsnn", "table.insert": "tnv",
    "table.remove": "tn", "table.sort": "tf", "table.foreach": "tf", "table.foreachi": "tf",
    "table.maxn": "t", "table.getn": "t", "unpack": "tnn", "select": "nvvv", "tonumber": "sn",
    "loadstring": "sv", "load": "fv", "pcall": "fvv", "xpcall": "ff", "next": "tv", "pairs": "t",
    "ipairs": "t", "rawget": "tv", "rawset": "tvv", "rawequal": "vv", "setmetatable": "tt",
    "getmetatable": "v", "tostring": "v", "type": "v", "error": "vn", "assert": "v",
    "coroutine.create": "f", "coroutine.wrap": "f", "coroutine.resume": "vvv",
    "cjson.encode": "v", "cjson.decode": "s", "cmsgpack.pack": "vv", "cmsgpack.unpack": "s",
    "cmsgpack.unpack_one": "sn", "cmsgpack.unpack_limit": "snn", "struct.pack": "snsn",
    "struct.unpack": "ssn", "struct.size": "s", "redis.call": "sss", "redis.pcall": "sss",
    "redis.sha1hex": "s", "redis.log": "ns", "redis.error_reply": "s", "redis.status_reply": "s",
    "bit.tohex": "nn", "math.random": "nn", "math.randomseed": "n", "collectgarbage": "vn",
}  # fmt: skip
"""What the arguments of a function are: s a text, p a pattern, n a number, t a table, f a function,
R a replacement, v anything."""
PRELUDE = """
local function many(n) local t = {} for i = 1, n do t[i] = i % 7 end return t end
local function nested(n) local t = {} for i = 1, n do t = {t} end return t end
local function shared(n) local t = {} for i = 1, n do t = {t, t} end return t end
local T, S, F, x, y = {}, 'abc', function(...) return ... end
T.T, T[1] = T, 'a'
"""
LIST = """
local names = {}
for library, one in pairs(_G) do
  if type(one) == 'function' then names[#names + 1] = library end
  if type(one) == 'table' and one ~= _G then
    for name, inner in pairs(one) do
      if type(inner) == 'function' then names[#names + 1] = library .. '.' .. name end
    end
  end
end
table.sort(names)
return table.concat(names, ' ')
"""
LOOK = b"""
local found = {next(_G), next(redis), next(string), rawget(_G, 'x'), next(KEYS)}
local works = ('a'):rep(2) .. type(redis.call) .. cjson.encode({{{}}})
return #found .. works .. select('#', unpack({1}))
"""
CLEAN = b"0aafunction[[{}]]1"


class Grammar:
    """Makes one script."""

    def __init__(self, rng: random.Random, names: list[str]) -> None:
        self._rng = rng
        self._names = names

    def script(self) -> str:
        """A prelude and a few statements."""
        return PRELUDE + self._body()

    def library(self) -> str:
        """A function with a few statements.  It keeps what it has made for its next call."""
        return (
            f"{PRELUDE}redis.register_function('f', function(KEYS, ARGV, ...)\n{self._body()}\nend)"
        )

    def _body(self) -> str:
        body = "\n".join(self._statement(3) for _ in range(self._rng.randrange(1, 6)))
        return f"{body}\n{self._rng.choice(['', f'return {self._value(2)}'])}"

    def _statement(self, depth: int) -> str:
        kind = self._rng.randrange(14)
        call = self._call(depth)
        if kind < 7 or depth == 0:
            return f"pcall(function(...) {self._rng.choice('xyS')} = {call} end, {self._value(1)})"
        if kind == 7:
            return f"while true do x = {call} end"
        if kind == 8:
            return f"while true do pcall(function(...) x = {call} end) end"
        if kind == 9:
            return f"for i = 1, {self._rng.choice(SIZES)} do {self._statement(depth - 1)} end"
        if kind == 10:
            return f"pcall(function(...) T[{self._value(1)}] = {self._value(depth)} end)"
        if kind == 11:
            return f"pcall(function(...) for a, b in {call}, {self._table(1)} do y = a end end)"
        if kind == 12:
            return f"{self._rng.choice('xy')} = {self._value(0)}"
        return f"F = {self._function(0)}"

    def _call(self, depth: int) -> str:
        rng = self._rng
        name = rng.choice(list(WANTED)) if rng.random() < 0.8 else rng.choice(self._names)
        kinds = WANTED.get(name, "nn")
        kinds = kinds[: rng.randrange(len(kinds) + 1) or 1] if rng.random() < 0.3 else kinds
        given = [self._argument(kind if rng.random() < 0.93 else "v", depth - 1) for kind in kinds]
        return f"{name}({', '.join(given)})"

    def _argument(self, kind: str, depth: int) -> str:
        if kind == "R":
            kind = self._rng.choice("stf")
        made = {
            "s": self._text, "p": self._pattern, "n": self._number, "t": self._table,
            "f": self._function, "v": self._value,
        }  # fmt: skip
        return made[kind](depth)

    def _text(self, depth: int) -> str:
        rng = self._rng
        if rng.random() < 0.4:
            return f"({rng.choice(TEXTS)}):rep({rng.choice(SIZES)})"
        if depth > 0 and rng.random() < 0.3:
            return self._call(depth)
        return rng.choice([*TEXTS, "S", "x", "S .. S", "S .. 'b'"])

    def _pattern(self, depth: int) -> str:
        parts = ["a", ".", "%a", "[ab]", "(a", ")", "()", "%1", "%b()", "%f[a]", "$", "b"]
        suffixes = ["", "*", "+", "-", "?"]
        rng = self._rng
        if rng.random() < 0.2:
            return self._text(depth)
        made = "".join(rng.choice(parts) + rng.choice(suffixes) for _ in range(rng.randrange(1, 8)))
        return f"'{rng.choice(['', '^'])}{made}'"

    def _number(self, depth: int) -> str:
        return self._rng.choice([*NUMBERS, *SIZES, "#S", "#T"])

    def _table(self, depth: int) -> str:
        return self._rng.choice([*SHAPES, "T", "T", "x"])

    def _function(self, depth: int) -> str:
        rng = self._rng
        return rng.choice(self._names) if rng.random() < 0.4 else rng.choice(FUNCTIONS)

    def _value(self, depth: int) -> str:
        rng = self._rng
        if depth > 0 and rng.random() < 0.3:
            return self._call(depth)
        return self._argument(rng.choice("sspnntf"), 0)


class Commands:
    """Commands of a script, and the clock that ends it."""

    resp3 = False

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """A script begins."""
        self.deadline = time.perf_counter() + ENOUGH
        self.looked = time.thread_time()
        self.longest = 0.0

    def must_stop(self) -> bool:
        """Note the time since the last look."""
        now = time.thread_time()
        self.longest = max(self.longest, now - self.looked)
        self.looked = now
        return time.perf_counter() > self.deadline

    def run(self, words: list[bytes]) -> Reply:
        """A reply of any kind, by the length of the request."""
        self.must_stop()
        replies: list[Reply] = [
            b"value", 7, None, [b"a", [1, None]], Simple("OK"), b"x" * 2_000_000, [b"y"] * 5000,
            {b"a": 1.5}, Members([b"m"]), True,
        ]  # fmt: skip
        size = sum(map(len, words)) % (len(replies) + 1)
        if size == len(replies):
            raise CommandError("ERR nosuch")
        return replies[size]

    def set_resp3(self, resp3: bool) -> None:
        """``redis.setresp``."""
        self.resp3 = resp3

    def log(self, level: int, text: bytes) -> None:
        """``redis.log``."""

    def permits(self, words: list[bytes]) -> bool | None:
        """``redis.acl_check_cmd``."""
        return None if words[0] == b"set" else words[0] == b"get"


def run_inside(seed: int, first: int, last: int, show: bool) -> None:
    """Run scripts in this process, and print the number of each before it runs."""
    commands = Commands()
    sandbox = Sandbox(commands, "7.0.15")
    names = sandbox.run(sandbox.compile(LIST.encode()), [], [], False, MEMORY[-1])
    assert isinstance(names, bytes)
    functions = names.decode().split()
    for number in range(first, last):
        rng = random.Random(f"{seed} {number}")
        grammar, library = Grammar(rng, functions), number % 2 == 1
        source = grammar.library() if library else grammar.script()
        print(number, flush=True)
        if show:
            print(source, flush=True)
        called = (b"", b"f", b"f") if library else (None,)
        commands.begin()
        try:
            function = sandbox.compile(source.encode("latin-1"), library)
        except ScriptError as error:
            called = ()
            if show:
                print(error.args)
        for name in called:
            commands.begin()
            try:
                sandbox.run(function, [b"k"], [b"a"], rng.random() < 0.5, rng.choice(MEMORY), name)
            except ScriptError as error:
                if show:
                    print(error.args)
            commands.must_stop()
        if show:
            print(f"{commands.longest:.3f} s")
        if commands.longest > STALL:
            print(f"stall {commands.longest:.3f}", flush=True)
        commands.begin()
        commands.deadline += HANG
        found = sandbox.run(sandbox.compile(LOOK), [], [], False, MEMORY[0])
        if found != CLEAN:
            print(f"left {found!r}", flush=True)


def main() -> int:
    """Run what is asked for; 1 if there was a finding."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scripts", type=int, default=10**9)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="print each script")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    last = given.first + given.scripts
    if given.inside or given.show:
        run_inside(given.seed, given.first, last, given.show)
        return 0
    number, findings, until = given.first, 0, time.monotonic() + given.seconds
    while number < last and time.monotonic() < until:
        stop = min(last, number + 500)  # a new process now and then
        command = [sys.executable, __file__, "--inside", "--seed", str(given.seed)]
        command += ["--first", str(number), "--scripts", str(stop - number)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            number, problems = _watch(child, number)
            for problem in problems:
                findings += 1
                print(problem, flush=True)
    print(f"scripts {number - given.first:,}, findings: {findings}")
    return 1 if findings else 0


def _watch(child: subprocess.Popen[str], number: int) -> tuple[int, list[str]]:
    """Follow a process to its end: the number of the next script, and findings."""
    import threading

    problems = []
    assert child.stdout is not None
    timer = threading.Timer(HANG, child.kill)
    timer.start()
    for line in child.stdout:
        if line.strip().isdigit():
            timer.cancel()
            timer = threading.Timer(HANG, child.kill)
            timer.start()
            number = int(line) + 1
        else:
            problems.append(f"script {number - 1}: {line.strip()}")
    timer.cancel()
    if child.wait() != 0:
        problems.append(f"script {number - 1}: the process ended with {child.returncode}")
    return number, problems


if __name__ == "__main__":
    sys.exit(main())
