"""What docs/scale.md says was measured: ``python scale.py PAGE``.

One set of pairs is built by one worker, by two, and by two of Dask's; published to an S3 server
(moto) and read from there; read over HTTP with the latency of a far store (snailmail); and the
arithmetic for larger sets is done with these figures.  It needs the extra ``scale``.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import math
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from page_parts import table, write_measured

import lsmkv
import lsmkv.bulk
import lsmkv.shards
from lsmkv.engine.filter.fuse import fuse_shape
from lsmkv.shards.building.tables import BLOCK_BYTES
from lsmkv.shards.version import VersionDocument
from lsmkv.tools.bench.machine import machine
from lsmkv.tools.console import guarded, say
from lsmkv.tools.sample_keys import unicode_names

_WIDTH = 100
_PARTS = 20
_KEY, _VALUE = 16, 100
_SHARDS = 8
_RUN = 0.28
_MERGED = 1e6
_FAR = 20  # milliseconds: the mode of the latency of a far store
_HERE = str(Path(__file__).parent)
_POOL = 1 << 20


@dataclass(frozen=True)
class Generated:
    """Pairs of 16 + 100 bytes with keys at random; half of a value compresses, as in db_bench."""

    seed: int
    count: int

    @property
    def label(self) -> str:
        """What messages call it."""
        return f"part {self.seed}"

    @property
    def size(self) -> int:
        """Bytes of keys and values."""
        return self.count * (_KEY + _VALUE)

    def pairs(self) -> Iterator[tuple[bytes, bytes]]:
        """The same pairs each time."""
        yield from zip(self.keys(), self._values(), strict=False)

    def keys(self) -> Iterator[bytes]:
        """The keys alone."""
        data = random.Random(self.seed).randbytes(_KEY * self.count)
        return (data[at : at + _KEY] for at in range(0, len(data), _KEY))

    def _values(self) -> Iterator[bytes]:
        rng = random.Random(-self.seed - 1)
        pool = b"".join(rng.randbytes(50) * 2 for _ in range(_POOL // 100))
        at = 0
        while True:
            if at + _VALUE > len(pool):
                at = rng.randrange(_VALUE)
            yield pool[at : at + _VALUE]
            at += _VALUE


class Built(NamedTuple):
    """One build."""

    document: VersionDocument
    seconds: float
    cpu: float = 0.0
    """Seconds of processor time of the workers; 0 where they are not this process's."""


def build(parts: list[Any], url: str, executor: Executor | None, **arguments: Any) -> Built:
    """A build, timed."""
    started = time.perf_counter()
    document = lsmkv.bulk.build(parts, url, executor=executor, **arguments)
    return Built(document, time.perf_counter() - started)


@contextlib.contextmanager
def workers(count: int) -> Iterator[tuple[lsmkv.bulk.Workers, list[float]]]:
    """Processes that have started; at the end, the processor time that they took is in the list."""
    before = children_cpu()
    cpu: list[float] = []
    with lsmkv.bulk.Workers(count) as pool:
        for started in [pool.submit(time.sleep, 1) for _ in range(count)]:
            started.result()
        yield pool, cpu
    cpu.append(children_cpu() - before)


