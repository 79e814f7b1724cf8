"""The runs of a simulation, in the process that ``child.py`` has prepared.

A seed first runs with the usual schedule, and without faults and crashes.  This counts the calls
and decisions from which the rest is drawn.  Then the real run follows.  A run that fails is
repeated with fewer and fewer of its forced switches, and one last time to describe those that
remain.  Each run is a copy of this process (``interpreted.in_copy``).
"""

from __future__ import annotations

import gc
import importlib
import importlib.abc
import linecache
import os
import random
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location, spec_from_loader
from types import ModuleType
from typing import Any

from lsmkv.testing.faulty import FaultyEnv
from lsmkv.testing.interpreted import in_copy
from lsmkv.testing.plans import Crash, Plan, draw_plan
from lsmkv.testing.primitives import Current, PlainLock
from lsmkv.testing.process_env import ProcessEnv
from lsmkv.testing.processes import Process, System
from lsmkv.testing.reduction import reduce_list
from lsmkv.testing.scheduler import OWN_FILES, Forced, Scheduler, Strategy, Thread
from lsmkv.testing.strategies import AsForced, Priorities, RandomWalk

PROGRAM = "lsmkv_simulated_program"
"""The name of a program's module if it has no other."""
_OWN = (
    *(__name__, "lsmkv.engine.env.base", "lsmkv.engine.env.memory"),
    *("lsmkv.testing.durable", "lsmkv.testing.faulty"),
)
"""Modules that reports do not name: they name the callers."""
_TEXT = "program.py"
"""The file name of a program that is given as text."""


class Run:
    """The context of a simulated program: its disk, its threads, and its random numbers.

    The program is called once for each *life*: first with an empty disk, then with what the last
    crash has left.  A life ends when the program returns or the next crash happens.  Only
    :func:`simulate` makes runs.

    A thread that would wait forever is a failure of the run, and so is an exception that a thread
    does not catch.  Each call costs a switch point.

    >>> from lsmkv import DB
    >>> def write(run, db, lock):
    ...     with lock:
    ...         number = run.kept["written"] = run.kept.get("written", 0) + 1
    ...         db.put(b"last", b"%d" % number, sync=True)
    ...     run.step()
    ...     run.sleep(run.rng.random())
    >>> def program(run: Run):
    ...     assert (run.crash is None) == (run.life == 0) and run.seed >= 0
    ...     with DB("/db", create_if_missing=True, env=run.env) as db:
    ...         lock = run.lock()
    ...         for _ in range(3):
    ...             run.start(write, run, db, lock)
    ...         run.join()
    ...         assert int(db.get(b"last")) == run.kept["written"]
    """

    def __init__(self, seed: int, scheduler: Scheduler, env: FaultyEnv) -> None:
        self.seed = seed
        """The seed of this run."""
        self.rng = random.Random(f"{seed} program")
        """Random numbers for the program; one generator for all lives."""
        self.env = env
        """The disk; ``env.note`` and ``env.notes`` are those of :class:`lsmkv.testing.FaultyEnv`,
        ``env.struck`` says which calls have failed in this life."""
        self.life = 0
        """The number of earlier lives."""
        self.crash: str | None = None
        """The end of the last one: ``"killed"`` or ``"power cut"``; None in the first."""
        self.kept: dict[str, Any] = {}
        """Survives crashes: what the program acknowledged, for example, for the checks of later
        lives."""
        self._scheduler = scheduler
        self._started: list[Thread] = []
        self._system = System(scheduler)

    def start(self, function: Callable[..., object], *arguments: Any, name: str = "") -> None:
        """Start a thread.  If it raises, the run fails."""
        number = len(self._started) + 1
        thread = self._scheduler.start(function, arguments, name or f"{function.__name__} {number}")
        self._started.append(thread)
        self._scheduler.step("started a thread")

    def process(self, name: str = "") -> Process:
        """A new process, which has no thread yet.

        ``start(function, *arguments, name="")`` starts one.  Its threads open stores on its
        ``env``, and share them with other processes.  ``kill()`` kills it, and ``kill_after(n)`` at
        the n-th switch point of its threads from now on; ``points`` counts these.  ``killed`` says
        whether that has happened, and ``pid`` is its process id.  ``stop()`` and ``stop_after(n)``
        stop it, and ``go_on()`` continues it.

        >>> from lsmkv import DB, SharedDB
        >>> def count(process):
        ...     with SharedDB("/db", env=process.env, create_if_missing=True) as db:
        ...         db.update(b"n", lambda old: b"%d" % (int(old or 0) + 1))
        >>> def program(run: Run):
        ...     one, other = run.process("one"), run.process("other")
        ...     one.start(count, one)
        ...     other.start(count, other)
        ...     one.kill_after(run.rng.randint(1, 400))
        ...     run.join()
        ...     with DB("/db", env=run.env) as db:
        ...         assert db.get(b"n") == b"2" or (one.killed and db.get(b"n") == b"1")
        """
        process = Process(self._system, self._started, name)
        process.env = ProcessEnv(process, self.env)
        return process

    def join(self) -> None:
        """Wait for the end of all threads that this life has started."""
        for thread in self._started:
            while not self._scheduler.has_ended(thread):
                self._scheduler.wait(thread, None, False, "waits for an end")

    def lock(self) -> PlainLock:
        """A lock, as ``threading.Lock`` makes it: a real one would stop the simulation."""
        return PlainLock()

    def step(self) -> None:
        """A switch point in the program."""
        self._scheduler.step("before this line")

    def sleep(self, seconds: float) -> None:
        """Wait for simulated seconds, which pass when no other thread can run."""
        self._scheduler.wait(None, seconds, False, "pauses")

    def _begin_life(self, env: FaultyEnv, crash: Crash) -> None:
        self.env = env
        self.life += 1
        self.crash = crash.how
        self._started = []
        self._system = System(self._scheduler)


