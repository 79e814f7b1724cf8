"""Four workers share a store under load while they are killed, stopped, reloaded and deployed.

    python tests/chaos/chaos.py [--seconds N] [--owner process] [--report FILE]

Every second one of the workers, or the owner, is killed with SIGKILL and started again.  A tenth of
the time passes between two stops of the owner or of a worker (20 s, or a thirtieth of the whole),
between two reloads (SIGTERM, then a new worker), and between two deploys (so with each worker in
turn).  Each worker puts, one after another, a key of its own and its counter, and
then reads another worker's counter.  Memory that the processes share has the number of the last
acknowledged put of each, so that the following can be counted:

- lost: acknowledged keys that the store does not have in the end;
- stale: reads of a counter below what was acknowledged before the read began;
- errors: calls that raised;
- the longest wait: of a call that returned.

``--report`` writes what was counted as JSON, of which ``docs/pictures/chaos.py`` draws a picture.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import mmap
import multiprocessing
import os
import random
import signal
import struct
import sys
import tempfile
import time
from collections import Counter
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import NamedTuple

import lsmkv

FORKS = multiprocessing.get_context("fork")
WORKERS = 4
PAUSE = 0.002
"""Seconds between two turns of a worker."""
_NUMBER = struct.Struct("<q")
_CALL = struct.Struct("<dd")
_SLOW = 0.05
"""Seconds from which a call is drawn."""


class Outcome(NamedTuple):
    """What a run has counted."""

    writes: int
    lost: int
    stale: int
    errors: dict[str, int]
    longest: float
    events: list[tuple[str, float]]
    """What was done to the processes, and when: ``kill``, ``kill of the owner``, ``stop``, ..."""
    waits: list[tuple[float, float]]
    """When a call of more than 0.05 s began, and how long it took."""


# In a worker


def work(folder: Path, number: int, owner: str) -> None:
    """Write and read until SIGTERM comes."""
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
    report = os.open(folder / f"calls-{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    errors = os.open(folder / f"errors-{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with (folder / "acknowledged").open("r+b") as file:
        acknowledged = mmap.mmap(file.fileno(), WORKERS * _NUMBER.size)
    db = lsmkv.SharedDB(
        folder / "db", create_if_missing=True, owner="process" if owner == "process" else None
    )
    rng = random.Random()

    def at(one: int) -> int:
        return int(_NUMBER.unpack_from(acknowledged, one * _NUMBER.size)[0])

    turn = at(number) + 1
    while not ended:
        other = rng.randrange(WORKERS)
        began = time.monotonic()
        try:
            with db.write_batch() as batch:
                batch.put(b"%d/%012d" % (number, turn), b"v" * 100)
                batch.put(b"counter %d" % number, b"%d" % turn)
            _NUMBER.pack_into(acknowledged, number * _NUMBER.size, turn)
            turn += 1
            waited = time.monotonic() - began
            if waited > _SLOW:
                os.write(report, _CALL.pack(began, waited))
            before = at(other)
            if int(db.get(b"counter %d" % other) or 0) < before:
                os.write(errors, b"stale\n")
        except lsmkv.Error as error:
            os.write(errors, f"{type(error).__name__}: {error}\n".encode())
        time.sleep(PAUSE)
    db.close()


# The one that starts, kills and counts


class Run:
    """A store, its workers, and what is done to them."""

    def __init__(self, folder: Path, owner: str, seed: int) -> None:
        self.folder = folder
        self.owner = owner
        self.rng = random.Random(seed)
        self.stopped: dict[int, float] = {}
        """When each stopped process goes on."""
        (folder / "acknowledged").write_bytes(bytes(WORKERS * _NUMBER.size))
        self.workers = [self.start(number) for number in range(WORKERS)]
        self.began = time.monotonic()
        self.events: list[tuple[str, float]] = []

    def start(self, number: int) -> ForkProcess:
        """A worker: a fork, which need not import anything."""
        worker = FORKS.Process(target=work, args=(self.folder, number, self.owner))
        worker.start()
        return worker

    def note(self, event: str) -> None:
        """What is done now."""
        self.events.append((event, time.monotonic() - self.began))

    def pids(self) -> list[int]:
        """The workers' processes."""
        return [one.pid or 0 for one in self.workers]

    def owner_pid(self) -> int:
        """The process that owns the store, or was the last that did."""
        try:
            return int((self.folder / "db" / "LOCK").read_bytes() or b"0")
        except FileNotFoundError:
            return 0

    def kill(self) -> None:
        """One of the workers or the owner; a worker is started again."""
        pids = self.pids()
        victim = self.rng.choice([*pids, self.owner_pid()])
        if victim in self.stopped or victim <= 0:
            return
        self.note("kill of the owner" if victim == self.owner_pid() else "kill")
        if victim in pids:
            number = pids.index(victim)
            self.workers[number].kill()
            self.workers[number].join()
            self.workers[number] = self.start(number)
        elif Path(f"/proc/{victim}/cmdline").exists():
            os.kill(victim, signal.SIGKILL)

    def stop(self, seconds: float) -> None:
        """The owner or a worker, for so long."""
        victim = self.rng.choice([self.pids()[0], self.owner_pid()])
        if victim > 0 and victim not in self.stopped:
            with contextlib.suppress(ProcessLookupError):  # it was killed, and has no successor
                os.kill(victim, signal.SIGSTOP)
                self.stopped[victim] = time.monotonic() + seconds
                self.note("stop")

    def go_on(self, everyone: bool = False) -> None:
        """Processes whose stop is over."""
        for pid, until in list(self.stopped.items()):
            if everyone or time.monotonic() >= until:
                del self.stopped[pid]
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def reload(self) -> None:
        """A worker ends, and then another takes its place."""
        number = self.rng.randrange(WORKERS)
        if not self.stopped:
            self.note("reload")
            self.end(self.workers[number])
            self.workers[number] = self.start(number)

    def deploy(self) -> None:
        """All workers end, one after another, each with a new one beside the others."""
        if not self.stopped:
            self.note("deploy")
            for number in range(WORKERS):
                self.end(self.workers[number])
                self.workers[number] = self.start(number)

    def end(self, worker: ForkProcess) -> None:
        """In order."""
        worker.terminate()
        worker.join()

    def outcome(self) -> Outcome:
        """All workers end, and what they have done is counted."""
        self.go_on(everyone=True)
        for worker in self.workers:
            self.end(worker)
        content = (self.folder / "acknowledged").read_bytes()
        acknowledged = [one for (one,) in _NUMBER.iter_unpack(content)]
        with lsmkv.DB(self.folder / "db", lock_timeout=60) as db:
            lost = sum(
                last
                - sum(1 for _ in db.iterator(prefix=b"%d/" % one, include_value=False, limit=last))
                for one, last in enumerate(acknowledged)
            )
        said = [
            line.partition(":")[0]
            for file in self.folder.glob("errors-*")
            for line in file.read_text().splitlines()
        ]
        errors = {name: said.count(name) for name in sorted({*said} - {"stale"})}
        waits = sorted(
            (begin - self.began, waited)
            for file in self.folder.glob("calls-*")
            for begin, waited in _CALL.iter_unpack(file.read_bytes())
        )
        longest = max((waited for _, waited in waits), default=_SLOW)
        return Outcome(
            *(sum(acknowledged), lost, said.count("stale"), errors, longest, self.events, waits)
        )


