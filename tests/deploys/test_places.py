"""Servers and pools whose processes share a store: the real ones, started as their users do.

``docs/guides/workers.md`` has a table of these.  Each place runs ``shop.py``: many visits at once,
by several processes, are all counted; the owner is killed; the next visits are counted too.
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from processes import ENVIRON, free_port, run_python
from web_servers import ask, running

import lsmkv
from lsmkv.testing import serving

SHOP = Path(__file__).with_name("shop.py")
BIN = Path(sys.executable).parent
MODULES = Path("/usr/lib/apache2/modules")
HERE = {"PYTHONPATH": f"{ENVIRON['PYTHONPATH']}{os.pathsep}{SHOP.parent}"}

NEEDED = ("cramjam", "crcmod", "google_crc32c", "librt", "mypy_ext", "sortedcontainers", "xxhash")

OWNERS = pytest.mark.parametrize("owner", ["", "process"], ids=["worker-owns", "process-owns"])
Start = Callable[..., contextlib.AbstractContextManager[int]]


def visits(port: int) -> list[int]:
    """How many each process has counted."""
    return [int(value) for value in ask(port, "/by").split()]


def owner_of(store: Path) -> int:
    return int((store / "LOCK").read_bytes())


def end_owner(store: Path) -> None:
    """One that does nothing else ends by itself, but not at once."""
    with contextlib.suppress(ProcessLookupError, FileNotFoundError, ValueError):
        if b"lsmkv-owner" in Path(f"/proc/{owner_of(store)}/cmdline").read_bytes():
            os.kill(owner_of(store), signal.SIGTERM)


@contextlib.contextmanager
def served(folder: Path, owner: str, command: list[str]) -> Iterator[tuple[int, Path]]:
    """A program at work in a folder: its process, and the log of what it prints."""
    variables = {"STORE": str(folder / "db"), "OWNER": owner, **HERE}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setitem(ENVIRON, name, value)
        with running(folder, *command) as (server, log):
            yield server.pid, log
    end_owner(folder / "db")


def count_visits(port: int, store: Path, spared: int | None = 0) -> None:
    """Many at once, of several processes, then some after a kill of the owner.

    Not if it is ``spared``, the server itself; with None any owner is.
    """
    seen = [int(ask(port))]
    with ThreadPoolExecutor(8) as several:
        while len(seen) < 33 or len(visits(port)) < 2:
            seen += several.map(lambda _: int(ask(port)), range(16))
            assert len(seen) < 2000, "one process answers all"
    assert sorted(seen) == list(range(1, len(seen) + 1))
    if spared is not None and owner_of(store) != spared:
        os.kill(owner_of(store), signal.SIGKILL)
    for _ in range(8):
        seen.append(int(ask(port)))
        assert seen[-1] == len(seen)
    assert sum(visits(port)) == len(seen)


def commands(port: int) -> dict[str, list[str]]:
    """How each server is started, so that it listens to a port of this machine."""
    bind = f"127.0.0.1:{port}"
    gunicorn = ["gunicorn", "-b", bind, "shop:application"]
    uwsgi = [str(BIN / "uwsgi"), "--http-socket", bind, "--virtualenv", sys.prefix, "--master"]
    uwsgi += ["--die-on-term", "--processes", "3", "--worker-reload-mercy", "9", "--module", "shop"]
    activate = ["/usr/bin/systemd-socket-activate", "--listen", bind]
    activate += [f"--setenv={name}" for name in ("PYTHONPATH", "STORE", "OWNER", "PATH")]
    return {
        "gunicorn, sync": [*gunicorn, "-w", "3"],
        "gunicorn, gthread": [*gunicorn, "-w", "2", "-k", "gthread", "--threads", "4"],
        "gunicorn, gevent": [*gunicorn, "-w", "2", "-k", "gevent"],
        "gunicorn --preload": [*gunicorn, "-w", "3", "--preload"],
        "uvicorn --workers": ["uvicorn", "--workers", "3", "--port", str(port), "shop:app"],
        "hypercorn": ["hypercorn", "-w", "3", "-b", bind, "shop:app"],
        "uWSGI --lazy-apps": [*uwsgi, "--enable-threads", "--lazy-apps"],
        "uWSGI --py-call-uwsgi-fork-hooks": [
            *(*uwsgi, "--enable-threads", "--py-call-uwsgi-fork-hooks"),
        ],
        "uWSGI --py-call-osafterfork": [*uwsgi, "--enable-threads", "--py-call-osafterfork"],
        "systemd socket activation": [
            *(*activate, sys.executable, "-m", "gunicorn", "-w", "3", "shop:application"),
        ],
    }


@OWNERS
@pytest.mark.parametrize("place", commands(0))
def test_web_server(place: str, owner: str, tmp_path: Path) -> None:
    port = free_port()
    with served(tmp_path, owner, commands(port)[place]) as (server, _):
        ends_with_a_worker = place == "hypercorn" and not owner
        count_visits(port, tmp_path / "db", None if ends_with_a_worker else server)


@pytest.mark.parametrize("owner", ["", "process"])
def test_uwsgi_that_forks_behind_the_back_of_python(owner: str, tmp_path: Path) -> None:
    command = [one for one in commands(0)["uWSGI --lazy-apps"] if one != "--lazy-apps"]
    environ = ENVIRON | HERE | {"STORE": str(tmp_path / "db"), "OWNER": owner}
    done = subprocess.run(
        [*command, "--need-app"], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "opened before uWSGI forks its workers" in done.stderr
    assert not (tmp_path / "db" / "CURRENT").exists()


@OWNERS
def test_mod_wsgi(owner: str) -> None:
    """Debian's Apache, with processes of ``WSGIDaemonProcess``."""
    major, minor = sys.version_info[:2]
    if os.getuid() or not (MODULES / f"mod_wsgi.so-{major}.{minor}").exists():
        pytest.skip(f"needs root, and Debian's apache2 and mod_wsgi for {major}.{minor}")
    user = pwd.getpwnam("www-data")
    port = free_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chown(folder, user.pw_uid, user.pw_gid)
        # What the user may read, wherever this checkout is.
        (folder / "path").mkdir(0o755)
        shutil.copytree(Path(lsmkv.__file__).parent, folder / "path" / "lsmkv")
        for module in NEEDED:
            for part in Path(sysconfig.get_path("platlib")).glob(f"{module}*"):
                copy = shutil.copytree if part.is_dir() else shutil.copy
                copy(part, folder / "path" / part.name)
        opening = f"import os\nos.environ.update(STORE='{folder}/db', OWNER='{owner}')\n"
        text = SHOP.read_text().replace("import os\n", opening, 1)
        (folder / "shop.py").write_text(text)
        (folder / "httpd.conf").write_text(
            "\n".join(
                [
                    f"ServerRoot {folder}",
                    f"PidFile {folder}/pid",
                    f"ErrorLog {folder}/log.httpd",
                    f"Listen 127.0.0.1:{port}",
                    "ServerName localhost",
                    f"User {user.pw_name}",
                    f"Group {grp.getgrgid(user.pw_gid).gr_name}",
                    *(
                        f"LoadModule {one}_module {MODULES}/mod_{one}.so"
                        for one in ("mpm_event", "authz_core", "wsgi")
                    ),
                    f"WSGISocketPrefix {folder}/wsgi",
                    f"WSGIDaemonProcess shop processes=3 threads=4 python-path={folder}/path",
                    f"WSGIScriptAlias / {folder}/shop.py process-group=shop"
                    " application-group=%{GLOBAL}",
                    f"<Directory {folder}>\nRequire all granted\n</Directory>\n",
                ]
            )
        )
        command = ["/usr/sbin/apache2", "-f", f"{folder}/httpd.conf", "-DFOREGROUND"]
        with running(folder, *command):
            try:
                count_visits(port, folder / "db")
            finally:
                sys.stdout.write((folder / "log.httpd").read_text())


