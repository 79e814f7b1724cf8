"""What docs/serve.md says was measured: ``python serve.py PAGE``.

``redis-benchmark`` is run against Redis and against ``lsmkv serve`` in turn, round after round, and
each figure is the median of the rounds.  Then the two things that a tree could be bad at: elements
that were removed, and collections that are large.  It needs redis-server and redis-benchmark.
"""

from __future__ import annotations

import csv
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha1
from pathlib import Path
from typing import Annotated, NamedTuple

import redis
import typer
from page_parts import table, write_measured

import lsmkv
from lsmkv.tools.bench.machine import machine
from lsmkv.tools.console import guarded, say

_WIDTH = 100
_COMMANDS = ("set", "get", "incr", "lpush", "rpop", "sadd", "hset", "zadd")
_VALUE = "x" * 100
_RELEASE = """\
if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end"""
"""What ends a lock that is still held by the one who asks."""
_REQUESTS = {
    "evalsha": ["EVALSHA", sha1(_RELEASE.encode()).hexdigest(), "1", "lock:__rand_int__", "mine"],
    "xadd": ["XADD", "log", "*", "field", _VALUE],
    "xreadgroup": [
        "XREADGROUP",
        "GROUP",
        "group",
        "consumer",
        "COUNT",
        "1",
        "STREAMS",
        "jobs",
        ">",
    ],
    "xack": ["XACK", "jobs", "group", "__rand_int__"],
}
"""Requests that redis-benchmark has no name for; they are about what :func:`fill` has made."""
_HUNDRED = "for i = 1, 100 do redis.call('get', KEYS[1]) end return 1"
_SCRIPTS = {
    "return 1": ("return 1", 1),
    "a lock's release": (_RELEASE, 1),
    "100 times GET": (_HUNDRED, 20),
}
"""Scripts, and the share of the requests that each is measured with."""
_NAMES = {"evalsha": "EVALSHA of a lock's release"}
_LIBRARIES = {"Celery": 10, "RQ": 1}
"""The task queues, and how many times the jobs of the slowest each is given."""
_ELEMENTS = 1_000_000
_IDLE = 1_000
_BLOB = 1_000
"""Bytes of a value of the large data set."""


class Run(NamedTuple):
    """What redis-benchmark says of one command."""

    per_second: float
    p50: float
    """Milliseconds."""
    p99: float


Runs = dict[tuple[str, int], list[Run]]
"""By command and length of the pipeline, one for each round."""


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


