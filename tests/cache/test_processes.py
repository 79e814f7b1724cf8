"""Eight processes at one cache: what they may rely on, also once some of them are killed."""

from __future__ import annotations

import ast
import io
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import start

import lsmkv
from lsmkv.cache.keys import CHUNK, COUNTERS, PENDING
from lsmkv.shared.system.local import SHARES

pytestmark = pytest.mark.skipif(not SHARES, reason="processes cannot share a store here")

PROCESSES = 8
LIMIT = 400_000
_COMMON = """
import random, sys
import lsmkv
place, seed, steps, limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
rng = random.Random(seed)

def value_of(key):
    return bytes([key]) * rng.choice((10, 500, 5000, 70_000, 1_200_000 if limit > 2_000_000 else 7))

def some_step(cache):
    key = rng.randrange(80)
    step = rng.randrange(12)
    if step < 4:
        cache.set(key, value_of(key), expire=rng.choice((None, None, 0.001, 100)), tag=key % 3)
    elif step < 8:
        value, expiry, tag = cache.get(key, expire_time=True, tag=True)
        assert value is None or set(value) == {key}, (key, value[:9])
        assert value is None or tag == key % 3
    elif step == 8:
        value = cache.pop(key)
        assert value is None or set(value) == {key}
    elif step == 9:
        cache.touch(key, rng.choice((None, 0.001, 50)))
    elif step == 10:
        cache.delete(key)
    else:
        rng.choice((cache.expire, cache.cull, lambda: cache.evict(key % 3)))()
"""
_COUNTING = (
    _COMMON
    + """
done = {"added": 0, "pulled": [], "popped": [], "counted": 0}
with lsmkv.Cache(place, size_limit=limit, eviction="none") as cache:
    print("open", flush=True)
    sys.stdin.readline()
    for number in range(steps):
        some_step(cache)
        cache.incr("count", 1 + number % 3)
        done["counted"] += 1 + number % 3
        done["added"] += cache.add(f"add {number}", seed)
        cache.push((seed, number), "jobs")
        if rng.random() < 0.9:
            job = cache.pull("jobs")[1]
            done["pulled"] += [] if job is None else [job]
        with cache.transact():
            one, other = cache.get("pair", (0, 0))
            assert one == other
            cache.set("pair", (one + 1, other + 1))
        token = cache.pop(f"token {rng.randrange(steps)}")
        done["popped"] += [] if token is None else [token]
print(done, flush=True)
"""
)
_ENDLESS = (
    _COMMON
    + """
with lsmkv.Cache(place) as cache:
    print("open", flush=True)
    number = 0
    while True:
        some_step(cache)
        number += 1
        if number == steps:
            print("under way", flush=True)
"""
)


class Processes:
    """Processes that run a script on one cache."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.all: list[subprocess.Popen[bytes]] = []

    def begin(self, script: str, steps: int, limit: int) -> subprocess.Popen[bytes]:
        made = start(script, str(self.path), str(len(self.all)), str(steps), str(limit))
        self.all.append(made)
        return made

    @staticmethod
    def line(process: subprocess.Popen[bytes]) -> str:
        assert process.stdout is not None
        return process.stdout.readline().decode().strip()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path / "cache")
    yield made
    for process in made.all:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("steps", [100])
def test_eight_processes_agree(processes: Processes, steps: int) -> None:
    with lsmkv.Cache(processes.path, size_limit=1 << 30, eviction="none") as cache:
        for number in range(steps):
            cache[f"token {number}"] = number
    for _ in range(PROCESSES):
        processes.begin(_COUNTING, steps, 1 << 30)
    for process in processes.all:
        assert processes.line(process) == "open"
    for process in processes.all:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    done = [ast.literal_eval(processes.line(process)) for process in processes.all]
    with lsmkv.Cache(processes.path) as cache:
        assert cache["count"] == sum(one["counted"] for one in done)
        assert sum(one["added"] for one in done) == steps
        jobs = [job for one in done for job in one["pulled"]]
        while (job := cache.pull("jobs")[1]) is not None:
            jobs.append(job)
        assert Counter(jobs) == Counter((p, n) for p in range(PROCESSES) for n in range(steps))
        popped = [token for one in done for token in one["popped"]]
        left = [key for key in cache if isinstance(key, str) and key.startswith("token ")]
        assert len(set(popped)) == len(popped) == steps - len(left)
        assert cache["pair"] == (PROCESSES * steps, PROCESSES * steps)
        assert cache.check() == []
        assert len(list(cache._db.iterator(prefix=COUNTERS))) <= 2


@pytest.mark.parametrize("kills", [24])
def test_killed_processes_leave_nothing_half(processes: Processes, kills: int) -> None:
    limit = 3_000_000
    rng = random.Random(kills)
    lsmkv.Cache(processes.path, size_limit=limit).close()
    running = [processes.begin(_ENDLESS, 10, limit) for _ in range(PROCESSES)]
    for _ in range(kills):
        process = running.pop(rng.randrange(PROCESSES))
        while processes.line(process) != "under way":
            assert process.poll() is None
        process.kill()
        process.wait()  # a process that nobody has waited for still has its id
        running.append(processes.begin(_ENDLESS, 10, limit))
    for process in running:
        process.kill()
        process.wait()
    with lsmkv.Cache(processes.path) as cache:
        assert cache.check() == []
        assert list(cache._db.iterator(prefix=PENDING)) == []
        assert cache.size_limit == limit
        cache["one more"] = b""
        cache.cull()
        assert cache.volume() <= limit
        large = sum(len(value) for _, value in cache._db.iterator(prefix=CHUNK))
        assert large <= limit
        for key in cache:
            value = cache.get(key)
            assert key == "one more" or value is None or set(value) == {key}


def test_a_large_value_is_stored_beside_another_pid_namespace(tmp_path: Path) -> None:
    """A process there opens the cache meanwhile, and does not know the writer's process id."""
    before = ("unshare", "-p", "-f", "-m", "--kill-child", "--mount-proc")
    if not shutil.which("unshare") or subprocess.run([*before, "true"], check=False).returncode:
        pytest.skip("no process may have new namespaces here")
    script = "import sys, lsmkv; lsmkv.Cache(sys.argv[1]).close()"
    value = bytes(3 << 20)

    class Opening(io.BytesIO):
        """Has the cache opened elsewhere once two chunks are stored."""

        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() == 2 << 20:
                with start(script, str(tmp_path), before=before) as opening:
                    pass
                assert opening.returncode == 0
            return super().read(size)

    with lsmkv.Cache(tmp_path) as owner:
        for cache in (owner, lsmkv.Cache(tmp_path)):
            assert cache.set("k", Opening(value), read=True)
            assert cache.get("k") == value
            assert list(owner._db.iterator(prefix=PENDING)) == []
        cache.close()
