"""Task queues, locks, limits and caches while their server and workers are killed, again and again.

    python tests/redis/queue_kills.py [--kills N] [--on lsmkv,redis] [LIBRARY ...]

prints a row for each library and server.  Two workers are at work on what one process puts into a
queue; now the server is killed, and now a worker with all that it has started.  In the end nobody
is killed any more, and all jobs are waited for.  Then

- no job that a library has accepted is lost;
- no job runs again that the server has acknowledged to be out of the queue, but for those that a
  process had when its server died;
- jobs that run twice because of a death are what the libraries promise: at least once;
- no two processes have a lock at once, and a lock whose holder was killed is free after its time;
- no name has more hits than its limit allows;
- what a cache has accepted is found.

Redis, with ``appendonly yes``, is the measure of what else a library loses by itself.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import NamedTuple

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "helpers")]

from processes import ENVIRON, free_port
from queue_child import ARQ, LIBRARIES, LIMIT, LOCKS, PATIENCE, Journal

from lsmkv import DB
from lsmkv.server.check import check

_CHILD = Path(__file__).with_name("queue_child.py")
JAVASCRIPT = ("bullmq", "bull")
"""Libraries of ``queue_child.js``."""
NODE = Path(sys.prefix, "node", "node_modules")
"""Where npm has installed them."""
_ENDLESS = {"django_redis", "limits", *LOCKS}
"""Libraries without a queue that could become empty."""
_WORKERS = 2
_TOGETHER = 20
"""Kills of the server, and of workers, between an empty store and a look at all jobs."""
_LONGEST_SILENCE = 120.0
"""Seconds in which a job is done, or something hangs."""
_CHECKED = 10
"""The store is looked through after every so many kills of the server."""
_DEPLOYMENTS = 3
"""How often workers are replaced in the end, at most: each may find what its predecessor had."""


def descendants(pid: int) -> list[int]:
    """The processes that one has started, and theirs."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [one for child in map(int, children.split()) for one in (child, *descendants(child))]