@OWNERS
def test_containers_with_process_ids_of_their_own(owner: str, tmp_path: Path) -> None:
    """Two, each with a server, on one volume and in one network."""
    unshare = ["/usr/bin/unshare", *(["-r"] if os.getuid() else [])]
    unshare += ["-p", "-f", "-m", "--mount-proc", "--kill-child"]
    if not shutil.which("unshare") or subprocess.run([*unshare, "true"], check=False).returncode:
        pytest.skip("no process may have new namespaces here")
    store = tmp_path / "db"
    ports = []
    with contextlib.ExitStack() as stack:
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
            ports.append(free_port())
            server = [sys.executable, "-m", "gunicorn", "-w", "2", "-b", f"127.0.0.1:{ports[-1]}"]
            variables = ["/usr/bin/env", f"STORE={store}", f"OWNER={owner}"]
            command = [*variables, *unshare, *server, "shop:application"]
            with pytest.MonkeyPatch.context() as patch:
                patch.setitem(ENVIRON, "PYTHONPATH", HERE["PYTHONPATH"])
                server, _ = stack.enter_context(running(tmp_path / name, *command))
            stack.callback(server.kill)  # unshare ignores SIGTERM
            assert int(ask(ports[-1])) == len(ports)
        with ThreadPoolExecutor(8) as several:
            seen = list(several.map(lambda n: int(ask(ports[n % 2])), range(64)))
        assert sorted(seen) == list(range(3, 67))
        assert len(visits(ports[0])) > 2


