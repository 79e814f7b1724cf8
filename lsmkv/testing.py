"""Tools for a program's tests: states that a crash can leave, and calls that fail.

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

Each violation has a label, with which the recording restores its state.  Here it is the state
before the second half was written:

>>> state = report.recording.state(report.violations[0].label)
>>> with DB("/db", env=state.env) as db:
...     list(db)
[(b'anna', b'0')]

:class:`FaultyEnv` makes a chosen call fail, to test that a program reports it and loses nothing.
:func:`serving` starts a server for Redis clients for the duration of a test. ``docs/testing.md``
says what each of the two covers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lsmkv.env.durable import NameModel, Tails
from lsmkv.env.faulty import CALLS, FaultyEnv
from lsmkv.env.memory import MemoryEnv
from lsmkv.env.recording import CrashState, RecordingEnv

if TYPE_CHECKING:
    from lsmkv.server.server import Server

__all__ = [
    "CALLS",
    "CrashState",
    "FaultyEnv",
    "NameModel",
    "RecordingEnv",
    "Report",
    "Tails",
    "Violation",
    "explore",
    "serving",
]


@dataclass(frozen=True)
class Violation:
    """A state that a check rejected.

    >>> def refuse(state):
    ...     raise AssertionError("never content")
    >>> report = explore(lambda env: env.open_directory("/d", create=True), refuse)
    >>> print(report.violations[0])
    0, killed: before the link of /d: AssertionError: never content
    """

    label: str
    """The label of the state, for ``report.recording.state``."""
    moment: str
    """The time of the crash, in words."""
    error: Exception
    """The error of the check."""

    def __str__(self) -> str:
        """One line: label, moment, error."""
        return f"{self.label}: {self.moment}: {type(self.error).__name__}: {self.error}"


@dataclass
class Report:
    """What :func:`explore` found.

    >>> print(explore(lambda env: None, lambda state: None))
    4 states, 0 violations
    """

    recording: RecordingEnv
    """The run: its ``state(label)`` restores a state."""
    states: int = 0
    """The number of states that were checked."""
    violations: list[Violation] = field(default_factory=list)
    """The violations, in the order of the run."""

    def __str__(self) -> str:
        """The counts, then a line for each violation."""
        lines = [f"{self.states} states, {len(self.violations)} violations"]
        return "\n".join([*lines, *map(str, self.violations)])


def explore(
    workload: Callable[[RecordingEnv], object],
    check: Callable[[CrashState], object],
    *,
    start: MemoryEnv | None = None,
    mapped_logs: bool = False,
    points: int | None = None,
    models: Collection[NameModel] = tuple(NameModel),
    kills: bool = True,
    seed: int = 0,
) -> Report:
    """Run ``workload`` once, and call ``check`` with states that a crash of it could leave.

    ``check`` opens the store on ``state.env`` and raises any error if the state is wrong.  It is
    called with about five to eight states for every write, sync, and change of a name.  ``start``
    is the disk before the run.  With ``mapped_logs`` the log is mapped, as in the local file
    system.  The rest is as in :meth:`RecordingEnv.crash_states`, which draws the states.

    Raises what ``workload`` raises; what ``check`` raises becomes a :class:`Violation` (except
    ``KeyboardInterrupt`` and similar ones).  Costs one check per state, and O(bytes on the disk).

    >>> from lsmkv import DB
    >>> def workload(env):
    ...     with DB("/db", create_if_missing=True, env=env) as db:
    ...         with db.write_batch(sync=True) as batch:
    ...             batch.put(b"a", b"1")
    ...             batch.put(b"b", b"2")
    ...         env.note("written")
    >>> def check(state):
    ...     with DB("/db", create_if_missing=True, env=state.env) as db:
    ...         found = dict(db)
    ...         assert found == {b"a": b"1", b"b": b"2"} or (found == {} and not state.notes)
    >>> print(explore(workload, check, points=20))
    80 states, 0 violations
    """
    recording = RecordingEnv(start, mapped_logs=mapped_logs)
    workload(recording)
    report = Report(recording)
    states = recording.crash_states(points=points, models=models, kills=kills, seed=seed)
    for state in states:
        report.states += 1
        try:
            check(state)
        except Exception as error:
            report.violations.append(Violation(state.label, state.moment, error))
    return report


@contextmanager
def serving(path: str | os.PathLike[str] = ":memory:", **settings: Any) -> Iterator[Server]:
    """A server for Redis clients on a free port of this machine, in a thread, while the block runs.

    ``settings`` are those of :class:`lsmkv.server.Server`, whose ``port`` is where it listens. The
    fixture ``lsmkv_server`` of ``lsmkv.pytest_plugin`` is one for pytest.  Costs a thread. Raises
    what starting it raises, and ``ImportError`` without the extra ``server``.

    >>> import socket
    >>> with serving() as server, socket.create_connection(("127.0.0.1", server.port)) as client:
    ...     client.sendall(b"PING\\r\\n")
    ...     client.recv(100)
    b'+PONG\\r\\n'
    """
    from lsmkv.server.server import Server  # noqa: PLC0415 - hiredis is an extra
    from lsmkv.server.thread import server_in_thread  # noqa: PLC0415

    with server_in_thread(Server(path, **{"port": 0, **settings})) as server:
        yield server