def children_cpu() -> float:
    """Seconds of processor time of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def contents(built: Built) -> list[Any]:
    """What must be the same for every executor."""
    return [(shard.first, shard.meta, shard.files) for shard in built.document.shards]


# Servers


@contextlib.contextmanager
def process(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A subprocess that knows this module, ended at the end."""
    path = os.pathsep.join([_HERE, os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        [sys.executable, "-P", *words],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as running:
        try:
            yield running
        finally:
            running.terminate()


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    import socket  # noqa: PLC0415 - for this alone

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


@contextlib.contextmanager
def s3_server() -> Iterator[dict[str, object]]:
    """Moto's S3 server with a bucket ``set``; yields the options to reach it."""
    port = free_port()
    with process("-m", "moto.server", "-p", str(port)):
        for _ in range(300):
            time.sleep(0.1)
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                connection.request("PUT", "/set")
                if connection.getresponse().status == 200:
                    break
            except OSError:
                continue
        else:
            raise OSError("moto's server does not answer")
        yield {
            "endpoint": f"http://127.0.0.1:{port}",
            "access_key_id": "test",
            "secret_access_key": "test",
            "region": "us-east-1",
            "allow_http": True,
        }


@contextlib.contextmanager
def far_server(root: str) -> Iterator[str]:
    """A directory over HTTP, with the latency of a far store; yields the URL."""
    words = f"--dist lognormal --mode-ms {_FAR} --sigma 0.3 --seed 1 --json".split()
    with process("-m", "snailmail.cli", root, *words) as running:
        assert running.stdout is not None
        started = json.loads(running.stdout.readline())
        yield str(started["base"]).rstrip("/")


@contextlib.contextmanager
def dask_workers(count: int) -> Iterator[Any]:
    """A scheduler and workers as processes; yields the client."""
    from distributed import Client  # noqa: PLC0415 - takes a second

    port = free_port()
    with contextlib.ExitStack() as stack:
        cli = "distributed.cli.dask_"
        stack.enter_context(process("-m", f"{cli}scheduler", "--port", str(port), "--no-dashboard"))
        for _ in range(count):
            words = f"tcp://127.0.0.1:{port} --nthreads 1 --no-dashboard --no-nanny".split()
            stack.enter_context(process("-m", f"{cli}worker", *words))
        client: Any = Client(f"tcp://127.0.0.1:{port}", timeout="60s")  # type: ignore[no-untyped-call,unused-ignore]
        stack.enter_context(client)
        client.wait_for_workers(count, timeout=60)
        yield client


# Measurements


class Reads(NamedTuple):
    """What reading from the S3 server came to."""

    open_requests: float
    """For a shard."""
    absent: float
    """Requests for a Get of an absent key."""
    absent_us: float
    hit: float
    """Requests for a Get of a key whose block is not cached."""
    reopened: int
    """Requests for blocks and META after reopening with the cache."""


def requests(s: lsmkv.shards.Shards) -> int:
    """All that it has made."""
    return s.stats().requests.total.requests


def read(url: str, options: dict[str, object], keys: list[bytes], cache: str) -> Reads:
    """Count requests; ``keys`` are there, and far from each other."""
    rng = random.Random(10**9)  # which is no part
    absent = [rng.randbytes(_KEY) for _ in range(100_000)]
    with lsmkv.shards.open(url, options=options, lru_cache_size=0) as s:
        before = requests(s)
        s.warm()
        opened = (requests(s) - before) / len(s.document.shards)
        before = requests(s)
        started = time.perf_counter()
        for key in absent:
            assert s.get(key) is None
        absent_us = (time.perf_counter() - started) / len(absent) * 1e6
        absent_requests = (requests(s) - before) / len(absent)
        before = requests(s)
        for key in keys:
            assert s.get(key) is not None
        hit = (requests(s) - before) / len(keys)
    for _ in range(2):
        with lsmkv.shards.open(url, options=options, version=1, cache_dir=cache) as s:
            assert None not in s.multi_get(keys)
            reopened = requests(s) - 1  # the version itself
    return Reads(opened, absent_requests, absent_us, hit, reopened)


class Far(NamedTuple):
    """Milliseconds over HTTP with latency."""

    cold_get: float
    multi_get: float
    """For a key, a thousand at once."""
    scan: float
    """Pairs a second."""
    scan_requests: float
    """Pairs for a request."""


def read_far(url: str, keys: list[bytes]) -> Far:
    """Time cold reads."""
    with lsmkv.shards.open(url, version=1) as s:
        s.warm()
        taken = [timed(lambda key=key: s.get(key)) for key in keys[:50]]  # type: ignore[misc]
        started = time.perf_counter()
        assert None not in s.multi_get(keys[50:1050])
        at_once = (time.perf_counter() - started) / 1000
        before = requests(s)
        count = 0
        started = time.perf_counter()
        for _ in s.iterator(fill_cache=False):
            count += 1
            if count == 500_000:
                break
        seconds = time.perf_counter() - started
        made = max(1, requests(s) - before)
    return Far(statistics.median(taken) * 1e3, at_once * 1e3, count / seconds, count / made)


def timed(call: Callable[[], object]) -> float:
    """Seconds of a call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


_MEMORY = """
import sys, gc, lsmkv.shards
def resident():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * 4096
with lsmkv.shards.open(sys.argv[1], lru_cache_size=0) as s:
    s.may_contain(b"")
    before = resident(); opened = s.stats().shards_open
    for shard in s.document.shards:
        s.may_contain(shard.first)
    print(resident() - before, s.stats().shards_open - opened)
"""


def memory(url: str) -> float:
    """Bytes that a reader takes for a shard, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", _MEMORY, url], capture_output=True, text=True, check=True
    )
    grown, shards = map(int, done.stdout.split())
    return grown / max(1, shards)


def arithmetic(document: VersionDocument) -> float:
    """Bytes that a shard's filters and indexes take in memory, by what is known of their parts."""
    total = 0.0
    for shard in document.shards:
        tables = [file for file in shard.files if file.name.endswith(".ldb")]
        for one in tables:
            pairs = shard.pairs * one.size // sum(file.size for file in tables)
            total += fuse_shape(pairs).slots + pairs / (BLOCK_BYTES // _ENTRY) * _INDEXED
    return total / len(document.shards)


_ENTRY = _KEY + 8 + _VALUE + 3
"""Bytes of an entry in a block: key and tag, value, and three lengths."""
_INDEXED = 2 * 48 + 6 * 8
"""Bytes of a block in the index: its separator with and without a tag, two places in lists, where
the block begins, its size, the first bytes of the separator, and a place in the block cache."""


def dask_call(client: Any) -> float:
    """Microseconds of a call of an actor."""
    actor = client.submit(dict, actor=True).result()
    actor.get(b"k").result()
    return statistics.median(timed(lambda: actor.get(b"k").result()) for _ in range(500)) * 1e6


# The page


class Figures(NamedTuple):
    """All of them."""

    pairs: int
    one: Built
    two: Built
    dask: Built
    s3: Built
    names: Built
    reads: Reads
    far: Far
    memory: float
    arithmetic: float
    get_us: float
    actor_us: float


def measure(pairs: int) -> Figures:
    """Everything, in a temporary directory."""
    parts: list[Any] = [Generated(seed, pairs // _PARTS) for seed in range(_PARTS)]
    keys = [key for seed in range(_PARTS) for key in list(Generated(seed, 200).keys())[::2]]
    # The first keys of a part, whose data is one stream of random bytes, are those of any count.
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        place = Path(folder)

        def local(name: str, executor: Executor) -> Built:
            built = build(parts, str(place / name), executor, shards=_SHARDS)
            rate = pairs / built.seconds
            say(f"{name}: {built.seconds:.1f} s, {rate:,.0f} pairs a second")
            return built

        with workers(1) as (pool, cpu):
            one = local("one worker", pool)
        one = one._replace(cpu=cpu[0])
        with workers(2) as (pool, cpu):
            two = local("two workers", pool)
        two = two._replace(cpu=cpu[0])
        client = stack.enter_context(dask_workers(2))
        dask = local("dask", client.get_executor())
        actor_us = dask_call(client)
        assert contents(one) == contents(two) == contents(dask)
        options = stack.enter_context(s3_server())
        with workers(2) as (pool, cpu):
            s3 = build(parts, "s3://set/pairs", pool, shards=_SHARDS, options=options)
        s3 = s3._replace(cpu=cpu[0])
        assert contents(s3) == contents(one)
        say(f"published to S3 in {s3.seconds:.1f} s")
        names = build(
            [[(name, b"%x" % n) for n, name in enumerate(sorted(unicode_names().expected))]],
            "s3://set/names",
            client.get_executor(),
            shards=4,
            options=options,
        )
        reads = read("s3://set/pairs", options, keys, str(place / "cache"))
        say(f"read from S3: {reads}")
        root = str(place / "two workers")
        far = read_far(stack.enter_context(far_server(root)), keys)
        say(f"read from afar: {far}")
        with lsmkv.shards.open(root) as s:
            list(map(s.get, keys[:200]))
            get_us = statistics.median(
                timed(lambda key=key: s.get(key)) * 1e6  # type: ignore[misc]
                for key in keys[:200]
            )
        return Figures(
            pairs,
            one,
            two,
            dask,
            s3,
            names,
            reads,
            far,
            memory(root),
            arithmetic(two.document),
            get_us,
            actor_us,
        )


def tables(figures: Figures) -> str:
    """The page's part between the marks."""
    where = machine(tempfile.gettempdir())
    mode = "compiled" if lsmkv.COMPILED else "pure Python"
    f = figures
    reads, far, names = f.reads, f.far, f.names.document
    about = (
        f"Measured by `make bench-scale` ({where['processor']}, {where['cores']} cores,"
        f" {where['python']}, lsmkv {mode}): {f.pairs:,} pairs of {_KEY} + {_VALUE} bytes in"
        f" {_PARTS} parts, {_SHARDS} shards; moto's S3 server on the same machine; for latency,"
        f" snailmail's HTTP server with {_FAR} ms a request at the mode."
    )
    rows = [
        (
            name,
            f"{b.seconds:.1f} s",
            f"{f.pairs / b.seconds:,.0f}",
            f"{f.pairs / b.cpu:,.0f}" if b.cpu else "",
        )
        for name, b in (
            ("one worker", f.one),
            ("two workers", f.two),
            ("two Dask workers", f.dask),
            ("two workers, into S3", f.s3),
        )
    ]
    measured = [
        ("two workers, times one", f"{f.one.seconds / f.two.seconds:.2f}"),
        ("bytes published, a pair", f"{f.two.document.bytes / f.pairs:.1f}"),
        ("requests to open a shard", f"{reads.open_requests:.2f}"),
        ("requests for a Get of an absent key", f"{reads.absent:.4f}"),
        ("its time, with the few that pass a filter", f"{reads.absent_us:.1f} us"),
        ("requests for a Get of a cold key", f"{reads.hit:.2f}"),
        ("requests for blocks, reopened with the cache on disk", f"{reads.reopened}"),
        ("resident memory of a reader, a shard", f"{f.memory / 1e6:.2f} MB"),
        ("filters and index of a shard by arithmetic", f"{f.arithmetic / 1e6:.2f} MB"),
        (f"a cold Get over {_FAR} ms", f"{far.cold_get:.1f} ms"),
        ("multi_get of 1,000 keys over it, a key", f"{far.multi_get:.2f} ms"),
        ("a scan over it", f"{far.scan:,.0f} pairs a second"),
        ("pairs for each request of the scan", f"{far.scan_requests:,.0f}"),
        ("a Get from memory", f"{f.get_us:.1f} us"),
        ("a call of a Dask actor", f"{f.actor_us:,.0f} us"),
    ]
    parts = [
        textwrap.fill(about, _WIDTH, break_on_hyphens=False),
        table(("built by", "time", "pairs a second", "pairs a second of processor time"), rows),
        table(("", "measured"), measured),
        f"The {names.pairs:,} names of Unicode's characters, with Dask into S3:"
        f" {len(names.shards)} shards, {names.bytes / 1e6:.1f} MB, {f.names.seconds:.1f} s.",
        "## The arithmetic for 10^12 pairs",
        "With these figures, and S3's list prices (0.023 dollars a GB and month, 0.005 for\n1,000"
        " puts, 0.0004 for 1,000 gets):",
        table(("", "10^12 pairs"), trillion(f)),
    ]
    return "\n\n".join(parts)


def trillion(f: Figures) -> list[tuple[str, str]]:
    """What 10^12 pairs would take, by proportion."""
    n = 10**12
    size = f.two.document.bytes / f.pairs * n
    tables_ = size / (64 << 20)
    core_hours = n / (f.pairs / f.one.cpu) / 3600
    resident = f.arithmetic * _SHARDS / f.pairs * n
    readers = resident / (48 << 30)
    # A run is _RUN of a worker's memory, and a merge takes _MERGED bytes of it for each run.
    worker = math.sqrt(n * (_KEY + _VALUE) / _RUN * _MERGED)
    per_billion = 1e9 / 1000 * 0.0004
    return [
        ("in object storage", f"{size / 1e12:.0f} TB, {size / 1e9 * 0.023:,.0f} dollars a month"),
        ("core-hours to build", f"{core_hours:,.0f}: a day on {core_hours / 24:,.0f} cores"),
        (
            "memory of a worker, all pairs in one build",
            f"{worker / 1e9:.0f} GB; a sixteenth of the keys in each: {worker / 4e9:.0f} GB",
        ),
        ("puts", f"{tables_ / 1e6:.1f} million tables, {tables_ / 1000 * 0.005:,.0f} dollars"),
        ("memory for filters and indexes", f"{resident / 1e12:.2f} TB"),
        ("readers of 64 GB that hold them all", f"{readers:,.0f}, each with its range of shards"),
        (
            "10^9 Gets of absent keys",
            f"{f.reads.absent * 1e9:,.0f} requests, {f.reads.absent * per_billion:,.2f} dollars;"
            f" without filters 10^9 and {per_billion:,.0f}",
        ),
        ("10^9 Gets of cold keys", f"{per_billion:,.0f} dollars"),
    ]


@guarded
def main(
    page: Annotated[Path, typer.Argument(metavar="PAGE", help="docs/scale.md.")],
    pairs: Annotated[int, typer.Option(metavar="N", help="Pairs to build.")] = 10_000_000,
) -> None:
    """Measure, and write the page's tables."""
    write_measured(page, tables(measure(pairs)))


if __name__ == "__main__":
    typer.run(main)
