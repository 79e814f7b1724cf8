"""lsmkv under gevent, eventlet and gunicorn: greenlets of one thread share a store, and none hangs.

Each runs as a program of its own, since it changes the interpreter's modules.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from processes import free_port, run_python
from web_servers import ask, running

import lsmkv

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
