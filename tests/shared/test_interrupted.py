"""Members whose calls are interrupted: by signal handlers, finalizers, forks and greenlets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from others import Other, new
from processes import python, start

Start = Callable[..., Other]


def run(script: str, path: Path, *arguments: str) -> Any:
    """Run a script on the store; what it prints as JSON."""
    child = python(script, str(path), *arguments, check=False)
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


_HANDLER = """
import json, signal, sys, time
import lsmkv

db = lsmkv.SharedDB(sys.argv[1], may_own=False)
assert db.role == "member"
calls = 0
done = False
failed = []

def handler(number, frame):
    global calls
    try:
        calls += 1
        db.put(b"handler", b"%d" % calls, sync=calls % 5 == 0)
        if db.get(b"handler") != b"%d" % calls:
            failed.append("not what it has written")
        if calls % 3 == 0:
            with db.transaction() as transaction:
                transaction.put(b"t", transaction.get(b"t", b"") + b"x")
    except BaseException as error:
        failed.append(repr(error))
    if not done:
        signal.setitimer(signal.ITIMER_REAL, 0.003)

signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.003)
large = bytes(3_000_000)
puts = 0
until = time.monotonic() + 60
while calls < 150 and time.monotonic() < until:
    db.put(b"large", b"%d" % puts + large)
    db.put(b"small", b"%d" % puts)
    assert db.get(b"small") == b"%d" % puts
    assert db.get(b"large")[:-3_000_000] == b"%d" % puts
    puts += 1
done = True  # a handler that runs now does not set the timer again
signal.setitimer(signal.ITIMER_REAL, 0)
assert db.get(b"handler") == b"%d" % calls
print(json.dumps({"calls": calls, "failed": failed, "t": len(db.get(b"t"))}))
db.close()
"""


def test_a_signal_handler_in_the_middle_of_a_request(path: Path) -> None:
    with new(path, write_buffer_size=64 << 20) as db:
        seen = run(_HANDLER, path)
        assert seen["failed"] == []
        assert seen["calls"] >= 150
        assert seen["t"] == seen["calls"] // 3
        assert db.get(b"handler") == b"%d" % seen["calls"]
        assert not db.members


_NESTED = """
import json, sys
import lsmkv

db = lsmkv.SharedDB(sys.argv[1], may_own=False)
db.put(b"before", b"1")
assert db.get(b"before") == b"1"
seen = []
lock = db._store.lock
for number in range(3):
    with lock.nested, lock.guard:
        key = b"k%d" % number
        db.put(key, b"v")
        with db.snapshot() as snapshot, db.iterator(include_value=False) as keys:
            seen.append([
                db.get(key) == b"v",
                db.multi_get([key, b"before"]) == [b"v", b"1"],
                snapshot.get(key) == b"v",
                list(keys)[-1] == key,
                db.may_contain(key),
            ])
    seen.append([db.get(key) == b"v", list(db)[-1] == (key, b"v")])
    if number == 1:
        db.compact_range()
db.put(b"k1", b"w")
seen.append([db.get(b"k1") == b"w", db.get(b"k0") == b"v"])
print(json.dumps(sorted({answer for answers in seen for answer in answers})))
db.close()
"""


def test_a_nested_read_sees_what_was_acknowledged(path: Path) -> None:
    """Although the interrupted call has the store's lock, and is about to show older writes."""
    with new(path) as db:
        assert run(_NESTED, path) == [True]
        assert len(list(db)) == 4
        assert not db.leases().leases


_FINALIZER = """
import gc, json, sys
import lsmkv

db = lsmkv.SharedDB(sys.argv[1], may_own=False)
made = kept = 0
failed = []

class Cycle:
    def __init__(self, number):
        self.number = number
        self.me = self

    def __del__(self):
        global kept
        try:
            db.put(b"f%06d" % self.number, b"v")
            kept += db.get(b"f%06d" % self.number) == b"v"
        except BaseException as error:
            failed.append(repr(error))

gc.set_threshold(7)
for made in range(1, 301):
    Cycle(made)
    with db.write_batch() as batch:
        batch.put(b"a", b"%d" % made)
        batch.put(b"b", b"%d" % made)
    assert db.multi_get([b"a", b"b"]) == [b"%d" % made] * 2
gc.collect()
gc.set_threshold(700)
found = len(list(db.iterator(prefix=b"f")))
print(json.dumps({"made": made, "kept": kept, "found": found, "failed": failed}))
db.close()
"""


