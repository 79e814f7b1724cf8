"""A replay of ``lsmkv filter-lab`` in a thread: the page starts it, and shows its progress.

Only one runs at a time.  It is bounded, so that the page keeps answering; the command has no bound.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

from lsmkv import Env
from lsmkv.engine.errors import Error
from lsmkv.tools.filter_lab import (
    DEFAULT_SETTINGS,
    SETTINGS_WITH_OWN,
    FilterSetting,
    PolicyMaker,
    parse_settings,
)
from lsmkv.tools.inspect.background import Work
from lsmkv.tools.inspect.plain import Plain
from lsmkv.tools.lab.experiment import choose_gets, experiment, open_store
from lsmkv.tools.text import printable, size

MOST_GETS = 10_000
MOST_BYTES = 256 << 20
"""The most bytes of all tables together; every one of them is read."""
MOST_SETTINGS = 16
DEFAULT_GETS = 2000


class Question(NamedTuple):
    """The parameters of a replay."""

    settings: str = DEFAULT_SETTINGS
    gets: int = DEFAULT_GETS
    seed: int = 1
    traced: bool = False
    """True if the Gets come from the trace; False if from a sample of the store's keys."""


class _Ended(Exception):
    """The replay is no longer wanted."""


class _State(NamedTuple):
    """The progress of a replay."""

    question: Question
    running: bool = False
    doing: str = ""
    unit: str = ""
    done: int = 0
    total: int = 0
    cut: str = ""
    """A sentence on what was left out."""
    error: str = ""
    outcome: Plain | None = None


class Replays:
    """The replays of one store, for any number of threads."""

    def __init__(
        self,
        path: str,
        trace: str | None = None,
        env: Env | None = None,
        own: PolicyMaker | None = None,
        reason: Callable[[Exception], str] = str,
    ) -> None:
        """``own`` makes the policy of settings such as ``own:10``; ``reason`` describes errors of
        the store."""
        self._path = path
        self._reason = reason
        self._own = own
        self._env = env
        self._trace = trace
        self._lock = threading.Lock()
        self._work: Work | None = None
        self._unwanted = threading.Event()
        settings = DEFAULT_SETTINGS if own is None else SETTINGS_WITH_OWN
        self._state = _State(Question(settings, traced=trace is not None))

    def close(self) -> None:
        """End what runs."""
        with self._lock:
            self._end()

    def start(self, question: Question, most_bytes: int = MOST_BYTES) -> None:
        """Begin a replay, replacing a running one; ``ValueError`` says what is wrong.

        It fails if the store's tables have more than ``most_bytes``.
        """
        settings = parse_settings(question.settings, self._own)
        if len(settings) > MOST_SETTINGS:
            raise ValueError(f"at most {MOST_SETTINGS} filter settings at once")
        if question.gets < 1:
            raise ValueError("at least 1 Get")
        if question.traced and self._trace is None:
            raise ValueError("no trace was named: 'lsmkv inspect DIR --trace FILE'")
        cut = ""
        if question.gets > MOST_GETS:
            limit = f"{question.gets:,} Gets were requested, but only {MOST_GETS:,} are replayed"
            cut = f"Limited: {limit}; 'lsmkv filter-lab' replays them all."
        with self._lock:
            self._end()
            self._state = _State(question, running=True, cut=cut)
            self._work = Work(lambda: self._run(question, settings, most_bytes), "lsmkv-replay")

    def finish(self) -> None:
        """Wait for the replay that runs."""
        work = self._work
        if work is not None:
            work.join()

    def state(self) -> Plain:
        """The progress of the latest replay, and its outcome as in ``lsmkv filter-lab --json``."""
        state = self._state
        return state._asdict() | {
            "question": state.question._asdict(),
            "trace": None if self._trace is None else printable(self._trace),
            "most_gets": MOST_GETS,
        }

    def _end(self) -> None:
        if self._work is not None:
            self._unwanted.set()
            self._work.join()
            self._unwanted.clear()
            self._work = None

    def _run(self, question: Question, settings: list[FilterSetting], most_bytes: int) -> None:
        try:
            outcome = self._outcome(question, settings, most_bytes)
        except _Ended:
            self._go_on(running=False)
        except (Error, OSError, ValueError) as error:
            self._go_on(running=False, error=printable(self._reason(error)))
        else:
            self._go_on(running=False, outcome=outcome)

    def _outcome(self, question: Question, settings: list[FilterSetting], most_bytes: int) -> Plain:
        gets, seed = min(question.gets, MOST_GETS), question.seed
        with open_store(self._path, self._env) as db:
            held = sum(table.size for table in db.tables())
            if held > most_bytes:
                limit = f"the tables have {size(held)}, and at most {size(most_bytes)} are"
                raise ValueError(f"{limit} replayed here: 'lsmkv filter-lab DIR' has no bound")
            trace = self._trace if question.traced else None
            chosen = choose_gets(db, trace, gets, seed, self._begin)
            return experiment(db, self._path, chosen, settings, seed, self._begin).to_dict()

    @contextlib.contextmanager
    def _begin(self, doing: str, unit: str) -> Iterator[_Stage]:
        self._go_on(doing=doing, unit=unit, done=0, total=0)
        yield _Stage(self)

    def _go_on(self, **changes: object) -> None:
        # Only the thread that runs changes the state of its own replay.
        self._state = self._state._replace(**changes)  # type: ignore[arg-type]


class _Stage:
    """A stage of the replay; it ends with an exception once the replay is no longer wanted."""

    def __init__(self, replays: Replays) -> None:
        self._replays = replays
        self._done = 0

    def advance(self, done: int, /) -> None:
        """Record progress with an unknown total."""
        self.report(self._done + done, 0, "")

    def report(self, done: int, total: int, _phase: str, /) -> None:
        """Record progress."""
        if self._replays._unwanted.is_set():
            raise _Ended
        self._done = done
        self._replays._go_on(done=done, total=total)
