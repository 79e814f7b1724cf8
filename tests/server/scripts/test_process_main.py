"""What runs in the process of scripts; ``test_isolated.py`` has what clients see of it."""

from __future__ import annotations

import math
import os

import pytest

from lsmkv.engine.env.process import interpreter
from lsmkv.server.resp import NULL_ARRAY, CommandError, Members, Pairs, Reply
from lsmkv.server.scripts.process import ScriptProcess

pytest.importorskip("lupa")
pytestmark = pytest.mark.skipif(not interpreter(), reason="no process can be started")


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        (b"value", b"string value"),
        (7, b"number 7"),
        (None, b"nil nil"),
        (NULL_ARRAY, b"nil nil"),
        (CommandError("ERR none"), b"table ERR none"),
        (Members([b"a"]), b"table set"),
        (Pairs([(b"m", 1.0)]), b"table 1"),
        ({b"k": 1}, b"table map"),
    ],
)
def test_replies_of_commands_keep_their_types(reply: Reply, shown: bytes) -> None:
    script = b"""
    redis.setresp(3)
    local found = redis.pcall('any')
    local name, value = tostring(found)
    if type(found) == 'table' and found.err then name = found.err
    elseif type(found) == 'table' then name, value = next(found) end
    if type(value) == 'string' then name = name .. ' ' .. value end
    return type(found) .. ' ' .. name
    """
    process = ScriptProcess("7.0.15", 1 << 24, 1 << 30)
    process.send(("run", b"sha", script, [], [], False, 1 << 24))
    assert process.receive(math.inf) == [b"compiled"]
    assert process.receive(math.inf) == [b"resp3", b"1"]
    assert process.receive(math.inf) == [b"call", b"any"]
    process.send(reply)
    assert (process.receive(math.inf) or [])[1] == b"$%d\r\n%b\r\n" % (len(shown), shown)
    process.close()


@pytest.mark.skipif(not os.path.exists("/proc/self/limits"), reason="only Linux shows them")
def test_it_may_do_little() -> None:
    process = ScriptProcess("7.0.15", 1 << 24, 1 << 30)
    process.send(("load", b"sha", b"return 1"))
    assert process.receive(math.inf) == [b"compiled"]
    with open(f"/proc/{process.pid}/limits", encoding="ascii") as lines:
        limits = {line[:26].strip(): line[26:].split()[:2] for line in lines}
    assert limits["Max address space"] == [str((2 << 24) + (192 << 20))] * 2
    for name in ("Max core file size", "Max file size", "Max processes"):
        assert limits[name] == ["0", "0"]
    assert limits["Max open files"] == ["1", "1"]
    process.close()