def test_finalizers_that_write(path: Path) -> None:
    with new(path):
        assert run(_FINALIZER, path) == {"made": 300, "kept": 300, "found": 300, "failed": []}


_FORKS = """
import json, os, random, sys, threading, time
import lsmkv

path, role, forks = sys.argv[1], sys.argv[2], int(sys.argv[3])
db = lsmkv.SharedDB(path, create_if_missing=True, may_own=role == "owner")
assert db.role == role
stopping = False
written = [0] * 3
failed = []

def work(number):
    try:
        while not stopping:
            written[number] += 1
            value = b"%d" % written[number]
            db.put(b"t%d" % number, value, sync=written[number] % 20 == 0)
            assert db.get(b"t%d" % number) == value
            if written[number] % 7 == 0:
                db.update(b"count", lambda old: b"%d" % (int(old or 0) + 1))
            if written[number] % 50 == 0:  # joins and leaves
                with lsmkv.SharedDB(path, may_own=False) as again:
                    assert again.get(b"t%d" % number) == value
    except BaseException as error:
        failed.append(repr(error))

def left():
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            name = os.readlink("/proc/self/fd/" + fd)
        except OSError:
            continue
        if name.startswith("socket:") or name.endswith(("/LOCK", "/SHARED")):
            found.append(name)
    return found

threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
rng = random.Random(7)
inherited = []
for fork in range(forks):
    time.sleep(rng.random() * 0.004)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            names = left()
            if fork % 3 == 0:
                db.put(b"child%d" % fork, b"v")
                assert db.get(b"child%d" % fork) == b"v"
                assert db.role == "member"
                db.close()
            os.write(write, json.dumps(names).encode())
            os._exit(0)
        except BaseException as error:
            os.write(write, json.dumps([repr(error)]).encode())
            os._exit(1)
    os.close(write)
    with open(read, "rb") as pipe:
        inherited += json.loads(pipe.read() or b'["died"]')
    os.waitpid(child, 0)
stopping = True
for thread in threads:
    thread.join()
children = len(list(db.iterator(prefix=b"child")))
print(json.dumps({"failed": failed, "children": children, "inherited": inherited}))
db.close()
"""


@pytest.mark.parametrize("role", ["owner", "member"])
def test_forks_at_any_moment_of_other_threads(path: Path, other: Start, role: str) -> None:
    """The children close what is the parent's at once, and join when they need to."""
    if role == "member":
        other(create_if_missing=True)
    seen = run(_FORKS, path, role, "100")
    assert seen["failed"] == []
    assert seen["inherited"] == []
    assert seen["children"] == 34


_GREENLETS = """
import json, sys
from gevent import monkey
monkey.patch_all()
import gevent
import lsmkv

db = lsmkv.SharedDB(sys.argv[1], create_if_missing=True)
role = db.role
def work(number):
    for n in range(20):
        db.put(b"g%d" % number, b"%d" % n)
        assert db.get(b"g%d" % number) == b"%d" % n
        db.update(b"count", lambda old: b"%d" % (int(old or 0) + 1))
        gevent.sleep(0)
        if number == 0 and n == 10:
            print("half", flush=True)
            sys.stdin.readline()

gevent.joinall([gevent.spawn(work, number) for number in range(20)], raise_error=True)
print(json.dumps({"count": db.get(b"count").decode(), "role": role, "now": db.role}), flush=True)
db.close()
"""


def test_greenlets_of_a_member_whose_owner_is_killed(path: Path, other: Start) -> None:
    pytest.importorskip("gevent")
    owner = other(create_if_missing=True)
    child = start(_GREENLETS, str(path))
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == b"half\n"
    owner.kill()
    child.stdin.write(b"\n")
    child.stdin.flush()
    seen = json.loads(child.stdout.readline())
    child.stdin.close()
    child.stdout.close()
    assert child.wait() == 0
    assert seen == {"count": "400", "role": "member", "now": "owner"}