def chaos(folder: Path, seconds: float, owner: str, seed: int = 1) -> Outcome:
    """A run of that length."""
    run = Run(folder, owner, seed)
    began = run.began
    kills = 0
    events = {run.reload: 0.5, run.deploy: 0.75, lambda: run.stop(min(20.0, seconds / 30)): 0.0}
    due = {event: began + (1 + share) * seconds / 10 for event, share in events.items()}
    while (now := time.monotonic()) < began + seconds:
        run.go_on()
        if now >= began + kills:
            kills += 1
            run.kill()
        for event, when in due.items():
            if now >= when:
                event()
                due[event] = when + seconds / 10
        time.sleep(0.02)
    return run.outcome()


def main() -> None:
    """Run it, and print what it has counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--owner", choices=["worker", "process"], default="worker")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcome = chaos(Path(folder), given.seconds, given.owner, given.seed)
    counted = outcome._asdict()
    for name in ("writes", "lost", "stale", "errors", "longest"):
        sys.stdout.write(f"{name}: {counted[name]}\n")
    for event, times in sorted(Counter(name for name, _ in outcome.events).items()):
        sys.stdout.write(f"{event}: {times}\n")
    if given.report is not None:
        about = {"seconds": given.seconds, "owner": given.owner}
        given.report.write_text(json.dumps(about | counted), encoding="utf-8")
    sys.exit(bool(outcome.lost or outcome.stale))


if __name__ == "__main__":
    main()
