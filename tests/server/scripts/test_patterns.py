"""Patterns that C would not end, and that others match as in C."""

from __future__ import annotations

import importlib.resources
import random

import pytest

lua51 = pytest.importorskip("lupa.lua51")

SOURCE = importlib.resources.files("lsmkv.server.scripts").joinpath("lua/patterns.lua").read_bytes()
ITEMS = (  # at the blanks
    r"a b . %a %d %s %w %A %. [ab] [^a] [%w_] [a-c] []] [^]] [%]] %bab %b() %f[%w] "
    r"%f[^a] %1 %2 ( ) () (a) (.-) (.*) (a+) ^ $ % [ [^ %f %b %0 ZERO $a ^a - * + ?"
)
SUFFIXES = ["", "", "", "*", "+", "-", "?"]
CALLS = """
local text, subject, pattern, replacement, start, plain = ...
local function all(ok, ...)
  local words = {tostring(ok), n = select("#", ...)}
  for at = 1, words.n do
    local word = select(at, ...)
    words[at + 1] = string.gsub(tostring(word), "^[^ ]*:%d+: ", "")
  end
  return table.concat(words, "|")
end
local function walk()
  local out = {}
  for one, other in text.gmatch(subject, pattern) do
    out[#out + 1] = tostring(one) .. tostring(other)
  end
  return table.concat(out, ";")
end
local shown = function(...) return select("#", ...) > 1 and tostring((select(2, ...))) end
return table.concat({
  all(pcall(text.find, subject, pattern, start)),
  all(pcall(text.find, subject, pattern, start, plain)),
  all(pcall(text.match, subject, pattern, start)), all(pcall(walk)),
  all(pcall(text.gsub, subject, pattern, replacement)),
  all(pcall(text.gsub, subject, pattern, shown)),
  all(pcall(text.gsub, subject, pattern, {a = "A", b = false, ab = 1}, 2)),
}, "\\n")
"""


def test_patterns_match_as_in_c() -> None:
    """Every call goes to the matcher here, however few steps it takes."""
    lua = lua51.LuaRuntime(encoding=None)
    never_in_c = SOURCE.replace(b"FEW = 1e5", b"FEW = -1").replace(b"MANY = 1e7", b"MANY = -1")
    assert never_in_c != SOURCE
    text = lua.compile(never_in_c)(lua.eval(b"function() end"))
    ours, theirs = lua.compile(CALLS.encode(), name="=calls"), lua.globals()[b"string"]
    rng = random.Random(64)
    items = ITEMS.replace("ZERO", "\0").split(" ")
    for _ in range(4000):
        chosen = [rng.choice(items) + rng.choice(SUFFIXES) for _ in range(rng.randrange(1, 6))]
        pattern = "".join(chosen).encode()
        subject = "".join(rng.choices("aabbc() 1.]\0", k=rng.randrange(10))).encode()
        replacement = rng.choice([b"x", b"%0%0", b"<%1>", b"%%", b"%2", b"%", 7])
        arguments = subject, pattern, replacement, rng.choice([None, 1, 2, -1, -20, 20, 1.7]), True
        assert ours(text, *arguments) == ours(theirs, *arguments), arguments


def test_slow_patterns_are_counted() -> None:
    """Nothing goes to C whose steps are more than the bound, whatever the pattern."""
    lua = lua51.LuaRuntime(encoding=None)
    looks: list[int] = []
    text = lua.compile(SOURCE)(lambda: looks.append(1))
    find, rep = text[b"find"], text[b"rep"]
    assert find(b"k:1:x", b"^(.-):(.-):(.*)$") == (1, 5, b"k", b"1", b"x")
    assert not looks
    assert find(rep(b"a", 60), b".-.-.-b") is None
    assert len(looks) == 1
    assert find(rep(b"ab", 5000), b"^(.-)b(.-)b(.-)b(.*)$")[0] == 1
    assert find(rep(b"a", 3000) + rep(b"b", 3000), rep(b"b", 2999), 1, True) == (3001, 5999)
    assert len(looks) > 2
