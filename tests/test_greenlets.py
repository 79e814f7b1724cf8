"""lsmkv under gevent, eventlet and gunicorn: greenlets of one thread share a store, and none hangs.

Each runs as a program of its own, since it changes the interpreter's modules.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from others import Other
from processes import free_port, run_python
from web_servers import ask, running

import lsmkv
from lsmkv.shared.system.local import SHARES

# Not imported: eventlet changes what a fork does.
pytestmark = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("gevent", "eventlet", "gunicorn")),
    reason="they are installed with the other requirements of the suite",
)

WORK = """
def work(number):
    for turn in range(600):
        db.put(b"%d-%04d" % (number, turn), bytes(50), sync=turn % 50 == 0)
        if turn % 20 == 0:
            switch()
        if turn % 200 == 0:
            assert db.get(b"%d-%04d" % (number, turn)) == bytes(50)
            next(db.iterator(prefix=b"%d-" % number))
            with db.transaction() as transaction:
                transaction.put(b"transaction %d" % number, b"")
                switch()
"""

GEVENT = """
import sys
import gevent.monkey
if sys.argv[2] == "before":
    gevent.monkey.patch_all()
import lsmkv
gevent.monkey.patch_all()
import gevent

switch = lambda: gevent.sleep(0)
db = lsmkv.DB(
    sys.argv[1], create_if_missing=True, write_buffer_size=20_000, background=sys.argv[3]
)
gevent.joinall([gevent.spawn(work, number) for number in range(3)], raise_error=True)
db.flush()
db.compact_range()
db.close()
"""

EVENTLET = """
import sys
import eventlet
eventlet.monkey_patch()
import lsmkv

switch = lambda: eventlet.sleep(0)
db = lsmkv.DB(sys.argv[1], create_if_missing=True, write_buffer_size=20_000)
threads = [eventlet.spawn(work, number) for number in range(3)]
for thread in threads:
    thread.wait()
db.flush()
db.compact_range()
db.close()
"""

APPLICATION = """
import lsmkv
db = lsmkv.DB("db", create_if_missing=True, write_buffer_size=20_000)

def application(environ, start_response):
    name = environ["PATH_INFO"].encode()
    db.put(name, bytes(100), sync=True)
    assert db.get(name) == bytes(100)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"%d" % sum(1 for _ in db.iterator(prefix=name))]
"""

PYWSGI = """
import gevent.monkey
gevent.monkey.patch_all()
import gevent, urllib.request
from gevent.pywsgi import WSGIServer
from application import application, db

server = WSGIServer(("127.0.0.1", 0), application, log=None)
server.start()

def ask(client):
    for number in range(30):
        url = f"http://127.0.0.1:{server.server_port}/{client}-{number}"
        assert urllib.request.urlopen(url).read() == b"1"

gevent.joinall([gevent.spawn(ask, client) for client in range(8)], raise_error=True)
assert sum(1 for _ in db) == 240
db.close()
"""


STOP = """
import os, signal, sys
import lsmkv

def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    while True:
        with open(f"/proc/{pid}/status") as file:
            if "State:\\tT" in file.read():
                return
"""

MEMBER = """
db = lsmkv.SharedDB(sys.argv[1], may_own=False, patience=20.0)
db.put(b"first", b"")
stop(db.owner)
failed = []

def late(call, *arguments):
    try:
        call(*arguments)
    except lsmkv.Error as error:
        failed.append(type(error).__name__)

def tick():
    for _ in range(20):
        pause(0.01)
    assert db.get(b"0") is None
    os.kill(db.owner, signal.SIGCONT)

def count(old):
    return b"%d" % (int(old or 0) + 1)

calls = [(db.put, b"%d" % number, b"v") for number in range(3)]
calls += [(db.put, b"large", bytes(1_000_000))]
calls += [(db.update, b"n", count)] * 3
calls += [(db.run, lambda t: t.put(b"t", t.get(b"first") + b"v")), (db.compact_range,)]
together([(tick,), *[(late, *call) for call in calls]])
assert not failed, failed
assert [db.get(key) for key in (b"0", b"1", b"2", b"n", b"t")] == [b"v", b"v", b"v", b"3", b"v"]
assert len(db.get(b"large")) == 1_000_000

# One greenlet closes the store for which another one waits.
owner = db.owner
stop(owner)
together([(late, db.put, b"k", b"w"), (lambda: (pause(0.05), db.close()),)])
os.kill(owner, signal.SIGCONT)
assert failed in (["ClosedError"], ["OutcomeUnknownError"]), failed
"""

CACHE = """
cache = lsmkv.Cache(sys.argv[1], shared=True)
owner = cache._db.owner
assert owner != os.getpid()
cache.incr("n")
ticks = []

