"""Kill -9 at random moments, of the owner and the members of a shared store; stops, and forks.

Every process reads and writes all the time, and forks children that outlive it for a while.  The
next owner takes over whenever one is killed.  In the end one order of all calls must explain what
every process has seen (``sharing_history.py``), nothing acknowledged may be missing or be there
twice, and no call may have failed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import sharing_child
from sharing_history import History
from study import Outcome, Say

import lsmkv

_KILLS = 15
"""At size 1."""
_KILLS_OF_A_STORE = 200
STORE = _KILLS_OF_A_STORE / _KILLS
"""The size of a run on one store."""
_LONGEST_PAUSE = 0.3
"""Seconds between two kills, at most."""
_LONGEST_END = 30.0
"""Seconds in which every process must have said something in the end."""


def run(size: float, seed: int, say: Say, plant: str = "") -> Outcome:
    """About ten seconds at size 1.  ``plant`` is what each process runs first."""
    outcome = Outcome()
    rng = random.Random(seed)
    left = max(1, round(_KILLS * size))
    while left > 0 and not outcome.violations:
        kills = min(left, _KILLS_OF_A_STORE)
        with tempfile.TemporaryDirectory(prefix="lsmkv-sharing-") as place:
            _Round(Path(place), rng.randint(4, 8), rng, outcome, plant).run(kills)
        left -= kills
        say(f"{outcome.figures.get('kills', 0)} kills")
    return outcome


class _Round:
    """The processes of one store."""

    def __init__(
        self, place: Path, names: int, rng: random.Random, outcome: Outcome, plant: str
    ) -> None:
        self._place = place
        self._path = place / "store"
        self._names = names
        self._rng = rng
        self._outcome = outcome
        self._pids: dict[int, int] = {}
        self._outs: dict[int, Path] = {}
        self._lives = 0
        self._groups: list[int] = []
        script = str(Path(sharing_child.__file__))
        self._template = subprocess.Popen(
            [sys.executable, "-P", script, str(self._path), str(names), plant],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def run(self, kills: int) -> None:
        try:
            for name in range(self._names):
                self._start(name)
            self._wait_for_all()
            until = self._outcome.figures.get("kills", 0) + kills
            while self._outcome.figures.get("kills", 0) < until:
                time.sleep(self._rng.random() * _LONGEST_PAUSE)
                self._harm()
            self._wait_for_all()
        finally:
            for pid in self._groups:
                _send(-pid, signal.SIGKILL)  # with the children, also of those that are dead
            assert self._template.stdin is not None
            assert self._template.stdout is not None
            self._template.stdin.close()
            self._template.stdout.close()
            self._template.wait()
        self._check()

    def _start(self, name: int) -> None:
        self._lives += 1
        out = self._place / f"{name}.{self._lives}"
        assert self._template.stdin is not None
        assert self._template.stdout is not None
        self._template.stdin.write(b"%d %d %s\n" % (name, self._rng.randrange(1 << 30), bytes(out)))
        self._template.stdin.flush()
        self._pids[name] = int(self._template.stdout.readline())
        self._groups.append(self._pids[name])
        self._outs[name] = out

    def _harm(self) -> None:
        """Kill or stop a process, more often than not the owner."""
        name = self._rng.randrange(self._names)
        if self._rng.random() < 0.6:
            owner = self._owner()
            name = next((one for one, pid in self._pids.items() if pid == owner), name)
            self._outcome.count("kills of owners", int(self._pids[name] == owner))
        pid = self._pids[name]
        if self._rng.random() < 0.15:
            _send(pid, signal.SIGSTOP)
            time.sleep(self._rng.random() * _LONGEST_PAUSE)
            _send(pid, signal.SIGCONT)
            self._outcome.count("stops")
            if self._rng.random() < 0.5:
                return  # it goes on
        _send(pid, signal.SIGKILL)
        self._outcome.count("kills")
        self._start(name)

    def _owner(self) -> int:
        try:
            return int((self._path / "LOCK").read_bytes() or b"0")
        except (FileNotFoundError, ValueError):
            return 0

    def _wait_for_all(self) -> None:
        """Until each process has read or written something."""
        until = time.monotonic() + _LONGEST_END
        for name, out in self._outs.items():
            size = out.stat().st_size if out.exists() else 0
            while not out.exists() or out.stat().st_size <= size:
                if time.monotonic() > until or Path(f"{out}.error").exists():
                    self._outcome.violations.append(f"process {name} does nothing any more")
                    return
                time.sleep(0.01)

    def _check(self) -> None:
        history = History()
        for file in sorted(self._place.glob("*.*")):
            if file.suffix == ".error":
                self._outcome.violations.append(file.read_text())
            else:
                history.add(int(file.stem), file.read_text())
        # A killed process holds the lock until the system gives it the processor to end.
        with lsmkv.DB(self._path, lock_timeout=_LONGEST_END) as db:
            db.check()
            last = {
                name: sharing_child.number(db.get(sharing_child.key_of(name)))
                for name in range(self._names)
            }
            counter = sharing_child.number(db.get(b"counter"))
        self._outcome.violations += history.violations(last, counter)
        self._outcome.count("owners", history.owners)
        self._outcome.count("children", history.children)
        self._outcome.count("writes", sum(map(len, history.writes.values())))
        self._outcome.count("reads", sum(map(len, history.reads.values())))
        self._outcome.count("counts", len(history.counted))


def _send(pid: int, signal_number: int) -> None:
    """Send it a signal, or to the group of a negative number."""
    try:
        os.kill(pid, signal_number)
    except ProcessLookupError:
        pass  # it has failed, as its file will say