Program = Callable[[Run], object]


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Run the seeds of a request, until one fails."""
    return _Runs(request).answer()


class _Runs:
    """The runs of one request."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._request = request
        OWN_FILES.update(str(sys.modules[name].__file__) for name in _OWN)
        module = _load(request)
        self._program: Program = getattr(module, request["name"])
        self._lines = _files_of(request["lines"], str(module.__file__))
        self._steps = 0
        # What is there before all runs is no garbage of theirs: a collection passes over it.
        gc.collect()
        gc.freeze()

    def answer(self) -> dict[str, Any]:
        request = self._request
        first: int = request["seed"]
        for seed in range(first, first + request["runs"]):
            failure = self._try_seed(seed)
            if failure is not None:
                return {"runs": seed - first + 1, "steps": self._steps, "failure": failure}
        return {"runs": request["runs"], "steps": self._steps, "failure": None}

    def _try_seed(self, seed: int) -> dict[str, Any] | None:
        request = self._request
        plan = Plan()
        bare = self._run(seed, AsForced(), plan)
        if bare["failure"] is not None:
            return self._described(seed, [], plan, 0)
        plan = draw_plan(seed, bare["calls"], request["crashes"], request["faults"])
        if request["schedule"] is not None:
            forced = [(thread, decision, to) for thread, decision, to in request["schedule"]]
            result = self._run(seed, AsForced(forced), plan)
            if result["failure"] is None:
                return None
            return self._described(seed, forced, plan, len(forced))
        rng = random.Random(f"{seed} schedule")
        strategy: Strategy = RandomWalk(rng)
        if request["strategy"] == "pct":
            strategy = Priorities(rng, request["depth"], bare["choices"])
        result = self._run(seed, strategy, plan)
        if result["failure"] is None:
            return None
        forced = [(thread, decision, to) for thread, decision, to in result["forced"]]
        wanted = _alike(result)

        def fails(some: list[Forced]) -> bool:
            return _alike(self._run(seed, AsForced(some), plan)) == wanted

        found = len(forced)
        if request["reduce"] > 0 and fails(forced):
            forced = reduce_list(forced, fails, request["reduce"])
        return self._described(seed, forced, plan, found)

    def _described(
        self, seed: int, forced: list[Forced], plan: Plan, found: int
    ) -> dict[str, Any] | None:
        result = self._run(seed, AsForced(forced), plan, describe=True)
        failure = result["failure"] or ["error", "the failure did not occur again"]
        return {
            "seed": seed,
            "kind": failure[0],
            "text": failure[1],
            "events": result["events"],
            "schedule": result["forced"],  # those of the given switches that happened
            "found": found,
            "switches": result["switches"],
        }

    def _run(
        self, seed: int, strategy: Strategy, plan: Plan, describe: bool = False
    ) -> dict[str, Any]:
        result: dict[str, Any] = in_copy(lambda: self._live(seed, strategy, plan, describe))
        self._steps += result["steps"]
        return result

    def _live(self, seed: int, strategy: Strategy, plan: Plan, describe: bool) -> dict[str, Any]:
        """All lives of one run."""
        # Exceptions that unwinding raises in finalizers do not matter.
        sys.unraisablehook = lambda _what: None
        scheduler = Scheduler(strategy, self._request["most_steps"], self._lines)
        if describe:
            scheduler.switches = []
        Current.scheduler = scheduler
        env = FaultyEnv(mapped_logs=self._request["mapped_logs"])
        run = Run(seed, scheduler, env)
        events: list[str] = []
        calls = 0
        for life, crash in enumerate([*plan.crashes, None]):
            if plan.fault is not None and plan.fault.life == life:
                plan.fault.arm(env)
                events.append(f"life {life}: {plan.fault}")
            scheduler.at_step = None if crash is None else _is_over(env, crash)
            scheduler.run(lambda: self._program(run))
            calls = max(calls, env.calls)
            if scheduler.failure is not None or crash is None or env.calls < crash.after:
                break
            last = f"after {env.history[-1]}, call {len(env.history)}"
            events.append(f"life {life}: {crash}, {last}")
            env = crash.restart(env)
            gc.collect()  # remnants of that life
            run._begin_life(env, crash)
        failure = scheduler.failure
        return {
            "failure": failure and [failure.kind, failure.text, failure.error],
            "forced": scheduler.forced,
            "steps": scheduler.steps,
            "choices": scheduler.choices,
            "calls": calls,
            "events": events,
            "switches": scheduler.switches,
        }


