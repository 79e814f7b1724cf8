"""Simulations whose schedule follows from a seed: what tests call, and what they get.

The runs take place in a separate process, in which the engine is interpreted, and has simulated
locks, threads and clocks (``child.py``).
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lsmkv.engine.former_paths import present_path
from lsmkv.testing.interpreted import run_interpreted
from lsmkv.testing.scheduler import Forced, Switch

_WIDEST = (1, 9, 27, 28, 16, 9)
"""Characters of the columns of a schedule: 100 in all, with what is between them."""
_MOST_ROWS = 36
"""A schedule fits one screen."""
_MOST_TEXT = 100
"""Characters of a line of what happened; longer ones are wrapped."""


@dataclass(frozen=True)
class SimulatedFailure:
    """A run that failed, and the switches between threads that make it fail.

    >>> print(SimulatedFailure(7, "deadlock", "no thread can run", (), ((2, 5, 3),), 9, ()))
    seed 7: deadlock (1 of 9 forced switches remain)
    no thread can run
    """

    seed: int
    """The seed that repeats it."""
    kind: str
    """``"error"``, which a thread has raised; ``"deadlock"``; ``"lost wake-up"``: no thread can
    run, although none wait for each other; ``"endless"``."""
    text: str
    """A description of the failure, in several lines."""
    events: tuple[str, ...]
    """The crashes of the run, and the call that was made to fail."""
    schedule: tuple[Forced, ...]
    """The forced switches that remain, for ``simulate(..., schedule=...)``: the number of the
    thread that ran, the number of its decision, and the number of the thread that ran next."""
    found: int
    """The number of forced switches before the reduction."""
    switches: tuple[Switch, ...]
    """Every change from one thread to another, forced or not."""

    def __str__(self) -> str:
        """The seed, what happened, and :meth:`schedule_table`."""
        kept = f"{len(self.schedule)} of {self.found} forced switches remain"
        lines = [f"seed {self.seed}: {self.kind} ({kept})"]
        for line in (*self.text.splitlines(), *self.events):
            lines += textwrap.wrap(line, _MOST_TEXT, subsequent_indent=" " * 8)
        return "\n".join([*lines, *self.schedule_table()])

    def schedule_table(self) -> list[str]:
        """The switches as lines of a table, at most 38 of 100 characters; ``*`` marks forced ones.

        Of more switches, the last forced ones are there, and then the last others.

        >>> switch = Switch("anna", "shop.py:7", "stock -= 1", "takes a lock", "bert", True)
        >>> failure = SimulatedFailure(7, "error", "", (), ((2, 5, 3),), 9, (switch,))
        >>> print(*failure.schedule_table(), sep="\\n")
           thread  place      line        why           then
        *  anna    shop.py:7  stock -= 1  takes a lock  bert
        """
        if not self.switches:
            return []
        places = range(len(self.switches))
        by_weight = sorted(places, key=lambda at: (self.switches[at].forced, at))
        shown = sorted(by_weight[-_MOST_ROWS:])
        rows = [("", "thread", "place", "line", "why", "then")]
        for at in shown:
            one = self.switches[at]
            mark = "*" if one.forced else ""
            place = one.place if len(one.place) <= _WIDEST[2] else "…" + one.place[1 - _WIDEST[2] :]
            rows.append((mark, one.thread, place, one.source, one.why, one.to))
        widths = [min(most, max(len(row[at]) for row in rows)) for at, most in enumerate(_WIDEST)]
        left_out = len(self.switches) - len(shown)
        lines = [f"{left_out} other switches are left out"] if left_out else []
        for row in rows:
            cells = zip(row, widths, strict=True)
            lines.append(
                "  ".join(_cut(cell, width).ljust(width) for cell, width in cells).rstrip()
            )
        return lines


def _cut(text: str, width: int) -> str:
    """A text of at most ``most`` characters."""
    return text if len(text) <= width else text[: width - 1] + "…"


@dataclass(frozen=True)
class SimulationReport:
    """The result of :func:`simulate`.

    >>> print(SimulationReport(runs=3, steps=120, failure=None))
    3 runs, 120 switch points, 0 failures
    """

    runs: int
    """The number of seeds that were tried."""
    steps: int
    """The number of switch points in all their runs."""
    failure: SimulatedFailure | None
    """The first failure, which ends the search; None if there was none."""

    def __str__(self) -> str:
        """The numbers, and the failure."""
        failed = 0 if self.failure is None else 1
        line = f"{self.runs} runs, {self.steps} switch points, {failed} failures"
        return line if self.failure is None else f"{line}\n{self.failure}"


def simulate(
    program: str | Callable[[Any], object],
    *,
    seed: int,
    runs: int = 1,
    strategy: Literal["random", "pct"] = "random",
    depth: int = 3,
    lines: Sequence[str] = (),
    crashes: int = 0,
    faults: bool = False,
    mapped_logs: bool = False,
    schedule: Sequence[Forced] | None = None,
    reduce: int = 300,
    most_steps: int = 200_000,
) -> SimulationReport:
    """Run a program of several threads on a disk in memory, under schedules drawn from seeds.

    Exactly one thread runs at a time.  At every *switch point* the seed decides which one
    continues: before a lock is taken and after it is released, at every wait, every call of the
    file system, and with ``lines`` before every line of these modules or packages (``"program"`` is
    the program itself), which takes longer.  So a seed determines a run, which fails every time or
    never.

    ``program`` takes a :class:`Run`, on whose ``env`` it opens its store.  It is a function at the
    top of a module, which is imported in another process; ``"module:function"``;
    ``"path.py:function"``; or source text that defines ``program``.  It fails by raising.

    * ``runs``: the number of seeds to try, from ``seed`` on, until one fails.
    * ``strategy``: ``"random"`` lets any thread run next, often in some runs and rarely in others;
      ``"pct"`` the one with the highest priority,
      with ``depth - 1`` changes of priority (:class:`lsmkv.testing.strategies.Priorities`).
    * ``crashes``: at most this many kills or power cuts, after each of which ``program`` is called
      again; ``faults``: in most runs one call of the file system fails, once or from then on.
    * ``schedule``: the schedule of a failure, to run it again, with the same ``seed`` and options.
    * ``reduce``: the number of runs to spend on a failure, to find the switches that it needs.
    * ``most_steps``: the number of switch points after which a run counts as endless.

    Raises ``ValueError`` or ``TypeError`` for invalid arguments, and
    :class:`lsmkv.testing.interpreted.ChildFailedError` if the program cannot be loaded.  Costs the
    start of a process, and about 10 microseconds for a switch point.

    >>> report = simulate('''
    ... from lsmkv import DB
    ... def count(db):
    ...     for _ in range(2):
    ...         db.put(b"n", b"%d" % (int(db.get(b"n", b"0")) + 1))
    ... def program(run):
    ...     with DB("/db", create_if_missing=True, env=run.env) as db:
    ...         run.start(count, db)
    ...         run.start(count, db)
    ...         run.join()
    ...         assert db.get(b"n") == b"4", "an increment is lost"
    ... ''', seed=0, runs=20)
    >>> report.failure.kind, len(report.failure.schedule)
    ('error', 1)
    """
    if strategy not in ("random", "pct"):
        raise ValueError(f"strategy is 'random' or 'pct', not {strategy!r}")
    for name, value, least in (("runs", runs, 1), ("depth", depth, 1), ("crashes", crashes, 0)):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, not {value}")
    if schedule is not None and runs != 1:
        raise ValueError("a schedule needs runs=1")
    request = {
        **_named(program),
        "seed": seed,
        "runs": runs,
        "strategy": strategy,
        "depth": depth,
        "lines": [present_path(name) or name for name in lines],
        "crashes": crashes,
        "faults": faults,
        "mapped_logs": mapped_logs,
        "schedule": None if schedule is None else list(schedule),
        "reduce": reduce,
        "most_steps": most_steps,
    }
    found = run_interpreted("lsmkv.testing.child", request)
    failure = found["failure"]
    if failure is not None:
        failure = SimulatedFailure(
            failure["seed"],
            failure["kind"],
            failure["text"],
            tuple(failure["events"]),
            tuple((thread, decision, to) for thread, decision, to in failure["schedule"]),
            failure["found"],
            tuple(Switch(*switch) for switch in failure["switches"]),
        )
    return SimulationReport(found["runs"], found["steps"], failure)


def _named(program: str | Callable[[Any], object]) -> dict[str, str | None]:
    """Describe the program for the child: by a module, by a file, or by its text."""
    named: dict[str, str | None] = {"module": None, "path": None, "text": None, "name": "program"}
    if callable(program):
        name = getattr(program, "__qualname__", "")
        module = sys.modules.get(getattr(program, "__module__", ""))
        path = None if module is None else getattr(module, "__file__", None)
        if path is None or getattr(module, name, None) is not program:
            raise TypeError(
                "program must be a function at the top of a module, 'module:function',"
                f" 'path.py:function', or source text that defines program, not {program!r}"
            )
        return {**named, "path": inspect.getsourcefile(program) or path, "name": name}
    if "\n" in program:
        return {**named, "text": textwrap.dedent(program)}
    place, colon, name = program.rpartition(":")
    if not colon or not name.isidentifier():
        raise ValueError(f"program is 'module:function' or 'path.py:function', not {program!r}")
    return {**named, "path" if place.endswith(".py") else "module": place, "name": name}
