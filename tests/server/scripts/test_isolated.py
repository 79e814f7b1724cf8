"""Scripts in a process of their own can always be ended, and then all that they wrote is undone."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import redis
from busy_scripts import BUSY, KILLED, busy, over_limit
from processes import ENVIRON
from serving import Client
from wire import Wire, request

from lsmkv.engine.env.process import interpreter
from lsmkv.server import Server

pytest.importorskip("lupa")
pytestmark = pytest.mark.skipif(
    not (interpreter() and os.path.exists("/proc/self/stat")), reason="/proc shows processes"
)

PATTERN = "string.find(string.rep('a', 250), '.-.-.-.-.-.-.-b')"
"""One call of C, which takes years."""
WRITES = "redis.call('set', 'k', 1) redis.call('rpush', 'list', 1) redis.call('publish', 'c', 'm')"
ENDLESS = f"{WRITES} {PATTERN}"


@pytest.fixture
def scripts() -> str:
    """Where scripts run."""
    return "process"


def pid_of(server: Server) -> int:
    return server.engine.scripts.pid


def is_there(pid: int) -> bool:
    """Whether a thread of a process runs; one that has ended may wait for its parent."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return len(threads) > 1 or state != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextlib.asynccontextmanager
async def in_one_call(server: Server, limit: int = 60_000) -> AsyncIterator[tuple[Wire, Wire]]:
    """A client whose script has written, and is in one call of C; and another client."""
    server.engine.settings.script_time = 0
    async with Wire(server) as one:
        await one("EVAL 'return 1' 0")  # its process is there, so that it writes in the loop
    before = server.engine.table[b"PUBLISH"].calls
    async with busy(server, f'EVAL "{ENDLESS}" 0', limit) as (one, other):
        while server.engine.table[b"PUBLISH"].calls == before:
            await asyncio.sleep(0.001)
        yield one, other


