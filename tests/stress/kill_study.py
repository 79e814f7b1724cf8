"""Kill -9 at random moments: of processes that write, flush, compact, open, and have workers.

After each death the directory is opened, now and then by LevelDB first.  Nothing that was
acknowledged is missing, no batch is torn, and nothing deleted has come back.
"""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import kill_child
from numbered import State, changed, differences, quiet
from study import Outcome, Say

import lsmkv

try:
    import plyvel
except ImportError:
    plyvel = None

_ROUNDS = 10
"""At size 1."""
_ROUNDS_OF_A_STORE = 25
_LONGEST_SILENCE = 60.0
"""Seconds without a word, after which a process is said to hang."""

_ENGINES_ERRORS: tuple[type[Exception], ...] = (lsmkv.Error,)
if plyvel is not None:
    _ENGINES_ERRORS += (plyvel.Error,)


class Hung(Exception):
    """A process said nothing for too long."""


class Template:
    """The process that gives lives, and what they say."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("kill_child.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert self._process.stdout is not None
        self._output = self._process.stdout.fileno()
        self._unread = b""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        if kind is not None:
            self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def order(self, order: dict[str, Any]) -> None:
        """Ask for a life."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")

    def line(self, timeout: float) -> list[str] | None:
        """The next line's words; None if there is none within so many seconds."""
        while b"\n" not in self._unread:
            if not select.select([self._output], [], [], max(0.0, timeout))[0]:
                return None
            data = os.read(self._output, 1 << 16)
            if not data:
                raise Hung("the process that gives lives has ended")
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode().split(" ", 3)


