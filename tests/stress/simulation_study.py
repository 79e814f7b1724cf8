"""Schedules, crashes and failing calls that come from one seed each.

Every run is ``simulated_store.program``: threads write, read, flush, compact and close a store in
memory, and the simulation decides at every switch point which one goes on.  What they have read
must be explained by an order of the calls; what a crash leaves must be a prefix of it that has all
that was synced; nobody may wait for ever; and no file may be left.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from study import Outcome, Say

from lsmkv.testing import SimulationReport, simulate

PROGRAM = f"{Path(__file__).with_name('simulated_store.py')}:program"
_LINES = ["lsmkv.engine.db.write", "lsmkv.engine.db.tree", "lsmkv.engine.db.read"]
MODES: list[tuple[str, int, dict[str, Any]]] = [
    ("random schedules", 30, {}),
    ("by priorities", 40, {"strategy": "pct", "depth": 4}),
    ("with crashes", 30, {"crashes": 2}),
    ("by priorities, with crashes", 20, {"strategy": "pct", "depth": 3, "crashes": 1}),
    ("with crashes and faults", 30, {"crashes": 1, "faults": True, "mapped_logs": True}),
    ("range deletions", 20, {"program": f"{PROGRAM[:-7]}ranges", "crashes": 1}),
    ("line by line", 12, {"lines": _LINES}),
    ("line by line, by priorities", 12, {"lines": _LINES, "strategy": "pct", "depth": 4}),
    ("every line of the tree", 6, {"lines": ["lsmkv.engine.db"]}),
]
"""The kinds of runs, how many there are at size 1, and the arguments of :func:`simulate`."""


def run(size: float, seed: int, say: Say) -> Outcome:
    """About a minute at size 1."""
    return run_modes(MODES, size, seed, say)


def run_modes(
    modes: list[tuple[str, int, dict[str, Any]]], size: float, seed: int, say: Say
) -> Outcome:
    """Runs of each mode, as many as its share says."""
    outcome = Outcome()
    for name, share, options in modes:
        runs = max(1, int(share * size))
        report = try_mode(seed, runs, options)
        outcome.count(f"runs {name}", report.runs)
        outcome.count("switch points", report.steps)
        if report.failure is not None:
            outcome.violations.append(f"{name}: {report}")
        say(f"{runs} runs {name}")
    return outcome


def try_mode(
    seed: int,
    runs: int,
    options: dict[str, Any],
    reduce: int | None = None,
    first: int | None = None,
) -> SimulationReport:
    """So many runs of a kind; their seeds are nobody else's, unless the first one is given.

    ``options`` may name another ``program``.
    """
    if reduce is None:
        # Those of many lines take a second: a failure is worth a minute.
        reduce = 60 if "lines" in options else 300
    start = seed * 1_000_000 if first is None else first
    given = {"program": PROGRAM, "most_steps": 5_000_000, **options}
    return simulate(seed=start, runs=runs, reduce=reduce, **given)
