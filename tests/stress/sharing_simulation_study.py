"""Simulated processes that share a store, are killed and take over; power cuts under all of them.

The programs are those of ``simulated_processes.py``, and that of ``simulated_turns.py``.  The
engine's own code runs in each process; sockets, shared memory, leases and ``LOCK`` are simulated
(``lsmkv/testing/process_env.py``).  A process is killed at any switch point: before each system
call, before each load and store of a word of the page, before a lock is taken and after it is
released.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from simulation_study import run_modes
from study import Outcome, Say

_PROGRAMS = Path(__file__).with_name("simulated_processes.py")
_TURNS = Path(__file__).with_name("simulated_turns.py")
_MOST_STEPS = 1_000_000


def _mode(name: str, share: int, program: str, **options: Any) -> tuple[str, int, dict[str, Any]]:
    place = program if ":" in program else f"{_PROGRAMS}:{program}"
    options |= {"program": place, "most_steps": _MOST_STEPS}
    return name, share, options


MODES = [
    _mode("processes", 40, "program"),
    _mode("processes by priorities", 30, "program", strategy="pct", depth=4),
    _mode("processes with power cuts", 20, "program", crashes=2),
    _mode("processes with mapped logs", 15, "program", crashes=1, mapped_logs=True),
    _mode("processes killed at each step", 30, "each_step"),
    _mode("new owners killed at each step", 20, "taking_over"),
    _mode("new owners killed, by priorities", 15, "taking_over", strategy="pct", depth=4),
    _mode("processes that are stopped", 20, "stopped"),
    _mode("processes that come and go", 20, "come_and_go", strategy="pct", depth=4),
    _mode("transactions that last", 15, "transactions"),
    _mode("reads while the owner syncs", 15, "synced", strategy="pct", depth=4),
    _mode("reads while tables come and go", 15, "versions", strategy="pct", depth=4),
    _mode("range deletions while others read", 15, "ranges", strategy="pct", depth=4),
    _mode("owners killed before they answer", 15, "unanswered"),
    _mode("late leases of processes that come and go", 15, "joining_late"),
    _mode("owners that lose their power", 20, "power_fails", mapped_logs=True),
    _mode("processes that take turns", 20, f"{_TURNS}:program"),
    _mode("processes that take turns, by priorities", 15, f"{_TURNS}:program", strategy="pct"),
    _mode("processes line by line", 3, "program", lines=["lsmkv.shared"]),
    _mode("new owners killed at each line", 3, "taking_over_by_lines", lines=["lsmkv.shared"]),
]
"""As those of ``simulation_study.py``."""


def run(size: float, seed: int, say: Say) -> Outcome:
    """About a minute at size 1."""
    return run_modes(MODES, size, seed, say)
