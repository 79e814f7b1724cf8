"""EVAL, EVALSHA, SCRIPT: replies are compared with those of Redis in ``tests/redis``."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest
from serving import PLACES, Client, an_engine
from transcripts import Section, transcript

from lsmkv import MemoryEnv
from lsmkv.server.sources import MOST_EVALUATED

pytest.importorskip("lupa")

RELEASE = """
local token = redis.call('get', KEYS[1])
if not token or token ~= ARGV[1] then
    return 0
end
redis.call('del', KEYS[1])
return 1
"""


@pytest.fixture(params=PLACES)
def scripts(request: pytest.FixtureRequest) -> str:
    """In the server, and in a process of their own."""
    place: str = request.param
    return place


def sha_of(script: str) -> str:
    return hashlib.sha1(script.encode()).hexdigest()


@pytest.mark.parametrize("call", ["'SET', 'k', 'v'", "'PUBLISH', 'c', 'm'", "'PFCOUNT', 'k'"])
def test_a_script_that_only_reads_may_not_write(client: Client, call: str) -> None:
    """PUBLISH and PFCOUNT count as writes, as in Redis."""
    script = f"return redis.call({call})"
    refused = "ERR Write commands are not allowed from read-only scripts."
    assert client("EVAL_RO", script, "0").startswith(refused)
    assert client("EVAL", f"#!lua flags=no-writes\n{script}", "0").startswith(refused)
    assert not str(client("EVAL", script, "0")).startswith("ERR")


def test_scripts_survive_a_restart() -> None:
    env = MemoryEnv()
    loaded, evaluated = "return 'loaded'", "return 'evaluated'"
    with an_engine(env) as engine:
        client = Client(engine)
        client("SCRIPT", "LOAD", loaded)
        client("EVAL", evaluated, "0")
        engine.commit()
    for read_only in (True, False):
        with an_engine(env, read_only=read_only) as engine:
            client = Client(engine)
            client.plays(
                (f"EVALSHA_RO {sha_of(loaded)} 0", b"loaded"),
                (f"EVALSHA {sha_of(evaluated)} 0", b"evaluated"),
            )
    with an_engine(env) as engine:
        Client(engine)("SCRIPT FLUSH")
        engine.commit()
    with an_engine(env) as engine:
        assert Client(engine)(f"SCRIPT EXISTS {sha_of(loaded)} {sha_of(evaluated)}") == [0, 0]


def test_of_scripts_that_were_only_evaluated_the_last_are_kept(client: Client) -> None:
    client("SCRIPT", "LOAD", "return 'loaded'")
    for number in range(MOST_EVALUATED + 5):
        client("EVAL", f"return {number}", "0")
    first, last = sha_of("return 0"), sha_of(f"return {MOST_EVALUATED}")
    assert client(f"SCRIPT EXISTS {first} {last} {sha_of(chr(10))}") == [0, 1, 0]
    assert client(f"EVALSHA {sha_of('return ' + repr('loaded'))} 0") == b"loaded"
    assert client("EVAL", "return 0", "0") == 0
    assert client(f"SCRIPT EXISTS {first}") == [1]
    client("SCRIPT", "LOAD", "return 10")
    for number in range(MOST_EVALUATED):
        client("EVAL", f"return {-number}", "0")
    assert client(f"SCRIPT EXISTS {sha_of('return 10')} {sha_of('return 11')}") == [1, 0]


def test_a_store_that_is_open_for_reading_only_runs_scripts_that_read() -> None:
    env = MemoryEnv()
    with an_engine(env) as engine:
        Client(engine)("SET k v")
        engine.commit()
    with an_engine(env, read_only=True) as engine:
        client = Client(engine)
        assert client("EVAL", "return redis.call('get', 'k')", "0") == b"v"
        refused = client("EVAL", "return redis.call('set', 'k', 1)", "0")
        assert refused.startswith("READONLY You can't write against a read only replica. script: ")
        assert client("SCRIPT", "LOAD", "return 7") == sha_of("return 7").encode()
        assert client(f"EVALSHA {sha_of('return 7')} 0") == 7


def test_a_script_writes_one_record_and_what_precedes_an_error_stays(client: Client) -> None:
    engine = client.engine
    engine.commit()
    before = engine.db.stats().log_writes
    script = """
    for i = 1, 10 do redis.call('set', 'k' .. i, i) end
    redis.pcall('lpush', 'k1', 'x')
    redis.call('rpush', 'l', 'a')
    redis.call('incr', 'l')
    redis.call('set', 'never', 1)
    """
    client("CONFIG RESETSTAT")
    assert "WRONGTYPE" in client("EVAL", script, "0")
    lines = client("INFO commandstats").split(b"\r\n")
    (of_eval,) = (line for line in lines if line.startswith(b"cmdstat_eval:"))
    assert of_eval.startswith(b"cmdstat_eval:calls=1,")
    assert of_eval.endswith(b"failed_calls=1")
    engine.commit()
    assert engine.db.stats().log_writes == before + 1
    client.plays(("DBSIZE", 11), ("LRANGE l 0 -1", [b"a"]), ("GET k1", b"1"), ("EXISTS never", 0))


def test_info_and_settings(client: Client) -> None:
    client("EVAL", "return 1", "0")
    text = client("INFO memory")
    assert b"number_of_cached_scripts:1\r\n" in text
    assert b"used_memory_lua:0\r\n" not in text
    client.plays(
        ("CONFIG GET lua-time-limit", [b"lua-time-limit", b"5000"]),
        ("CONFIG SET busy-reply-threshold 70", b"OK"),
        ("CONFIG GET lua-time-limit", [b"lua-time-limit", b"70"]),
        ("CONFIG SET script-max-memory 8mb", b"OK"),
        ("CONFIG GET script-max-memory", [b"script-max-memory", b"8388608"]),
    )


def test_without_lupa_the_error_says_what_to_install(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "lupa.py").write_text("")  # a module that is no package
    monkeypatch.syspath_prepend(tmp_path)  # for the process of scripts
    monkeypatch.setitem(sys.modules, "lupa.lua51", None)
    error = client("EVAL", "return 1", "0")
    assert error.startswith("ERR scripts need lupa, which is not installed: pip install")
    client.plays(("SET k v", b"OK"), ("SCRIPT EXISTS x", [0]))
    assert client("SCRIPT", "LOAD", "return 1").startswith("ERR scripts need lupa")


@transcript("scripts.txt")
def test_the_transcript(section: Section) -> None:
    section.play()