def tick():
    while len(ticks) < 10:
        ticks.append(cache.get("n"))
        pause(0.01)

stop(owner)
os.posix_spawn("/bin/sh", ["sh", "-c", f"sleep 1; kill -CONT {owner}"], os.environ)
together([(tick,), *[(cache.incr, "n")] * 5])
assert cache.get("n") == 6
assert ticks == [6] * 10, ticks

# Nor while a store is opened.
opened = []
def open_it():
    opened.append(lsmkv.SharedDB(sys.argv[1], bloom_filter_bits=10))

def look():
    ticks.append(len(opened))

stop(owner)
os.posix_spawn("/bin/sh", ["sh", "-c", f"sleep 1; kill -CONT {owner}"], os.environ)
together([(look,), (open_it,)])
assert ticks[10:] == [1], ticks
opened[0].close()
cache.close()
"""

MEMBER_IN_GEVENT = """
import gevent.monkey
gevent.monkey.patch_all()
import gevent
pause = gevent.sleep
def together(calls):
    gevent.joinall([gevent.spawn(*call) for call in reversed(calls)], raise_error=True)
"""

MEMBER_IN_EVENTLET = """
import eventlet
eventlet.monkey_patch()
pause = eventlet.sleep
def together(calls):
    for one in [eventlet.spawn(*call) for call in reversed(calls)]:
        one.wait()
"""


def run(program: str, *arguments: str, cwd: Path) -> None:
    done = run_python("-W", "ignore", "-c", program, *arguments, timeout=200, cwd=cwd)
    assert done.returncode == 0, done.stderr


def assert_whole(path: Path) -> None:
    with lsmkv.DB(path) as db:
        assert sum(1 for _ in db) == 3 * 600 + 3
        db.check()


@pytest.mark.parametrize("background", ["thread", "auto"])
@pytest.mark.parametrize("patched", ["before", "after"])
def test_three_greenlets_of_gevent_write(patched: str, background: str, tmp_path: Path) -> None:
    run(WORK + GEVENT, str(tmp_path / "db"), patched, background, cwd=tmp_path)
    assert_whole(tmp_path / "db")


def test_three_greenlets_of_eventlet_write(tmp_path: Path) -> None:
    run(WORK + EVENTLET, str(tmp_path / "db"), cwd=tmp_path)
    assert_whole(tmp_path / "db")


def test_a_server_of_gevent_with_eight_clients(tmp_path: Path) -> None:
    (tmp_path / "application.py").write_text(APPLICATION)
    run("import sys; sys.path.insert(0, '.')\n" + PYWSGI, cwd=tmp_path)


def test_gunicorn_with_gevent_workers(tmp_path: Path) -> None:
    (tmp_path / "application.py").write_text(APPLICATION)
    port = free_port()
    command = ("gunicorn", "-k", "gevent", "-b", f"127.0.0.1:{port}", "application:application")
    with running(tmp_path, *command) as (_, log):
        ask(port, "/first")
        clients = [
            subprocess.Popen([sys.executable, "-c", CLIENT, str(port), str(client)])
            for client in range(4)
        ]
        assert [client.wait(timeout=100) for client in clients] == [0] * 4, log.read_text()
    # It was terminated: its handler runs wherever the worker is, in a put perhaps.
    with lsmkv.DB(tmp_path / "db") as db:
        assert sum(1 for _ in db) == 4 * 40 + 1
        db.check()


CLIENT = """
import sys, urllib.request
for number in range(40):
    url = f"http://127.0.0.1:{sys.argv[1]}/{sys.argv[2]}-{number}"
    assert urllib.request.urlopen(url, timeout=60).read() == b"1"
"""


@pytest.mark.skipif(not SHARES, reason="needs Linux")
@pytest.mark.parametrize(
    "library", [MEMBER_IN_GEVENT, MEMBER_IN_EVENTLET], ids=["gevent", "eventlet"]
)
def test_greenlets_go_on_while_others_wait_for_a_stopped_owner(
    library: str, tmp_path: Path
) -> None:
    owner = Other(tmp_path / "db", create_if_missing=True)
    run(library + STOP + MEMBER, str(tmp_path / "db"), cwd=tmp_path)
    owner.kill()


@pytest.mark.skipif(not SHARES, reason="needs Linux")
@pytest.mark.parametrize(
    "library", [MEMBER_IN_GEVENT, MEMBER_IN_EVENTLET], ids=["gevent", "eventlet"]
)
def test_steps_of_a_shared_cache_and_openings_are_waited_for_by_all_greenlets(
    library: str, tmp_path: Path
) -> None:
    owner = Other(tmp_path / "db", create_if_missing=True, bloom_filter_bits=10)
    run(library + STOP + CACHE, str(tmp_path / "db"), cwd=tmp_path)
    owner.kill()
