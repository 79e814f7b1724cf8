"""docs/guides/workers.md: what web servers with several workers do to a store, tried with them."""

from __future__ import annotations

import re
import signal
import time
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from processes import free_port, run_python
from web_servers import ask, running

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "workers.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.skipif(
    find_spec("gunicorn") is None, reason="it is installed with the other requirements of the suite"
)

AT_IMPORT = """
import lsmkv
db = lsmkv.DB("db", create_if_missing=True{options})

def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    try:
        db.put(b"k", b"v")
        return [b"written"]
    except lsmkv.Error as error:
        return [f"{{type(error).__name__}}: {{error}}".encode()]

async def app(scope, receive, send):
    assert scope["type"] == "http"
    await send({{"type": "http.response.start", "status": 200, "headers": []}})
    await send({{"type": "http.response.body", "body": b"served"}})
"""


def wait_for(log: Path, words: str) -> str:
    end = time.monotonic() + 60
    while words not in (text := log.read_text()):
        assert time.monotonic() < end, text
        time.sleep(0.05)
    return text


def shown(words: str) -> str:
    """A line that the page quotes; process ids and paths are others each time."""
    (line,) = [line for line in PAGE.splitlines() if words in line and not line.startswith("|")]
    return re.sub(r"\d{3,}", r"\\d+", re.escape(line)).replace("naive/", ".*")


def test_the_second_worker_of_gunicorn_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(AT_IMPORT.format(options=""))
    bind = f"127.0.0.1:{free_port()}"
    with running(tmp_path, "gunicorn", "-w", "2", "-b", bind, "shop:application") as (server, log):
        assert server.wait(timeout=60) == 3
    text = log.read_text()
    for words in ("the database is in use", "exited with code 3", "Reason: Worker failed"):
        quoted = shown(words).removeprefix(re.escape("[ERROR] "))
        assert re.search(quoted, text), (quoted, text)


def test_a_store_that_is_opened_before_the_fork_is_the_parents(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(AT_IMPORT.format(options=""))
    port = free_port()
    command = ("gunicorn", "--preload", "-w", "2", "-b", f"127.0.0.1:{port}", "shop:application")
    with running(tmp_path, *command):
        assert re.search(ask(port), shown("ForkedError: ").replace("\\", ""))


def test_a_worker_of_uvicorn_is_refused_again_and_again(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    (tmp_path / "shop.py").write_text(AT_IMPORT.format(options=""))
    port = free_port()
    with running(tmp_path, "uvicorn", "--workers", "2", "--port", str(port), "shop:app") as (
        _,
        log,
    ):
        assert ask(port) == "served"
        text = wait_for(log, "LockedError")
    assert "the database is in use" in text


def test_a_reload_waits_for_the_old_worker(tmp_path: Path) -> None:
    """Gunicorn starts the new worker before it ends the old one."""
    (tmp_path / "shop.py").write_text(AT_IMPORT.format(options=", lock_timeout=20"))
    port = free_port()
    command = ("gunicorn", "-w", "1", "-b", f"127.0.0.1:{port}", "shop:application")
    with running(tmp_path, *command) as (server, log):
        assert ask(port) == "written"
        server.send_signal(signal.SIGHUP)
        text = wait_for(log, "Worker exiting")
        assert ask(port) == "written"
    assert "LockedError" not in text
    assert len(re.findall("Booting worker", log.read_text())) == 2


@pytest.mark.parametrize("preload", [[], ["--preload"]], ids=["forked", "preloaded"])
def test_a_store_for_each_worker(preload: list[str], tmp_path: Path) -> None:
    (tmp_path / "web_workers.py").write_bytes((ROOT / "examples" / "web_workers.py").read_bytes())
    port = free_port()
    command = (
        "gunicorn",
        *preload,
        "-w",
        "2",
        "-b",
        f"127.0.0.1:{port}",
        "web_workers:application",
    )
    with running(tmp_path, *command) as (server, log):
        stores: set[str] = set()
        while len(stores) < 2:
            assert ask(port, "/91") == "13\n"
            text = ask(port, "/metrics")
            stores |= set(re.findall(r'lsmkv_publishing{store="(.*)"} 1', text))
        assert stores == {"worker-0", "worker-1"}
        server.send_signal(signal.SIGHUP)  # those that follow take over, or take the next ones
        wait_for(log, "Worker exiting")
        assert ask(port, "/91") == "13\n"


def test_celery_opens_a_store_in_each_process_of_its_pool(tmp_path: Path) -> None:
    pytest.importorskip("celery")
    claim = re.search(r"(?m)^>>> def claim.*?\n((?:^\.\.\. .*\n)+)", PAGE)
    (hooks,) = re.findall(r"(?ms)^```text\n(from celery.*?)^```", PAGE)
    assert claim is not None
    lines = "".join(line[4:] for line in claim[0].splitlines(keepends=True))
    (tmp_path / "tasks.py").write_text(
        "import os, time, lsmkv\nfrom celery import Celery\n"
        "app = Celery('tasks', broker='filesystem://', backend=f'file://{os.getcwd()}/results')\n"
        "app.conf.broker_transport_options = {\n"
        "    f'data_folder_{way}': 'queue' for way in ('in', 'out')\n}\n"
        f"{lines}\n{hooks}\n"
        "@app.task\ndef note(number):\n"
        "    time.sleep(0.2)\n    db.put(b'%d' % number, b'v')\n    return db.path\n"
    )
    for name in ("queue", "results"):
        (tmp_path / name).mkdir()
    asked = (
        "from tasks import note\n"
        "asked = [note.delay(number) for number in range(6)]\n"
        "print(sorted({one.get(timeout=60) for one in asked}))\n"
    )
    with running(tmp_path, "celery", "-A", "tasks", "worker", "-P", "prefork", "-c", "2"):
        done = run_python("-c", asked, cwd=tmp_path)
    assert done.stdout == "['cache/worker-0', 'cache/worker-1']\n", done.stderr


def test_the_table_of_places_names_their_tests() -> None:
    file = ROOT / "tests" / "deploys" / "test_places.py"
    spec = spec_from_file_location("places", file)
    assert spec is not None
    assert spec.loader is not None
    places = module_from_spec(spec)
    spec.loader.exec_module(places)
    _, _, table = PAGE.partition("### Where it works")
    rows = re.findall(r"(?m)^\| (.+?) \| (yes|no)\b.* \| `(.+?)` \|$", table.partition("\n## ")[0])
    named: dict[str, set[str]] = {}
    for together, works, test in rows:
        assert works == "yes" or "forks_behind" in test
        named.setdefault(test, set()).update(together.split("; "))
    assert named.pop("test_web_server") == set(places.commands(0))
    assert named.pop("test_pool") == set(places.POOLS)
    assert (ROOT / "tests/packaging/test_frozen.py").exists()
    assert named.pop("tests/packaging/test_frozen.py") == {"PyInstaller"}
    others = {name for name in vars(places) if name.startswith("test_")}
    assert set(named) == others - {"test_web_server", "test_pool"}