class Story:
    """One directory, and the lives that are spent on it."""

    def __init__(self, template: Template, place: Path, seed: int, outcome: Outcome) -> None:
        self._template = template
        self._outcome = outcome
        self._seed = seed
        self._rng = random.Random(seed)
        rng = self._rng
        self._path = str(place / f"store-{seed}")
        self._options = {
            "write_buffer_size": rng.choice([4096, 16384]),
            "max_file_size": 4096,
            "block_size": 512,
            "reuse_logs": rng.random() < 0.5,
            "compression": rng.choice([None, "snappy"]),
            "background": "thread",
        }
        self._acknowledged = [0] * rng.choice([1, 3])
        self._states: list[State] = [{} for _ in self._acknowledged]  # each writer's, as judged
        self._judged = list(self._acknowledged)
        self._life = 0
        self.given_up = False
        """Whether something went wrong, so that nothing can be told of what comes after."""

    def round(self, manner: str) -> None:
        """A life that writes and its end, perhaps lives that only recover; and a look at it all."""
        delay = 10 ** self._rng.uniform(-5.5, -1.0)
        if manner == "busy":
            delay = self._rng.uniform(0.0, 0.01)
        elif manner == "workers":
            delay = self._rng.uniform(0.0, 0.15)
        self._live(manner, delay, writes=True)
        for _ in range(self._rng.randrange(3)):
            self._live("born", self._rng.uniform(0.0, 0.006), writes=False)
        self._judge()

    def _live(self, event: str, delay: float, *, writes: bool) -> None:
        """One life, killed so many seconds after it said ``event``."""
        self._life += 1
        background = "process" if event == "workers" else "thread"
        order = {
            "life": self._life,
            "path": self._path,
            "seed": self._seed,
            "numbers": self._judged,
            "writes": writes,
            "options": {**self._options, "background": background},
        }
        self._template.order(order)
        pid = 0
        is_open = False
        begun: float | None = None
        while True:
            silence = _LONGEST_SILENCE
            if begun is not None and pid:
                silence = delay - (time.perf_counter() - begun)
                if silence <= 0:
                    os.kill(pid, signal.SIGKILL)
                    pid = 0
                    silence = _LONGEST_SILENCE
            words = self._template.line(silence)
            if words is None:
                if begun is None or not pid:
                    raise Hung(f"{self}: no sign of life {self._life} for {silence:.0f} s")
                continue
            assert words[0] == str(self._life)
            if words[1] == event and begun is None:
                begun = time.perf_counter()
            if words[1] == "born":
                pid = int(words[2])
            elif words[1] == "open":
                is_open = True
            elif words[1] == "ack":
                self._acknowledged[int(words[2])] = int(words[3])
            elif words[1] == "failed":
                self._wrong(" ".join(words[2:]), "the process")
            elif words[1] == "dead":
                break
        self._outcome.count("kills")
        if not is_open:
            self._outcome.count("of them while opening")
        if event == "workers":
            self._outcome.count("of them with worker processes")

    def _judge(self) -> None:
        wrong = len(self._outcome.violations)
        found = f"{self._path}-as-it-was-found"
        if os.path.exists(self._path):
            shutil.copytree(
                self._path, found, dirs_exist_ok=True, copy_function=_copy_unless_removed
            )
        try:
            if plyvel is not None and self._rng.random() < 0.3:
                self._let_leveldb_in()
            with lsmkv.DB(self._path, create_if_missing=True, **self._options) as db:
                self._compare(dict(db), "lsmkv")
                db.check()
        except _ENGINES_ERRORS as error:
            self._wrong(repr(error), "opening")
        # What is there is there to stay: it was read.
        self._acknowledged = list(self._judged)
        if len(self._outcome.violations) == wrong:
            shutil.rmtree(found, ignore_errors=True)
        else:
            self.given_up = True

    def _let_leveldb_in(self) -> None:
        db = self._opened_by_leveldb()
        try:
            self._compare(dict(db), "LevelDB")
            number = self._judged[0] + 1
            with db.write_batch() as batch:
                kill_child.apply(batch, kill_child.operations(self._seed, 0, number))
            self._acknowledged = list(self._judged)
            self._acknowledged[0] = number
        finally:
            db.close()
        self._outcome.count("openings by LevelDB")

    def _opened_by_leveldb(self) -> Any:
        """LevelDB does not wait for children of a dead owner, which have its lock until exec."""
        for _ in range(100):
            try:
                return plyvel.DB(self._path, create_if_missing=True)
            except plyvel.IOError as error:
                if "lock" not in str(error):
                    raise
            time.sleep(0.01)
        return plyvel.DB(self._path, create_if_missing=True)

    def _compare(self, found: State, engine: str) -> None:
        """Each writer's keys are as after its last acknowledged write, or the one after that."""
        for writer, acknowledged in enumerate(self._acknowledged):
            prefix = b"%d " % writer
            own = {key: value for key, value in found.items() if key.startswith(prefix)}
            number = int(own.get(prefix + b"n", b"0"))
            if not acknowledged <= number <= acknowledged + 1:
                self._wrong(f"writer {writer}, {acknowledged} acknowledged, {number} there", engine)
                continue
            state = self._states[writer]
            for done in range(self._judged[writer] + 1, number + 1):
                state = changed(state, kill_child.operations(self._seed, writer, done).items())
            self._states[writer] = state
            self._outcome.count("writes", number - self._judged[writer])
            self._judged[writer] = number
            if own != state:
                self._wrong(f"writer {writer}, state {number}: {differences(state, own)}", engine)

    def _wrong(self, what: str, engine: str) -> None:
        self._outcome.violations.append(f"{self}: {what}, says {engine}")

    def __str__(self) -> str:
        return f"{self._path} in its life {self._life}"


_MANNERS = ["open", "busy", "open", "workers", "busy"]
"""From which of its words on a life's remaining time is counted."""


def _copy_unless_removed(source: str, target: str) -> str:
    """A worker whose owner was killed may live for a moment, and removes what it began."""
    try:
        return shutil.copy2(source, target)
    except FileNotFoundError:
        return target


def run(size: float, seed: int, say: Say) -> Outcome:
    """See ``study.py``."""
    outcome = Outcome()
    place = Path(tempfile.mkdtemp(prefix="lsmkv-kill-"))
    rounds = max(1, round(_ROUNDS * size))
    try:
        with quiet(), Template() as template:
            story = Story(template, place, seed, outcome)
            for number in range(rounds):
                if number % _ROUNDS_OF_A_STORE == 0 or story.given_up:
                    seed += 1
                    story = Story(template, place, seed, outcome)
                    say(f"{number} of {rounds} rounds, {len(outcome.violations)} violations")
                story.round(_MANNERS[number % len(_MANNERS)])
                outcome.count("rounds")
    except Hung as error:
        outcome.violations.append(str(error))
    if not outcome.violations:
        shutil.rmtree(place)
    return outcome
