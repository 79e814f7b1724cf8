"""Kill -9 at random moments: of processes that write, flush, compact, open, and have workers.

After each death the directory is opened, now and then by LevelDB first.  Nothing that was
acknowledged is missing, no batch is torn, and nothing deleted has come back.  Logs are mapped in
half of the lives; and in half of the rounds the last record is torn in a copy of the directory,
which must then hold all that was written before it.
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
from torn_tails import Torn, append_as_leveldb, tear_last_record

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
        """Whether something went wrong, so that later results mean nothing."""

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
            "options": {**self._options, "background": background, **self._any_log()},
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

    def _any_log(self) -> dict[str, Any]:
        """Options that must make no difference."""
        chance = self._rng.random
        names = ("mapped_log", "map_tables", "paranoid_checks")
        return {name: chance() < 0.5 for name in names}

    def _judge(self) -> None:
        wrong = len(self._outcome.violations)
        found = f"{self._path}-as-it-was-found"
        if os.path.exists(self._path):
            shutil.copytree(
                self._path, found, dirs_exist_ok=True, copy_function=_copy_unless_removed
            )
        try:
            if self._rng.random() < 0.5 and os.path.exists(f"{found}/CURRENT"):
                self._judge_torn(found)
            if plyvel is not None and self._rng.random() < 0.3:
                self._let_leveldb_in()
            options = {**self._options, **self._any_log()}
            with lsmkv.DB(self._path, create_if_missing=True, **options) as db:
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

    def _judge_torn(self, found: str) -> None:
        """The same directory with its last record torn, opened by the engines in turns."""
        place = f"{self._path}-torn"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(found, place)
        torn = tear_last_record(place, self._rng)
        if torn is None:
            return
        self._outcome.count(f"torn tails, {torn.how}")
        kept = self._kept_before(torn)
        # The first batch of the oldest log cannot be judged by its sequence
        # (docs/reference/format.md).
        reused = self._rng.random() < 0.3 and not torn.is_first
        if reused:
            append_as_leveldb(place, torn, [(b"more", b"1")])
            self._outcome.count("torn tails, and a record behind them")
        for turn in range(3):
            if plyvel is not None and not reused and self._rng.random() < 0.4:
                engine = "LevelDB"
                db = self._opened_by_leveldb(place)
                self._outcome.count("torn tails read by LevelDB")
            else:
                engine = "lsmkv"
                db = lsmkv.DB(place, **{**self._options, **self._any_log()})
            try:
                state = dict(db)
                if (b"more" in state) != (reused or turn > 0):
                    self._wrong("a write behind a torn record is not as it was", engine)
                db.put(b"more", b"%d" % turn)
            finally:
                db.close()
            for writer, expected in enumerate(kept):
                own = _own(writer, state)
                if own not in expected:
                    text = f"writer {writer}, {torn}: {differences(expected[0], own)}"
                    self._wrong(text, f"{engine} in its turn {turn}")

    def _kept_before(self, torn: Torn) -> list[list[State]]:
        """By writer: the states that it may be in without the torn record."""
        kept = []
        for writer, acknowledged in enumerate(self._acknowledged):
            number = torn.changes.get(b"%d n" % writer)
            if number is not None:
                kept.append([self._state(writer, int(number) - 1)])
            else:
                kept.append([self._state(writer, acknowledged + more) for more in (0, 1)])
        return kept

    def _let_leveldb_in(self) -> None:
        db = self._opened_by_leveldb(self._path)
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

    def _opened_by_leveldb(self, path: str) -> Any:
        """LevelDB does not wait for children of a dead owner, which have its lock until exec."""
        for _ in range(100):
            try:
                return plyvel.DB(path, create_if_missing=True)
            except plyvel.IOError as error:
                if "lock" not in str(error):
                    raise
            time.sleep(0.01)
        return plyvel.DB(path, create_if_missing=True)

    def _compare(self, found: State, engine: str) -> None:
        """Each writer's keys are as after its last acknowledged write, or the one after that."""
        for writer, acknowledged in enumerate(self._acknowledged):
            own = _own(writer, found)
            number = int(own.get(b"%d n" % writer, b"0"))
            if not acknowledged <= number <= acknowledged + 1:
                self._wrong(f"writer {writer}, {acknowledged} acknowledged, {number} there", engine)
                continue
            state = self._states[writer] = self._state(writer, number)
            self._outcome.count("writes", number - self._judged[writer])
            self._judged[writer] = number
            if own != state:
                self._wrong(f"writer {writer}, state {number}: {differences(state, own)}", engine)

    def _state(self, writer: int, number: int) -> State:
        """What a writer's keys are after its writes up to this one."""
        judged, state = self._judged[writer], self._states[writer]
        if number < judged:
            judged, state = 0, {}
        for done in range(judged + 1, number + 1):
            state = changed(state, kill_child.operations(self._seed, writer, done).items())
        return state

    def _wrong(self, what: str, engine: str) -> None:
        self._outcome.violations.append(f"{self}: {what}, says {engine}")

    def __str__(self) -> str:
        return f"{self._path} in its life {self._life}"


_MANNERS = ["open", "busy", "open", "workers", "busy"]
"""From which of its words on a life's remaining time is counted."""


def _own(writer: int, state: State) -> State:
    """A writer's keys."""
    prefix = b"%d " % writer
    return {key: value for key, value in state.items() if key.startswith(prefix)}


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
