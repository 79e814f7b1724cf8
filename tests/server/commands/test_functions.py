"""FUNCTION and FCALL: replies are compared with those of Redis in ``tests/redis``."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import pytest
from busy_scripts import BUSY, KILLED, busy, over_limit
from serving import PLACES, Client, an_engine
from transcripts import Section, transcript
from wire import Wire

from lsmkv import MemoryEnv
from lsmkv.server import Server
from lsmkv.server.commands.dumping import sealed
from lsmkv.server.rdb import encoded_string
from lsmkv.server.script_choice import ScriptChoice
from lsmkv.server.scripts.evaluator import MOST_COMPILED

pytest.importorskip("lupa")

COUNTER = "#!lua name=counter\nredis.register_function('up', function(keys) return {} end)".replace(
    "{}", "redis.call('incr', keys[1])"
)
FOREVER = "#!lua name=t\nredis.register_function('forever', function() while true do end end)"


@pytest.fixture(params=PLACES)
def scripts(request: pytest.FixtureRequest) -> str:
    """In the server, and in a process of their own."""
    place: str = request.param
    return place


def of(place: str, env: MemoryEnv | None = None, **settings: Any) -> Any:
    return an_engine(env, scripts=ScriptChoice(place), **settings)


@transcript("functions.txt")
def test_the_transcript(section: Section, scripts: str) -> None:
    section.settings["scripts"] = ScriptChoice(scripts)
    section.play()


def test_functions_survive_a_restart(scripts: str) -> None:
    env = MemoryEnv()
    with of(scripts, env) as engine:
        client = Client(engine)
        client("FUNCTION", "LOAD", COUNTER)
        engine.commit()
    with of(scripts, env) as engine:
        client = Client(engine)
        assert b"number_of_functions:1\r\nnumber_of_libraries:1\r\n" in client("INFO memory")
        client.plays(("FCALL up 1 n", 1), ("SCRIPT FLUSH", b"OK"), ("FCALL up 1 n", 2))
        engine.commit()
    with of(scripts, env, read_only=True) as engine:
        refused = "READONLY You can't write against a read only replica."
        client = Client(engine)
        assert client("FCALL up 1 n").startswith(f"{refused} script: up, on @user_function:2.")
        assert client("FUNCTION", "LOAD", COUNTER) == refused
        assert client("FUNCTION FLUSH") == refused


def test_a_library_that_does_not_end_is_not_kept(client: Client) -> None:
    client("CONFIG SET script-max-time 0")
    for _ in range(2):  # the second time it is compiled
        error = client("FUNCTION", "LOAD", "#!lua name=t\nwhile 1 do end")
        assert error == "ERR Error registering functions: ERR FUNCTION LOAD timeout"
    many = "#!lua name=t\nlocal t = {} for i = 1, 1e9 do t[i] = 'no-writes' end"
    assert client("FUNCTION", "LOAD", many).startswith("ERR Error registering functions: ERR ")
    assert client("FUNCTION", "LOAD", COUNTER) == b"counter"
    client.plays(("FCALL up 1 n", 1), ("FUNCTION LIST LIBRARYNAME t", []))


def test_a_library_is_loaded_anew(client: Client) -> None:
    """What is local to it begins again: with the same source, and whenever it was forgotten."""
    source = (
        "#!lua name=t\nlocal n = 0\nredis.register_function('f', function() n = n + 1 return n end)"
    )
    client("FUNCTION", "LOAD", source)
    client.plays(("FCALL f 0", 1), ("FCALL f 0", 2))
    assert client("FUNCTION", "LOAD", "REPLACE", source) == b"t"
    client.plays(("FCALL f 0", 1), ("SCRIPT FLUSH", b"OK"), ("FCALL f 0", 1), ("FCALL f 0", 2))
    for number in range(MOST_COMPILED):
        client("EVAL", f"return {number}", "0")
    assert client("FCALL f 0") == 1


def test_a_library_may_need_memory_while_it_is_loaded(client: Client) -> None:
    source = """#!lua name=t
    local all = {}
    for i = 1, 10 do all[i] = ('x'):rep(1000000) .. i end
    redis.register_function('f', function() return #table.concat(all) end)"""
    assert client("FUNCTION", "LOAD", source) == b"t"
    assert client("FCALL f 0") == 10_000_011


def test_a_library_is_no_script(client: Client) -> None:
    client("FUNCTION", "LOAD", COUNTER)
    sha = hashlib.sha1(COUNTER.encode()).hexdigest()
    client.plays(("FCALL up 1 n", 1), (f"SCRIPT EXISTS {sha}", [0]))
    assert b"number_of_cached_scripts:0\r\n" in client("INFO memory")
    client("FUNCTION FLUSH")
    assert client.engine.scripts.memory == 0


def test_a_library_that_fails_is_counted_once(client: Client) -> None:
    client("CONFIG RESETSTAT")
    client("FUNCTION", "LOAD", "#!lua name=t\nfoo()")
    client("FUNCTION", "LOAD", "#!lua name=t\n")
    assert b"errorstat_ERR:count=2\r\n" in client("INFO errorstats")
    (line,) = [one for one in client("INFO commandstats").split() if b"function|load" in one]
    assert b"_function|load:calls=2," in line
    assert line.endswith(b"failed_calls=2")


def test_an_error_of_a_last_call_names_no_place_of_ours(client: Client) -> None:
    """Lua has forgotten the function that made the call."""
    source = "#!lua name=t\nredis.register_function('f', function() return string.rep() end)"
    client("FUNCTION", "LOAD", source)
    problem = "ERR bad argument #1 to 'rep' (string expected, got no value)"
    assert client("FCALL f 0") == problem


def test_the_first_line_has_a_bound(client: Client) -> None:
    long = f"#!lua name=t {' ' * 70_000}\n"
    assert client("FUNCTION", "LOAD", long) == "ERR Invalid library metadata"


def test_a_function_that_its_library_does_not_register_again_is_an_error(client: Client) -> None:
    """It may depend on the memory that is left, and be gone when it is loaded again."""
    client("FUNCTION", "LOAD", COUNTER)
    library = client.engine.functions.libraries[b"counter"]
    library.register(b"other 0 - ")
    client.engine.functions.replace({b"counter"}, [library])
    assert client("FCALL other 0").startswith("ERR Function not found")


def test_what_libraries_keep_is_bounded(client: Client) -> None:
    source = """#!lua name=t
    local kept = {}
    redis.register_function('keep', function()
        kept[#kept + 1] = string.rep('x', 1000000) .. #kept
        return #kept
    end)"""
    client("CONFIG SET script-max-memory 8mb")
    client("FUNCTION", "LOAD", source)
    counts = [client("FCALL keep 0") for _ in range(100)]
    assert counts[:3] == [1, 2, 3]
    assert 4 < max(counts) < 30
    assert counts.count(1) > 1


def test_no_scripts_no_functions() -> None:
    sha = hashlib.sha1(COUNTER.encode()).hexdigest().encode()
    env = MemoryEnv()
    with an_engine(env, scripts=ScriptChoice("list", frozenset({sha}))) as engine:
        client = Client(engine)
        assert client("FUNCTION", "LOAD", FOREVER).startswith("NOPERM This server refuses scripts")
        assert client("FUNCTION", "LOAD", COUNTER) == b"counter"
        assert client("FCALL up 1 n") == 1
        engine.commit()
    with an_engine(env, scripts=ScriptChoice("off", frozenset())) as engine:
        client = Client(engine)
        assert client("FUNCTION", "LOAD", "REPLACE", COUNTER).startswith("NOPERM")
        refused = "NOPERM This server refuses scripts (--scripts): they are off"
        client.plays(("FCALL up 1 n", refused), ("FUNCTION DELETE counter", b"OK"))


def test_users_need_rights_for_functions_and_for_their_keys(client: Client) -> None:
    client("FUNCTION", "LOAD", COUNTER)
    denied = "NOPERM this user has no permissions to run the 'function|stats' command"
    client.plays(
        ("ACL SETUSER ann on nopass ~mine:* +fcall +incr", b"OK"),
        ("ACL SETUSER bob on nopass allkeys +@scripting -incr", b"OK"),
        ("AUTH ann x", b"OK"),
        ("FCALL up 1 mine:n", 1),
        (
            "FCALL up 1 n",
            "NOPERM this user has no permissions to access one of the keys used as arguments",
        ),
        (
            "FUNCTION STATS",
            denied,
        ),
        ("AUTH bob x", b"OK"),
        ("FUNCTION LIST LIBRARYNAME x", []),
        (
            "FCALL up 1 n",
            "ERR The user executing the script can't run this command or subcommand"
            " script: up, on @user_function:2.",
        ),
    )


def test_payloads_pass_between_servers(client: Client) -> None:
    client("FUNCTION", "LOAD", COUNTER)
    client("FUNCTION", "LOAD", FOREVER)
    payload = client("FUNCTION DUMP")
    with an_engine() as engine:
        other = Client(engine)
        assert other("FUNCTION", "RESTORE", payload) == b"OK"
        assert other("FUNCTION LIST WITHCODE") == client("FUNCTION LIST WITHCODE")
        assert other("FUNCTION DUMP") == payload
        for at in range(len(payload)):
            damaged = payload[:at] + bytes((payload[at] ^ 1,)) + payload[at + 1 :]
            assert other("FUNCTION", "RESTORE", damaged, "FLUSH").startswith("ERR DUMP payload")
        assert other("FCALL up 1 n") == 1


@pytest.mark.parametrize(
    ("second", "error"),
    [
        (encoded_string(b"code"), "ERR Missing library metadata"),
        (encoded_string(COUNTER.encode()), "ERR Library 'counter' already exists"),
        (encoded_string(COUNTER.encode())[:-1], "ERR Failed loading library payload"),
        (encoded_string(b"#!lua name=t\n"), "ERR No functions registered"),
        (
            encoded_string(COUNTER.replace("=counter", "=t").encode()),
            "ERR Function up already exists",
        ),
    ],
)
def test_all_of_a_payload_is_restored_or_nothing(client: Client, second: bytes, error: str) -> None:
    payload = sealed(b"\xf5" + encoded_string(COUNTER.encode()) + b"\xf5" + second)
    assert client("FUNCTION", "RESTORE", payload) == error
    assert client("FUNCTION LIST") == []


def test_a_function_that_takes_long_goes_on_in_a_thread(
    runner: asyncio.Runner, server: Server
) -> None:
    source = r"""#!lua name=t\nredis.register_function('long', function(keys)
        redis.call('incr', keys[1]) for i = 1, 1e7 do end return redis.call('get', keys[1]) end)"""
    source = source.replace("\n", " ").replace('"', "'")

    async def main() -> None:
        async with Wire(server) as one:
            await one.plays((f'FUNCTION LOAD "{source}"', b"t"), ("FCALL long 1 n", b"1"))
            await one.plays(("MULTI", b"OK"), ("FCALL long 1 n", b"QUEUED"), ("GET n", b"QUEUED"))
            assert await one("EXEC") == [b"2", b"2"]

    runner.run(main())


def test_function_kill_ends_a_function(
    runner: asyncio.Runner, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    busy_function = BUSY.replace("SCRIPT", "FUNCTION")

    async def main() -> None:
        async with Wire(server) as one:
            source = FOREVER.replace("\n", r"\n")
            assert await one(f'FUNCTION LOAD "{source}"') == b"t"
        async with busy(server, "FCALL forever 1 k a") as (one, other):
            await over_limit(server)
            assert await other("GET k") == busy_function
            assert await other("SHUTDOWN") == busy_function
            assert await other("SCRIPT KILL") == busy_function
            stats = await other("FUNCTION STATS")
            name, command = stats[1][1], stats[1][3]
            assert (name, command) == (b"forever", [b"FCALL", b"forever", b"1", b"k", b"a"])
            assert stats[3] == [b"LUA", [b"libraries_count", 1, b"functions_count", 1]]
            assert await other("FUNCTION KILL") == b"OK"
            assert (await one.reply()).startswith(f"{KILLED}forever")
            assert await other("FUNCTION KILL") == "NOTBUSY No scripts in execution right now."
            assert (await other("FUNCTION STATS"))[1] is None
        async with busy(server, "EVAL 'while true do end' 0") as (one, other):
            await over_limit(server)
            await other.plays(("FUNCTION KILL", BUSY), ("FUNCTION STATS", BUSY))
            assert await other("SCRIPT KILL") == b"OK"
            assert (await one.reply()).startswith(KILLED)

    runner.run(main())
    assert "the script forever has run for 30 ms" in caplog.text
    assert "FUNCTION KILL ends it" in caplog.text or "FUNCTION KILL ends a script" in caplog.text
    caplog.clear()