def _is_over(env: FaultyEnv, crash: Crash) -> Callable[[], bool]:
    return lambda: env.calls >= crash.after


def _alike(result: dict[str, Any]) -> object:
    """A value that equal failures share; None for no failure."""
    failure = result["failure"]
    return None if failure is None else (failure[0], failure[2])


# The program, and the files whose lines are switch points


class _TextLoader(importlib.abc.SourceLoader):
    """A module that is given as text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def get_filename(self, _name: str) -> str:
        return _TEXT

    def get_data(self, _path: str | bytes) -> bytes:
        return self._text.encode()


def _load(request: dict[str, Any]) -> ModuleType:
    """The module of a request's program."""
    if request["module"] is not None:
        return importlib.import_module(request["module"])
    if request["path"] is not None:
        spec = spec_from_file_location(PROGRAM, request["path"])
    else:
        text: str = request["text"]
        linecache.cache[_TEXT] = (len(text), None, text.splitlines(keepends=True), _TEXT)
        spec = spec_from_loader(PROGRAM, _TextLoader(text))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[PROGRAM] = module
    spec.loader.exec_module(module)
    if request["text"] is not None:
        module.__file__ = _TEXT
    return module


def _files_of(modules: list[str], program: str) -> Callable[[str], bool] | None:
    """Return a test for files of these modules, or of the modules in these packages."""
    if not modules:
        return None
    wanted: list[str] = []
    for name in modules:
        if name == "program":
            wanted.append(program)
            continue
        module = importlib.import_module(name)
        places = getattr(module, "__path__", None)
        wanted += (
            [str(module.__file__)]
            if places is None
            else [os.path.join(place, "") for place in places]
        )
    known: dict[str, bool] = {}

    def is_wanted(path: str) -> bool:
        found = known.get(path)
        if found is None:
            found = path.startswith(tuple(wanted)) and path not in OWN_FILES
            known[path] = found
        return found

    return is_wanted
