"""Web servers whose workers share a store, started as their users start them."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest
from others import put_number
from processes import free_port, run_python
from web_servers import ask, running

import lsmkv

pytestmark = pytest.mark.skipif(
    find_spec("gunicorn") is None, reason="it is installed with the other requirements of the suite"
)

STORE = """
import os
import lsmkv
db = lsmkv.SharedDB("db", create_if_missing=True)

def visit():
    count = db.update(b"visits", lambda old: b"%d" % (int(old or 0) + 1))
    db.update(b"by %d" % os.getpid(), lambda old: b"%d" % (int(old or 0) + 1))
    return count
"""
AT_IMPORT = f"""{STORE}
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [visit()]

async def app(scope, receive, send):
    assert scope["type"] == "http"
    await send({{"type": "http.response.start", "status": 200, "headers": []}})
    await send({{"type": "http.response.body", "body": visit()}})
"""


def visits(path: Path) -> list[int]:
    """How often each process was visited."""
    with lsmkv.SharedDB(path / "db") as db:
        found = [int(value) for _, value in db.iterator(prefix=b"by ")]
        assert sum(found) == int(db.get(b"visits", b"0"))
        return found


@pytest.mark.parametrize(
    "options",
    [
        ["-w", "4"],
        ["--preload", "-w", "4"],
        ["-w", "2", "-k", "gevent"],
        ["-w", "2", "--threads", "4"],
    ],
    ids=["forked", "preloaded", "gevent", "threads"],
)
def test_gunicorn(options: list[str], tmp_path: Path) -> None:
    if "gevent" in options:
        pytest.importorskip("gevent")
    (tmp_path / "shop.py").write_text(AT_IMPORT)
    port = free_port()
    with running(tmp_path, "gunicorn", *options, "-b", f"127.0.0.1:{port}", "shop:application"):
        seen = [int(ask(port))]
        with ThreadPoolExecutor(8) as several:
            for _ in range(50):
                seen += several.map(lambda _: int(ask(port)), range(16))
                if len(visits(tmp_path)) > 1:
                    break
        assert sorted(seen) == list(range(1, len(seen) + 1))
        assert len(visits(tmp_path)) > 1
    assert sum(visits(tmp_path)) == len(seen)


@pytest.mark.parametrize(
    "options",
    [["-w", "3"], ["--preload", "-w", "2"], ["-w", "2", "-k", "gevent"]],
    ids=["forked", "preloaded", "gevent"],
)
def test_workers_that_leave_the_store_to_a_process(options: list[str], tmp_path: Path) -> None:
    if "gevent" in options:
        pytest.importorskip("gevent")
    (tmp_path / "shop.py").write_text(AT_IMPORT.replace('"db", ', '"db", owner="process", '))
    port = free_port()
    command = ("gunicorn", *options, "-b", f"127.0.0.1:{port}", "shop:application")
    with running(tmp_path, *command) as (server, log):
        assert int(ask(port)) == 1
        owner = int((tmp_path / "db" / "LOCK").read_bytes())
        pids = re.findall(r"Booting worker with pid: (\d+)", log.read_text())
        assert owner not in (server.pid, *map(int, pids))
        os.kill(owner, signal.SIGKILL)
        assert [int(ask(port)) for _ in range(5)] == [2, 3, 4, 5, 6]
        owner = int((tmp_path / "db" / "LOCK").read_bytes())
    os.kill(owner, signal.SIGTERM)  # it would end by itself, but not at once


def test_workers_of_gunicorn_that_are_killed_and_restarted(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(AT_IMPORT)
    port = free_port()
    command = ("gunicorn", "-w", "3", "-b", f"127.0.0.1:{port}", "shop:application")
    with running(tmp_path, *command) as (server, log):
        seen = int(ask(port))
        for turn in range(3):
            pids = [
                int(pid) for pid in re.findall(r"Booting worker with pid: (\d+)", log.read_text())
            ]
            owner = int((tmp_path / "db" / "LOCK").read_bytes())
            assert owner in pids
            os.kill(owner, signal.SIGKILL if turn else signal.SIGTERM)
            for _ in range(10):
                now = int(ask(port))
                assert now == seen + 1
                seen = now
        server.send_signal(signal.SIGHUP)  # all workers are replaced
        for _ in range(10):
            seen += 1
            assert int(ask(port)) == seen
            time.sleep(0.02)


def test_uvicorn(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    (tmp_path / "shop.py").write_text(AT_IMPORT)
    port = free_port()
    with running(tmp_path, "uvicorn", "--workers", "4", "--port", str(port), "shop:app"):
        assert [int(ask(port)) for _ in range(20)] == list(range(1, 21))


def test_celery(tmp_path: Path) -> None:
    pytest.importorskip("celery")
    (tmp_path / "tasks.py").write_text(
        "import os, time\nfrom celery import Celery\n"
        "celery = Celery('tasks', broker='filesystem://', backend=f'file://{os.getcwd()}/results')\n"
        "celery.conf.broker_transport_options = {\n"
        "    f'data_folder_{way}': 'queue' for way in ('in', 'out')\n}\n"
        f"{STORE}\n"
        "@celery.task\ndef note():\n"
        "    time.sleep(0.2)\n    return int(visit())\n"
    )
    for name in ("queue", "results"):
        (tmp_path / name).mkdir()
    asked = (
        "from tasks import note, db\n"
        "db.close()\n"
        "asked = [note.delay() for _ in range(6)]\n"
        "print(sorted(one.get(timeout=60) for one in asked))\n"
    )
    with running(tmp_path, "celery", "-A", "tasks", "worker", "-P", "prefork", "-c", "3"):
        done = run_python("-c", asked, cwd=tmp_path)
    assert done.stdout == "[1, 2, 3, 4, 5, 6]\n", done.stderr
    assert len(visits(tmp_path)) == 3


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_handle_is_handed_to_the_processes_of_a_pool(method: str, tmp_path: Path) -> None:
    with lsmkv.SharedDB(tmp_path / "db", create_if_missing=True) as db:
        with multiprocessing.get_context(method).Pool(2) as pool:
            roles = pool.starmap(put_number, [(db, number) for number in range(6)])
        assert set(roles) == {"member"}
        assert len(list(db)) == 6