# Pools and jobs


def run(script: str, folder: Path, owner: str) -> str:
    """A program to its end; what it prints."""
    environ = ENVIRON | HERE | {"STORE": str(folder / "db"), "OWNER": owner}
    done = run_python("-c", script, cwd=folder, env=environ, timeout=120)
    assert done.returncode == 0, done.stderr
    end_owner(folder / "db")
    return str(done.stdout)


POOLS = {
    f"multiprocessing, {method}": (
        "import multiprocessing, shop\n"
        "if __name__ == '__main__':\n"
        f"    with multiprocessing.get_context('{method}').Pool(3) as pool:\n"
        "        print(sorted(map(int, pool.map(shop.visit, range(60), chunksize=1))))\n"
    )
    for method in ("fork", "spawn", "forkserver")
} | {
    "joblib": (
        "import joblib, shop\n"
        "jobs = (joblib.delayed(shop.visit)() for _ in range(60))\n"
        "print(sorted(map(int, joblib.Parallel(n_jobs=3)(jobs))))\n"
    )
}


@OWNERS
@pytest.mark.parametrize("place", POOLS)
def test_pool(place: str, owner: str, tmp_path: Path) -> None:
    assert run(POOLS[place], tmp_path, owner) == f"{list(range(1, 61))}\n"


@OWNERS
def test_celery(owner: str, tmp_path: Path) -> None:
    for name in ("queue", "results"):
        (tmp_path / name).mkdir()
    (tmp_path / "work.py").write_text("import shop\ncelery = shop.tasks()\n")
    asked = (
        "from work import celery\n"
        "asked = [celery.send_task('visit') for _ in range(40)]\n"
        "print(sorted(int(one.get(timeout=100)) for one in asked))\n"
    )
    command = ["celery", "-A", "work", "worker", "-P", "prefork", "-c", "3"]
    with served(tmp_path, owner, command):
        assert run(asked, tmp_path, owner) == f"{list(range(1, 41))}\n"


@OWNERS
def test_rq(owner: str, tmp_path: Path) -> None:
    """A worker of RQ forks for each job."""
    with serving() as address, contextlib.ExitStack() as stack:
        url = f"redis://{address.host}:{address.port}"
        asked = (
            "import time\n"
            "from redis import Redis\n"
            "from rq import Queue\n"
            f"queue = Queue(connection=Redis.from_url('{url}'))\n"
            "jobs = [queue.enqueue('shop.visit') for _ in range(20)]\n"
            "while any(one.return_value() is None for one in jobs):\n"
            "    time.sleep(0.05)\n"
            "print(sorted(int(one.return_value()) for one in jobs))\n"
        )
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
            command = ["/usr/bin/env", f"STORE={tmp_path}/db", f"OWNER={owner}"]
            command += [str(BIN / "rq"), "worker", "--url", url]
            with pytest.MonkeyPatch.context() as patch:
                patch.setitem(ENVIRON, "PYTHONPATH", HERE["PYTHONPATH"])
                stack.enter_context(running(tmp_path / name, *command))
        assert run(asked, tmp_path, owner) == f"{list(range(1, 21))}\n"


@OWNERS
def test_jupyter(owner: str, tmp_path: Path) -> None:
    """Kernels of two notebooks, one of which is killed."""
    kernels = (
        "import os, signal\n"
        "import nbformat\n"
        "from nbclient import NotebookClient\n"
        "def opened():\n"
        "    notebook = nbformat.v4.new_notebook()\n"
        "    notebook.cells = [nbformat.v4.new_code_cell(one) for one in\n"
        '        (\'import os, shop; shop.db.put(b"pid", b"%d" % os.getpid())\',\n'
        "         'int(shop.visit())')]\n"
        "    return NotebookClient(notebook, timeout=60)\n"
        "first, second = opened(), opened()\n"
        "def said(client, index):\n"
        "    cell = client.execute_cell(client.nb.cells[index], index)\n"
        "    return [one['data']['text/plain'] for one in cell.outputs]\n"
        "with first.setup_kernel():\n"
        "    said(first, 0)\n"
        "    with second.setup_kernel():\n"
        "        said(second, 0)\n"
        "        print(said(first, 1), said(second, 1), said(first, 1), said(second, 1))\n"
        "        first.km.provisioner.process.kill()\n"
        "        print(said(second, 1))\n"
        "        os._exit(0) if os.write(1, b'') else None\n"
    )
    printed = run(kernels, tmp_path, owner)
    assert printed == "['1'] ['2'] ['3'] ['4']\n['5']\n"
