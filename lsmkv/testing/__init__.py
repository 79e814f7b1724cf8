"""Tools for a program's own tests: states that a crash can leave, calls that fail, and schedules.

A program that keeps its data in lsmkv (or anything else that does its file work through an
:class:`~lsmkv.Env`) runs once.  :func:`explore` then draws, before every change of the disk and
within every write, states that a power cut or a kill could leave, and checks each:

>>> from lsmkv import DB, NotFoundError
>>> from lsmkv.testing import explore
>>> def pay(env):  # moves 5 coins, in two writes: a mistake
...     with DB("/db", create_if_missing=True, env=env) as db:
...         db.put(b"anna", b"5", sync=True)
...         env.note("paid in")
...         db.put(b"anna", b"0")
...         db.put(b"bert", b"5", sync=True)
>>> def all_coins_are_there(state):
...     if "paid in" in state.notes:
...         with DB("/db", env=state.env) as db:
...             assert sum(int(coins) for _, coins in db) == 5
>>> report = explore(pay, all_coins_are_there)
>>> report.states > 100, len(report.violations) > 0
(True, True)

Each violation has a label that restores its state from the recording.  Here it is the state
before the second half was written:

>>> state = report.recording.state(report.violations[0].label)
>>> with DB("/db", env=state.env) as db:
...     list(db)
[(b'anna', b'0')]

:class:`FaultyEnv` makes a chosen call fail, to test that a program reports it and loses nothing.
:func:`serving` runs a server for Redis clients during a test.  :func:`simulate` runs several
threads under schedules that are drawn from a seed.  ``docs/testing.md`` says what each of them
covers.
"""

from __future__ import annotations

from lsmkv.engine.former_paths import keep_paths
from lsmkv.testing.crashes import Report, Violation, explore
from lsmkv.testing.durable import NameModel, Tails
from lsmkv.testing.faulty import CALLS, FaultyEnv
from lsmkv.testing.recording import CrashState, RecordingEnv
from lsmkv.testing.servers import serving
from lsmkv.testing.simulation import SimulatedFailure, SimulationReport, simulate
from lsmkv.testing.world import Run

__all__ = [
    "CALLS",
    "CrashState",
    "FaultyEnv",
    "NameModel",
    "RecordingEnv",
    "Report",
    "Run",
    "SimulatedFailure",
    "SimulationReport",
    "Tails",
    "Violation",
    "explore",
    "serving",
    "simulate",
]

keep_paths(*(globals()[name] for name in __all__))
