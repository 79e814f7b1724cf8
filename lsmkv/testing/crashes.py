"""Every crash of a run: states that it could leave, and a check of each."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.testing.durable import NameModel
from lsmkv.testing.recording import CrashState, RecordingEnv


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
    """A description of the crash's time."""
    error: Exception
    """The error of the check."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Violation) and self._state() == other._state()

    def __hash__(self) -> int:
        return hash((self.label, self.moment))

    def _state(self) -> tuple[object, ...]:
        return self.label, self.moment, type(self.error), self.error.args

    def __str__(self) -> str:
        """One line: label, moment, error."""
        return f"{self.label}: {self.moment}: {type(self.error).__name__}: {self.error}"


@dataclass
class Report:
    """The result of :func:`explore`.

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