class Process:
    """A process that is killed with all that it has started."""

    def __init__(self, command: list[str], log: Path) -> None:
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=ENVIRON | {"NODE_PATH": str(NODE)},
            )
        self.pid = self._popen.pid

    def kill(self) -> None:
        for pid in (self.pid, *descendants(self.pid)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self._popen.wait()

    def end(self) -> None:
        """End it as a user does, and wait for it."""
        self._popen.terminate()
        self.wait()

    def wait(self) -> None:
        try:
            self._popen.wait(_LONGEST_SILENCE)
        finally:
            self.kill()

    def ended(self) -> bool:
        return self._popen.poll() is not None


@dataclass
class Figures:
    """What is counted in one sitting."""

    server_kills: int = 0
    worker_kills: int = 0
    kept: int = 0
    """Jobs that the library has accepted."""
    lost: list[str] = field(default_factory=list)
    """Those of them that were never done."""
    twice: int = 0
    """Jobs that ran again since a process died, or lost its server, while it had them."""
    again: list[str] = field(default_factory=list)
    """Jobs that ran again though the server had acknowledged that they are out of the queue.

    With locks: those that were taken while another process had them; with limits: hits too many.
    """
    wrong: list[str] = field(default_factory=list)
    """What is wrong with the store."""

    def add(self, other: Figures) -> None:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    def row(self, library: str, server: str) -> str:
        words = [library, server, f"{self.server_kills} + {self.worker_kills}", f"{self.kept:,}"]
        words += [str(len(self.lost)), str(self.twice), str(len(self.again))]
        return f"| {' | '.join(words)} |"


HEAD = (
    "| library | server | kills: server + workers | jobs | lost | run twice |"
    " run again though acknowledged |\n|---|---|---|---|---|---|---|"
)


def missing(library: str) -> str | None:
    """What a library needs that is not installed, if anything."""
    if library == "arq" and not ARQ.exists():
        return f"{library}, which make test-queues installs in {ARQ}"
    if library in JAVASCRIPT and shutil.which("node") is None:
        return f"node, for {library}"
    if library in JAVASCRIPT and not (NODE / library).exists():
        return f"{library}, which make test-queues installs in {NODE}"
    return None


class Event(NamedTuple):
    """A line of the journal."""

    what: str
    job: str
    writer: int


class Sitting:
    """A library, a server with an empty store, and the processes between them."""

    def __init__(self, library: str, server: str, directory: Path, seed: int = 0) -> None:
        self.figures = Figures()
        self._library = library
        self._on = server
        self._directory = directory
        self._store = directory / "store"
        self._journal = Journal(directory / "journal")
        self._unread = 0
        self._events: list[Event] = []
        self._port = free_port()
        self._rng = random.Random(seed)
        self._processes: list[Process] = []
        if server == "redis":
            self._store.mkdir()

    def run(self, kills: int) -> Figures:
        """Kill the server so often, and as many workers."""
        try:
            self._start_server()
            self._start_workers()
            producer = self._child("produce")
            for _ in range(kills):
                self._kill_server()
                self._kill_worker()
                if producer.ended():
                    raise RuntimeError(f"the producer ended: see {self._directory}")
            self._wait_for_work()
            producer.kill()
            self._settle()
            for process in (*self._workers, self._server):
                process.end()
        finally:
            for process in self._processes:
                process.kill()
        self._look()
        self._judge()
        self._journal.close()
        return self.figures

    def _start(self, command: list[str], log: str) -> Process:
        process = Process(command, self._directory / f"{log}.log")
        self._processes = [one for one in self._processes if not one.ended()]
        self._processes.append(process)
        return process

    def _child(self, role: str) -> Process:
        child = [sys.executable, str(_CHILD)]
        if self._library in JAVASCRIPT:
            child = ["node", str(_CHILD.with_suffix(".js"))]
        words = [self._library, role, str(self._port), str(self._directory / "journal")]
        return self._start([*child, *words], role)

    def _start_workers(self) -> None:
        several = self._library != "channels_redis"  # whose workers cannot share a channel
        self._workers = [self._child("work") for _ in range(_WORKERS if several else 1)]

    def _start_server(self) -> None:
        always = self._rng.random() < 0.5
        settings = {"port": self._port, "appendfsync": "always" if always else "everysec"}
        if self._on == "redis":
            settings |= {"dir": self._store, "appendonly": "yes", "save": ""}
            command = ["redis-server"]
        else:
            command = [sys.executable, "-P", "-m", "lsmkv", "serve", str(self._store)]
        words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
        self._server = self._start([*command, *words], "server")

    def _kill_server(self) -> None:
        self._wait_for_work()
        self._journal.write("kill", "server")
        self._server.kill()
        self._journal.write("dead", "server")
        self.figures.server_kills += 1
        if self.figures.server_kills % _CHECKED == 0:
            self._look()
        self._start_server()

    def _kill_worker(self) -> None:
        busy = self._wait_for_work()
        self._journal.write("kill", "worker")
        busy.kill()
        self.figures.worker_kills += 1
        self._workers.remove(busy)
        self._workers.append(self._child("work"))

    def _news(self) -> list[Event]:
        """What was written to the journal since the last call."""
        with (self._directory / "journal").open("rb") as journal:
            journal.seek(self._unread)
            data = journal.read()
        self._unread += len(data)
        lines = (line.split() for line in data.decode().splitlines())
        events = [Event(what, job, int(writer)) for what, job, writer in lines]
        self._events += events
        return events

    def _wait_for_work(self) -> Process:
        """Until a worker has done something again, and then for a moment; that worker."""
        self._news()
        until = time.monotonic() + _LONGEST_SILENCE
        while True:
            time.sleep(0.01)
            done = [event.writer for event in self._news() if event.what == "gone"]
            busy = [worker for worker in self._workers if worker.pid in done]
            if busy:
                time.sleep(self._rng.random() * 0.2)
                return self._rng.choice(busy)
            if self._server.ended():
                raise RuntimeError(f"the server ended: see {self._directory}")
            if time.monotonic() > until:
                raise TimeoutError(f"no worker does anything: see {self._directory}")
            for index, worker in enumerate(self._workers):
                if worker.ended():  # some do when they lose their server: a supervisor's business
                    self._workers[index] = self._child("work")

    def _settle(self) -> None:
        """Wait for the jobs that are left; the workers are replaced, as by a deployment."""
        if self._library in _ENDLESS:
            for worker in self._workers:
                worker.end()
            if self._library == "django_redis":
                self._child("mend").wait()
            self._news()
            return
        for _ in range(_DEPLOYMENTS):
            self._wait_for_silence()
            if not self._missing():
                break
            for worker in self._workers:
                worker.end()
            if self._library == "rq":
                self._child("mend").wait()
            self._start_workers()

    def _wait_for_silence(self) -> None:
        heard = time.monotonic()
        while time.monotonic() < heard + 2 * PATIENCE:
            if self._news():
                heard = time.monotonic()
            time.sleep(0.1)

    def _of(self, what: str) -> Counter[str]:
        return Counter(event.job for event in self._events if event.what == what)

    def _missing(self) -> list[str]:
        done = self._of("ran")
        return [job for job in self._of("kept") if job not in done]

    def _look(self) -> None:
        if self._on == "lsmkv":
            with DB(str(self._store)) as db:
                self.figures.wrong += check(db)

    def _judge(self) -> None:
        if self._library == "limits":
            self._judge_limits()
        elif self._library in LOCKS:
            self._judge_locks()
        else:
            self._judge_jobs()

    def _judge_limits(self) -> None:
        """Each name has its hits, and no more; a hit that the server had lost would be one more."""
        allowed = self._of("kept")
        self.figures.kept = allowed.total()
        self.figures.again = list(allowed - Counter(dict.fromkeys(allowed, LIMIT)))

    def _judge_locks(self) -> None:
        """Nobody takes a lock that another has, nor loses it before its time.

        A client that sends its release again, since its server died, does not find the lock.
        """
        figures = self.figures
        others: dict[str, list[str]] = {}
        """Who took the lock while this one had it."""
        released: set[str] = set()
        for what, job, _ in self._events:
            if what == "run":
                figures.kept += 1
                for taken in others.values():
                    taken.append(job)
                others[job] = []
            elif what == "late":
                del others[job]
            elif what == "ran":
                figures.again += others.pop(job)
                released.add(job)
            elif what == "lost" and job in released:
                figures.lost.append(job)
            elif job == "server":
                released.clear()

    def _judge_jobs(self) -> None:
        figures = self.figures
        figures.kept = len(self._of("kept"))
        figures.lost = [*self._missing(), *self._of("lost")]
        explained = self._held_at_a_kill()
        if self._library == "saq":  # two of its workers can put the same job back
            explained |= set(self._of("kept"))
        gone: set[str] = set()
        begun: set[str] = set()
        twice: set[str] = set()
        for what, job, _ in self._events:
            if what == "gone":
                gone.add(job)
            elif what == "run":
                if job in gone and job not in explained:
                    figures.again.append(job)
                elif job in begun:
                    twice.add(job)
                begun.add(job)
        figures.twice = len(twice)

    def _held_at_a_kill(self) -> set[str]:
        """The jobs that a process was putting into the queue, or had from it, when its server died.

        The process puts a job back that it could not acknowledge; and its client sends a request
        again if it got no reply, though the first was perhaps done.  Then a job is there twice.
        """
        found = set(self._of("doubt"))
        held: set[str] = set()
        for what, job, _ in self._events:
            if what in ("ask", "took", "run"):
                held.add(job)
            elif what in ("kept", "gone"):
                held.discard(job)
            elif job == "server":
                found |= held
        return found


def killed(library: str, server: str, kills: int, keep: Path | None) -> Figures:
    """What sittings with so many kills have shown together; journals stay where they are kept."""
    figures = Figures()
    for first in range(0, kills, _TOGETHER):
        with tempfile.TemporaryDirectory() as temporary:
            directory = (keep or Path(temporary)) / f"{library}-{server}-{first}"
            directory.mkdir(parents=True)
            sitting = Sitting(library, server, directory, first)
            figures.add(sitting.run(min(_TOGETHER, kills - first)))
        print(figures.row(library, server), flush=True)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill servers and workers of queues.")
    parser.add_argument("--kills", type=int, default=100, help="of the server, and of workers")
    parser.add_argument("--on", default="lsmkv,redis", help="the servers")
    parser.add_argument("--keep", type=Path, help="where the journals and logs shall stay")
    parser.add_argument("libraries", nargs="*", default=[*LIBRARIES, *JAVASCRIPT])
    words = parser.parse_args()
    rows, wrong = [], []
    for library in words.libraries:
        if (absent := missing(library)) is not None:
            rows.append(f"{library} is left out: {absent} is not installed")
            continue
        for server in words.on.split(","):
            figures = killed(library, server, words.kills, words.keep)
            rows.append(figures.row(library, server))
            if server == "lsmkv":
                wrong += figures.again + figures.wrong
    print("", HEAD, *rows, *wrong, sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