@contextmanager
def served(arguments: list[str], port: int) -> Iterator[redis.Redis]:
    """A server as a subprocess, and a client of it."""
    with subprocess.Popen(
        arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        with redis.Redis(port=port) as client:
            for _ in range(200):
                try:
                    client.ping()
                    break
                except redis.ConnectionError:
                    time.sleep(0.05)
            else:
                raise OSError(f"{arguments[0]} does not answer")
            yield client
        server.terminate()


def redis_arguments(port: int, folder: str) -> list[str]:
    """Redis with its log of commands, synced every second."""
    settings = {"port": port, "dir": folder, "appendonly": "yes", "appendfsync": "everysec"}
    words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    return ["redis-server", *words, "--save", ""]


def lsmkv_arguments(port: int, folder: str) -> list[str]:
    """The server with its defaults."""
    return [sys.executable, "-P", "-m", "lsmkv", "serve", folder, "--port", str(port)]


def process_arguments(port: int, folder: str) -> list[str]:
    """The server with scripts in a process of their own."""
    return [*lsmkv_arguments(port, folder), "--scripts", "process"]


BOTH: dict[str, Callable[[int, str], list[str]]] = {
    "redis": redis_arguments,
    "lsmkv": lsmkv_arguments,
}


def benchmark(port: int, command: str, pipeline: int, requests: int) -> Run:
    """One run of redis-benchmark: 50 connections, keys at random, values of 100 bytes."""
    words = f"-p {port} -P {pipeline} -n {requests} -d 100 --csv"
    about = _REQUESTS.get(command)
    if about is None:
        return redis_benchmark([*words.split(), "-r", "100000", "-t", command])
    return redis_benchmark([*words.split(), "-r", str(requests), *about])


def redis_benchmark(words: list[str]) -> Run:
    """One run with these arguments."""
    done = subprocess.run(
        ["redis-benchmark", *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    (row,) = csv.DictReader(done.stdout.splitlines())
    return Run(float(row["rps"]), float(row["p50_latency_ms"]), float(row["p99_latency_ms"]))


def fill(client: redis.Redis, entries: int) -> None:
    """A stream with ids that count up from 1, a group that has read none, and locks."""
    client.delete("jobs", "log")
    client.script_load(_RELEASE)
    for first in range(1, entries + 1, 1000):
        with client.pipeline(transaction=False) as pipe:
            for number in range(first, min(first + 1000, entries + 1)):
                pipe.xadd("jobs", {"field": _VALUE}, id=str(number))
                pipe.set(f"lock:{number - 1:012}", "mine")
            pipe.execute()
    client.xgroup_create("jobs", "group", "0")


@contextmanager
def running(
    servers: dict[str, Callable[[int, str], list[str]]],
) -> Iterator[tuple[dict[str, int], dict[str, redis.Redis]]]:
    """The ports of servers, without data, and a client of each."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        ports: dict[str, int] = {}
        clients: dict[str, redis.Redis] = {}
        for name, arguments in servers.items():
            ports[name] = free_port()
            place = os.path.join(folder, name)
            os.mkdir(place)
            clients[name] = stack.enter_context(served(arguments(ports[name], place), ports[name]))
        yield ports, clients


def compare(rounds: int, requests: int) -> dict[str, Runs]:
    """Both servers in turn."""
    found: dict[str, Runs] = {"redis": {}, "lsmkv": {}}
    with running(BOTH) as (ports, clients):
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            for pipeline in (1, 16):
                times = requests * (4 if pipeline > 1 else 1)
                for client in clients.values():
                    fill(client, times)
                for command in (*_COMMANDS, *_REQUESTS):
                    for name, port in ports.items():
                        run = benchmark(port, command, pipeline, times)
                        found[name].setdefault((command, pipeline), []).append(run)
    return found


def scripts_per_second(rounds: int, requests: int) -> list[list[str]]:
    """A row for each script: runs a second in Redis, in the server, and in a process."""
    found: dict[tuple[str, str], list[float]] = {}
    with running(BOTH | {"process": process_arguments}) as (ports, clients):
        for number in range(rounds):
            say(f"scripts, round {number + 1} of {rounds}")
            for script, (source, share) in _SCRIPTS.items():
                for name, client in clients.items():
                    sha = client.script_load(source)
                    words = f"-p {ports[name]} -n {requests // share} --csv EVALSHA {sha} 1 k v"
                    run = redis_benchmark(words.split())
                    found.setdefault((script, name), []).append(run.per_second)
    return [
        [script, *(f"{statistics.median(found[script, name]):,.0f}" for name in ports)]
        for script in _SCRIPTS
    ]


def jobs_per_second(rounds: int, jobs: int) -> dict[str, dict[str, list[float]]]:
    """What each task queue does with each server, in turn: one figure for each round."""
    found: dict[str, dict[str, list[float]]] = {}
    script = str(Path(__file__).with_name("queue_jobs.py"))
    with running(BOTH) as (ports, _):
        for number in range(rounds):
            say(f"task queues, round {number + 1} of {rounds}")
            for library, times in _LIBRARIES.items():
                for name, port in ports.items():
                    done = subprocess.run(
                        [sys.executable, script, library, str(port), str(times * jobs)],
                        capture_output=True,
                        text=True,
                        check=True,
                        timeout=3600,
                    )
                    rates = found.setdefault(library, {}).setdefault(name, [])
                    rates.append(float(done.stdout))
    return found


def milliseconds(call: Callable[[], object], times: int = 200) -> float:
    """The median time of a call over a connection."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started)
    return 1000 * statistics.median(taken)


def resident(client: redis.Redis) -> int:
    """Bytes of memory that the server's process has now."""
    pid = client.info("server")["process_id"]
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def scale(elements: int) -> list[tuple[str, str]]:
    """What large and worn collections cost."""
    port = free_port()
    with (
        tempfile.TemporaryDirectory() as folder,
        served(lsmkv_arguments(port, folder), port) as client,
    ):
        return list(_scale(client, port, elements))


def _scale(client: redis.Redis, port: int, elements: int) -> Iterator[tuple[str, str]]:
    before = resident(client)
    with ExitStack() as stack:
        for _ in range(_IDLE):
            idle = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            idle.sendall(b"PING\r\n")
            idle.recv(16)
        yield f"memory of {_IDLE:,} idle connections", f"{(resident(client) - before) / 1e6:.1f} MB"
    yield "PING", f"{milliseconds(client.ping):.3f} ms"
    push, pop = (lambda: client.rpush("list", "x")), (lambda: client.lpop("list"))
    client.rpush("list", "x")
    yield "RPUSH to a list of a few", f"{milliseconds(push):.3f} ms"
    yield "LPOP from it", f"{milliseconds(pop):.3f} ms"
    for first in range(0, elements, 1000):
        numbers = range(first, first + 1000)
        with client.pipeline(transaction=False) as pipe:
            pipe.rpush("list", *(b"%012d" % number for number in numbers))
            pipe.hset("hash", mapping={b"f%08d" % number: b"v" for number in numbers})
            pipe.zadd("scores", {b"m%08d" % number: number for number in numbers})
            pipe.execute()
    say(f"{elements:,} elements each are there")
    yield f"RPUSH to a list of {elements:,}", f"{milliseconds(push):.3f} ms"
    yield "LPOP from it", f"{milliseconds(pop):.3f} ms"
    for _ in range(0, elements - 10_000, 10_000):
        client.lpop("list", 10_000)
    yield f"LPOP after {elements - 10_000:,} pops", f"{milliseconds(pop):.3f} ms"
    yield (
        f"DEL of a hash of {elements:,}",
        f"{milliseconds(lambda: client.delete('hash'), 1):.3f} ms",
    )
    for first in range(0, elements - 10_000, 10_000):
        client.zremrangebyscore("scores", first, first + 9_999)
    lowest = milliseconds(lambda: client.zrangebyscore("scores", "-inf", "+inf", start=0, num=10))
    yield f"ZRANGEBYSCORE ... LIMIT 0 10 after {elements - 10_000:,} removals", f"{lowest:.3f} ms"


def large(size: int) -> Iterator[tuple[str, str]]:
    """The memory of a server with so many bytes of strings, written in the order of a hash."""
    port = free_port()
    with (
        tempfile.TemporaryDirectory() as folder,
        served(lsmkv_arguments(port, folder), port) as client,
    ):
        for first in range(0, size // _BLOB, 1000):
            with client.pipeline(transaction=False) as pipe:
                for number in range(first, first + 1000):
                    name = sha1(b"%d" % number).hexdigest()
                    pipe.set(name, os.urandom(_BLOB // 2).hex())
                pipe.execute()
        yield f"memory with {size / 1e9:.1f} GB of strings, just written", _megabytes(client)
        for number in range(0, size // _BLOB, 100):
            client.get(sha1(b"%d" % number).hexdigest())
        yield "memory after reading 1% of them", _megabytes(client)


def _megabytes(client: redis.Redis) -> str:
    return f"{resident(client) / 1e6:.0f} MB"


def tables(
    found: dict[str, Runs],
    queues: dict[str, dict[str, list[float]]],
    scripts: list[list[str]],
    worn: list[tuple[str, str]],
    rounds: int,
) -> str:
    """The page's part between the marks."""
    where = machine(tempfile.gettempdir())
    mode = "compiled" if lsmkv.COMPILED else "pure Python"
    version = subprocess.run(
        ["redis-server", "--version"], capture_output=True, text=True, check=True, timeout=300
    )
    release = version.stdout.split("v=")[1].split()[0]
    about = (
        f"Measured by `make bench-server` ({where['processor']}, {where['cores']} cores,"
        f" {where['python']}, lsmkv {mode}): `redis-benchmark` with 50 connections, 100,000"
        " different keys and values of 100 bytes against both servers in turn, the median of"
        f" {rounds} rounds. Redis {release} has `appendonly yes` and `appendfsync everysec`."
    )
    head = ["command", "pipeline", "Redis/s", "lsmkv/s", "ratio", "Redis p99", "lsmkv p99"]
    rows = []
    for (command, pipeline), runs in found["redis"].items():
        other = found["lsmkv"][command, pipeline]
        theirs = statistics.median(run.per_second for run in runs)
        ours = statistics.median(run.per_second for run in other)
        rows.append(
            [
                _NAMES.get(command, command.upper()),
                str(pipeline),
                f"{theirs:,.0f}",
                f"{ours:,.0f}",
                f"{ours / theirs:.2f}",
                f"{statistics.median(run.p99 for run in runs):.2f} ms",
                f"{statistics.median(run.p99 for run in other):.2f} ms",
            ]
        )
    parts = [textwrap.fill(about, _WIDTH, break_on_hyphens=False), table(head, rows)]
    rates = [
        [library, f"{theirs:,.0f}", f"{ours:,.0f}", f"{ours / theirs:.2f}"]
        for library, by_server in queues.items()
        for theirs, ours in [[statistics.median(by_server[name]) for name in ("redis", "lsmkv")]]
    ]
    parts += [
        "Scripts a second, in the server (`inline`) and in a process of their own:",
        table(["script", "Redis", "inline", "process"], scripts),
        "Jobs a second that do nothing, with one worker:",
        table(["library", "Redis", "lsmkv", "ratio"], rates),
        "One connection, and what it waits for a reply:",
        table(["", "measured"], worn),
    ]
    return "\n\n".join(parts)


@guarded
def main(
    page: Annotated[Path, typer.Argument(metavar="PAGE", help="docs/serve.md.")],
    rounds: Annotated[int, typer.Option(metavar="N", help="Rounds of redis-benchmark.")] = 5,
    requests: Annotated[int, typer.Option(metavar="N", help="Requests of a run.")] = 100_000,
    elements: Annotated[
        int, typer.Option(metavar="N", help="Elements of a large collection.")
    ] = _ELEMENTS,
    jobs: Annotated[int, typer.Option(metavar="N", help="Of the slowest task queue.")] = 200,
    size: Annotated[int, typer.Option(metavar="BYTES", help="Of a large data set.")] = 10**9,
) -> None:
    """Measure the server, and write the page's tables."""
    worn = [*scale(elements), *large(size)]
    queues = jobs_per_second(rounds, jobs)
    found = compare(rounds, requests)
    scripts = scripts_per_second(rounds, requests)
    write_measured(page, tables(found, queues, scripts, worn, rounds))
    say(json.dumps({"page": str(page)}))


if __name__ == "__main__":
    typer.run(main)