def test_script_kill_ends_one_call_of_c_and_undoes_all(
    runner: asyncio.Runner, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with Wire(server) as listener, Wire(server) as waiter:
            await listener("SUBSCRIBE c")
            await waiter.send(request("BLPOP list 0"))
            async with in_one_call(server, limit=30) as (one, other):
                pid = pid_of(server)
                await over_limit(server)
                assert await other("GET k") == BUSY
                assert await other("SCRIPT KILL") == b"OK"
                assert (await one.reply()).startswith(KILLED)
                assert not is_there(pid)
                await other.plays(
                    ("EXISTS k list", 0),
                    ("EVAL 'return redis.call([[rpush]], [[list]], 2)' 0", 1),
                    ("PUBLISH c second", 1),
                )
                assert await waiter.reply() == [b"list", b"2"]
                assert await listener.reply() == [b"message", b"c", b"second"]
                assert b"scripts_killed:1\r\n" in await other("INFO stats")
                assert await other("CONFIG RESETSTAT") == b"OK"
                assert b"scripts_killed:0\r\n" in await other("INFO stats")

    runner.run(main())
    caplog.clear()


def test_script_max_time_ends_a_script(
    runner: asyncio.Runner, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with Wire(server) as one, Wire(server) as other:
            await one("CONFIG SET script-max-time 50")
            await one.send(request(f'EVAL "{ENDLESS}" 0'))
            reply = await one.reply()
            assert reply.startswith(
                "ERR Script killed: script-max-time is 50 ms, and what it wrote"
            )
            await one("CONFIG SET script-max-time 0")
            await other.plays(("EXISTS k list", 0), ("EVAL 'return 1' 0", 1))
            assert b"scripts_killed:1\r\n" in await other("INFO stats")

    runner.run(main())
    assert "script-max-time is 50 ms" in caplog.text


def test_script_max_time_ends_a_script_that_only_runs_commands(client: Client) -> None:
    client("CONFIG SET script-max-time 50")
    reply = client("EVAL", "while true do redis.call('incr', 'n') end", "0")
    assert reply.startswith("ERR Script killed: script-max-time is 50 ms")
    assert client("EXISTS n") == 0


def test_a_crash_is_an_error_for_its_client_alone(
    runner: asyncio.Runner, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with in_one_call(server) as (one, other):
            os.kill(pid_of(server), signal.SIGSEGV)
            reply = await one.reply()
            assert reply.startswith("ERR The script has ended its process (SIGSEGV). What it wrote")
            await other.plays(("EXISTS k list", 0), ("EVAL 'return 1' 0", 1))
            assert b"scripts_crashed:1\r\n" in await other("INFO stats")

    runner.run(main())
    assert "SIGSEGV" in caplog.text


def test_a_transaction_keeps_its_other_commands(runner: asyncio.Runner, server: Server) -> None:
    async def main() -> None:
        async with Wire(server) as one, Wire(server) as other:
            await other("CONFIG SET lua-time-limit 1")
            await other("EVAL 'return 1' 0")
            for line in ("MULTI", "SET a 1", f'EVAL "{ENDLESS}" 0', "SET b 1"):
                await one(line)
            before = server.engine.table[b"PUBLISH"].calls
            await one.send(request("EXEC"))
            while server.engine.table[b"PUBLISH"].calls == before:
                await asyncio.sleep(0.001)
            assert await other("SCRIPT KILL") == b"OK"
            first, killed, last = await one.reply()
            assert (first, last) == (b"OK", b"OK")
            assert killed.startswith(KILLED)
            assert await other("EXISTS a b k list") == 2

    runner.run(main())


def test_what_came_before_a_long_script_is_answered(runner: asyncio.Runner, server: Server) -> None:
    async def main() -> None:
        server.engine.settings.script_time = 0
        async with Wire(server) as one, Wire(server) as other:
            await one("EVAL 'return 1' 0")
            await one.send(request("SET before 1") + request(f'EVAL "{ENDLESS}" 0'))
            assert await one.reply() == b"OK"
            while server.engine.busy is None:
                await asyncio.sleep(0.001)
            assert await other("SCRIPT KILL") == b"OK"
            assert (await one.reply()).startswith(KILLED)
            assert await one("EXISTS before k list") == 1

    runner.run(main())


def test_a_script_that_ends_just_before_it_is_killed_is_undone(
    runner: asyncio.Runner, server: Server
) -> None:
    """Its thread has its reply, but the loop does not know that yet."""

    async def main() -> None:
        script = f"{WRITES} local n = 0 while n < 5e6 do n = n + 1 end return n"
        async with busy(server, f'EVAL "{script}" 0', limit=60_000) as (one, other):
            while not (threads := [t for t in threading.enumerate() if t.name == "lsmkv script"]):
                await asyncio.sleep(0)
            threads[0].join()
            server.engine.scripts.kill()
            assert (await one.reply()).startswith(KILLED)
            assert await other("EXISTS k list") == 0
            assert b"scripts_killed:1\r\n" in await other("INFO stats")

    runner.run(main())


def test_the_end_of_the_server_ends_a_script(runner: asyncio.Runner, tmp_path: Path) -> None:
    async def main() -> None:
        server = Server(tmp_path, port=0, scripts="process")
        await server.start()
        async with in_one_call(server):
            pid = pid_of(server)
            await server.stop()
            assert not is_there(pid)
        server = Server(tmp_path, port=0)
        async with server, Wire(server) as one:
            assert await one("EXISTS k list") == 0

    runner.run(main())


def test_every_script_is_done_or_undone(
    runner: asyncio.Runner, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Their process is killed at any moment, while they run in the loop and in a thread."""
    script = """
    redis.call('incr', 'first') redis.call('rpush', 'list', ARGV[1])
    for n = 1, ARGV[1] do redis.call('get', 'first') end
    return redis.call('incr', 'last')
    """.replace("\n", " ")
    chances = random.Random(64)
    ended = threading.Event()

    def kill() -> None:
        """Kill it whenever its scripts have run some commands more."""
        get = server.engine.table[b"GET"]
        aim = get.calls
        while not ended.wait(0.0005):
            if get.calls >= aim and (pid := pid_of(server)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                aim = get.calls + chances.randrange(1, 1500)

    killing = threading.Thread(target=kill)
    killing.start()

    async def main() -> None:
        done = 0
        async with Wire(server) as one:
            for _ in range(50):
                times = chances.choice([0, 10, 1000])
                reply = await one(f'EVAL "{script}" 0 {times}')
                assert isinstance(reply, int) or reply.startswith("ERR The script has ended its")
                done += isinstance(reply, int)
            ended.set()
            assert await one("MGET first last") == [b"%d" % done] * 2
            assert await one("LLEN list") == done
            assert 0 < done < 50

    try:
        runner.run(main())
    finally:
        ended.set()
        killing.join()
    caplog.clear()


def test_a_killed_server_leaves_no_process(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "lsmkv", "serve", str(tmp_path), "--scripts", "process"]
    place = tmp_path / "socket"
    command += ["--port", "-1", "--unixsocket", os.path.relpath(place), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRON) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with redis.Redis(unix_socket_path=os.path.relpath(place)) as client:
            assert client.eval("return 1", 0) == 1
            pid = client.info("server")["script_process_id"]
            client.config_set("lua-time-limit", 1)
            client.connection_pool.get_connection().send_command("EVAL", PATTERN, "0")
            with contextlib.suppress(redis.exceptions.ResponseError):  # BUSY
                while client.ping():
                    pass
            process.kill()
    while is_there(pid):
        time.sleep(0.01)


def test_its_process_has_nothing_open(client: Client) -> None:
    client("EVAL", "return 1", "0")
    pid = client.engine.scripts.pid
    assert sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2", "3"]
    opened = [os.readlink(f"/proc/{pid}/fd/{number}") for number in range(4)]
    assert opened[:3] == [os.devnull] * 3
    assert opened[3].startswith("socket:")


@pytest.mark.parametrize(
    "event", ["SCRIPT FLUSH", "CONFIG SET script-max-memory 8mb", "killed", "1000 scripts"]
)
def test_another_process_runs_the_next_script(client: Client, event: str) -> None:
    assert client("EVAL", "return 'same'", "0") == b"same"
    pid = client.engine.scripts.pid
    if event == "killed":
        os.kill(pid, signal.SIGKILL)
        while client.engine.scripts._process.is_idle():  # its second thread may be the last one
            time.sleep(0.001)
    elif event == "1000 scripts":
        for number in range(1000):
            client("EVAL", f"return {number}", "0")
    else:
        assert client(event) == b"OK"
    assert client("EVAL", "return 'same'", "0") == b"same"
    assert client.engine.scripts.pid != pid
    assert not is_there(pid)
    assert b"scripts_crashed:0\r\n" in client("INFO stats")


def test_what_does_not_fit_into_its_process(client: Client) -> None:
    client("CONFIG SET script-max-memory 1mb")
    reply = client("EVAL", b"return #ARGV[1]", b"0", b"x" * 300_000_000)
    assert reply.startswith("ERR The script has ended its process (it ran out of memory).")
    assert client("EVAL", "return 1", "0") == 1


BROKEN = "it has broken the protocol"
HOSTILE = {
    "an unknown message": (b"*1\r\n$4\r\nnope\r\n", BROKEN),
    "a number": (b"*1\r\n:1\r\n", "Protocol error: expected '$', got ':'"),
    "no length": (b"*" + b"9" * 100, "Protocol error: invalid multibulk length"),
    "a command before the script": (b"*2\r\n$4\r\ncall\r\n$8\r\nFLUSHALL\r\n", BROKEN),
    "no reply": (b"*3\r\n$4\r\ndone\r\n$4\r\n*1\r\n\r\n$1\r\n1\r\n", BROKEN),
    "two replies": (b"*3\r\n$4\r\ndone\r\n$8\r\n:1\r\n:1\r\n\r\n$1\r\n1\r\n", BROKEN),
    "no memory": (b"*3\r\n$4\r\ndone\r\n$4\r\n:1\r\n\r\n$1\r\nx\r\n", BROKEN),
    "no level": (b"*3\r\n$3\r\nlog\r\n$1\r\n7\r\n$1\r\nx\r\n", BROKEN),
    "compiled twice": (b"*1\r\n$8\r\ncompiled\r\n" * 2, BROKEN),
    "too much": (b"*1\r\n$200000000\r\n" + b"x" * (2 << 20), "it has sent too much"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_hostile_process_sends(
    client: Client,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A Lua that sends something of its own through the connection, whose number is 3."""
    package = tmp_path / "lupa"
    package.mkdir()
    (package / "__init__.py").write_text("")
    sent, reason = HOSTILE[name]
    (package / "sent").write_bytes(sent)
    (package / "lua51.py").write_text(
        "import pathlib, socket\n"
        "socket.socket(fileno=3).sendall(pathlib.Path(__file__).with_name('sent').read_bytes())\n"
        "while True: pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    client("SET k v")
    client("CONFIG SET client-query-buffer-limit 1mb")
    reply = client("EVAL", "return 1", "0")
    assert reply.startswith(f"ERR The script has ended its process ({reason}). What it wrote")
    assert client("GET k") == b"v"
    assert "What it wrote was undone" in caplog.text


def test_lines_of_a_script_are_logged(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        client("EVAL", "for level = 0, 3 do redis.log(level, 'line', level) end", "0")
    logged = [(one.levelno, one.getMessage()) for one in caplog.records]
    assert logged == [(10, "line 0"), (10, "line 1"), (20, "line 2"), (30, "line 3")]
