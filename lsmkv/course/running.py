"""Judges a student's file.  The file runs in a separate process, and the checks in this one.

What the code does to its process (it ends it, crashes, never returns, replaces modules, prints)
changes its own results and nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lsmkv.course.failure import CheckFailure, Place, place_of, shown
from lsmkv.course.lab import Check, Lab
from lsmkv.course.pipe import Peer, PipeError
from lsmkv.course.submissions import labs_beside
from lsmkv.course.traces import MOST_BYTES, places_in
from lsmkv.engine.errors import RecoveryWarning
from lsmkv.tools.signals import Terminated

_unix: Any = os
"""``os``, with what only some systems have."""

PASSED = "passed"
FAILED = "failed"
NOT_WRITTEN = "not written"
ERROR = "error"
STOPPED = "stopped"
"""Outcomes of a check.  A grade may also be "missing": see :mod:`lsmkv.course.grading`."""

SECONDS, MEMORY_MIB = 20, 1024
"""The default limits."""

_POLL = 0.02
"""Seconds between looks at the process."""
_ENDING = 10
"""Seconds for the end of a process that has closed its pipe."""
MOST_WAITS = 20
"""The longest wait of the judge, in multiples of the limit, even on a busy machine."""
_TRACE = 0.5
"""Seconds for the report of where a process is."""

_BOOT = (
    "import sys; paths = sys.argv[4:]; sys.path[:] = paths;"
    "from lsmkv.course.student import main; main(sys.argv[1:4])"
)


@dataclass(frozen=True)
class Limits:
    """The limits of one check.

    The time is that of the student's process: of the processor, or asleep in one call.
    """

    seconds: float = SECONDS
    memory_mib: int = MEMORY_MIB


@dataclass(frozen=True)
class Result:
    """The result of a check."""

    check: str
    outcome: str
    message: str


class Usage(NamedTuple):
    """The use of the processor by a process."""

    seconds: float
    """Seconds of processor time."""
    is_asleep: bool
    """True if it waits for something, or is stopped by a signal."""


def _usage(pid: int) -> Usage | None:
    """Return the usage of a process; None where the system does not report it."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, *fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    ticks = int(fields[10]) + int(fields[11])
    return Usage(ticks / _unix.sysconf("SC_CLK_TCK"), state != b"R")


class Code:
    """The student's functions."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        self.__dict__.update(functions)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no function {name}", name=name, obj=self)


class Student:
    """The process that runs a student's file.  The end of the block ends it, and all that it
    started.

    ``output`` is the file descriptor for what it prints; by default that is dropped.
    """

    def __init__(
        self, path: str, files: Mapping[str, str], limits: Limits, output: int | None = None
    ) -> None:
        self._path = path
        self._files = files
        self._limits = limits
        self._folders = {os.path.dirname(one) for one in (path, *files.values())}
        self._traces = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        self._waits_since: float | None = None
        self._waited = 0.0
        self._asleep_since: float | None = None
        self._used_before = 0.0
        self._is_limited = False
        self._is_late = False
        self._is_closed = threading.Event()
        traces = -1 if sys.platform == "win32" else self._traces.fileno()
        most = int(limits.seconds * 20) + 20
        paths = [os.path.abspath(one) for one in sys.path if isinstance(one, str)]
        limited = (str(most), str(limits.memory_mib), str(traces))
        self.process = subprocess.Popen(
            [*without_network(), sys.executable, "-P", "-c", _BOOT, *limited, *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if output is None else output,
            pass_fds=() if traces < 0 else (traces,),
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._peer = Peer(
            self.process.stdout.fileno(), self.process.stdin.fileno(), waiting=self._note
        )
        self._watch = threading.Thread(target=self._watch_over, daemon=True)
        self._watch.start()

    def __enter__(self) -> Student:
        return self

    def __exit__(self, *error: object) -> None:
        self._is_closed.set()
        self._watch.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=1)
        self._kill()
        self.process.wait()
        self._traces.close()

    def load(self, lab: Lab) -> Code:
        """Run the file.  Raises what it raises, and :class:`PipeError` if it ends the process."""
        self._peer.call(0, "is_ready")
        with self.limited():
            name = lab.file_name.removesuffix(".py")
            return Code(self._peer.call(0, "load", (self._path, name, lab.functions, self._files)))

    @contextlib.contextmanager
    def limited(self) -> Iterator[None]:
        """The time that the process takes within the block is limited."""
        usage = _usage(self.process.pid)
        self._used_before = 0.0 if usage is None else usage.seconds
        self._waited = 0.0
        self._is_limited = True
        try:
            yield
        finally:
            self._is_limited = False

    def why_stopped(self) -> str:
        """The reason for which the process can no longer answer; empty if it can."""
        if self._peer.has_ended:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_ENDING)
        status = self.process.poll()
        if self._is_late:
            return f"it was stopped after {self._limits.seconds:g} s{self._traced()}"
        if status is None:
            if not (self._peer.is_broken or self._peer.has_ended):
                return ""
            return "it was stopped since its process sent a malformed answer"
        if status >= 0:
            return f"it was stopped since its process ended with status {status}"
        number = -status
        known = number in {one.value for one in signal.Signals}
        name = signal.Signals(number).name if known else f"signal {number}"
        words = _SIGNALS.get(name, "")
        return f"it was stopped since its process crashed: {name}{words}{self._traced()}"

    def where(self) -> Place | None:
        """The student's line that is running."""
        self._ask_where()
        return self._place()

    def _note(self, waits: bool) -> None:
        now = time.monotonic()
        if waits:
            self._waits_since = now
        elif self._waits_since is not None:
            self._waited += now - self._waits_since
            self._waits_since = None
        self._asleep_since = None

    def _watch_over(self) -> None:
        """Kill the process when its time is over, and what it started when it has ended."""
        while not self._is_closed.wait(_POLL):
            if self.process.poll() is not None:
                self._kill()  # a copy of it may still hold the pipe
                return
            if self._is_limited and self._has_taken_its_time():
                self._is_late = True
                self._ask_where()
                self._kill()
                return

    def _has_taken_its_time(self) -> bool:
        """True if the process has used its seconds, or has slept for as long.

        Time in which it could run, but others run on a busy machine, is not its own.
        """
        now = time.monotonic()
        since = self._waits_since
        most = self._limits.seconds
        waited = self._waited + (0.0 if since is None else now - since)
        usage = _usage(self.process.pid)
        if usage is None:
            return waited > most
        if since is None or not usage.is_asleep:
            self._asleep_since = None
        elif self._asleep_since is None:
            self._asleep_since = now
        asleep = 0.0 if self._asleep_since is None else now - self._asleep_since
        used = usage.seconds - self._used_before
        return used > most or asleep > most or waited > MOST_WAITS * most

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self.process.kill()
            else:
                os.killpg(self.process.pid, signal.SIGKILL)

    def _ask_where(self) -> None:
        """Ask the process to write where it is; it may not respond."""
        if sys.platform == "win32" or self.process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.process.pid, signal.SIGUSR1)
        size = 0
        for _ in range(int(_TRACE / _POLL)):
            time.sleep(_POLL)
            before, size = size, os.fstat(self._traces.fileno()).st_size
            if size and size == before:
                return

    def _place(self) -> Place | None:
        """The innermost line of the student's files in what the process wrote last."""
        self._traces.seek(0)
        for place in places_in(self._traces.read(MOST_BYTES), self._folders):
            return place._replace(other="") if place.file == self._path else place
        return None

    def _traced(self) -> str:
        place = self._place()
        return "" if place is None else f"\n  {place}"


_SIGNALS = {
    "SIGSEGV": ", an access to memory that is not its own (or a recursion without end)",
    "SIGKILL": ", which ends a process that has used all of its processor time or memory",
    "SIGXCPU": ", since it has used all of its processor time",
    "SIGABRT": ", by which a library ends a process after an error",
}
"""Meanings of signals, in words."""


def run_checks(
    lab: Lab,
    path: str,
    limits: Limits,
    *,
    checks: Sequence[Check] | None = None,
    files: Mapping[str, str] | None = None,
    output: int | None = None,
    started: Callable[[int], None] = lambda pid: None,
) -> Iterator[Result]:
    """Run a lab's checks, or others, on a file, and yield each result when there is one.

    The file is run once, and again after a check that ended its process.  If that fails, it is the
    result of all checks that are left.  ``files`` has the paths of all labs' modules, by default
    those in the same folder; ``started`` is called with the id of each process.  Raises ``OSError``
    if the file cannot be read.
    """
    with open(path, "rb"):
        pass
    linecache.checkcache()
    given = labs_beside(path) if files is None else files
    left = list(lab.checks if checks is None else checks)
    while left:
        with Student(path, given, limits, output) as student:
            started(student.process.pid)
            try:
                code = student.load(lab)
            except Exception as error:
                stopped = student.why_stopped()
                words = stopped or f"the file cannot be run: {_in_one_line(error)}"
                outcome = STOPPED if stopped else ERROR
                yield from [Result(check.name, outcome, words) for check in left]
                return
            while left:
                check = left.pop(0)
                try:
                    with student.limited():
                        result = judge(lab, code, check)
                except KeyboardInterrupt as error:
                    error.__dict__["place"] = student.where()
                    raise
                stopped = student.why_stopped()
                yield Result(check.name, STOPPED, stopped) if stopped else result
                if stopped:
                    break


def judge(lab: Lab, code: Any, check: Check) -> Result:
    """Run one check of a lab on the student's functions."""
    try:
        with _quiet():
            return Result(check.name, PASSED, check.run(code))
    except Terminated:
        raise
    except Exception as error:
        cause = _first_cause(error)
        if isinstance(cause, CheckFailure):
            return Result(check.name, FAILED, str(cause))
        if isinstance(cause, NotImplementedError):
            place: Place | None = getattr(cause, "place", None)
            name = place.function if place else "it"
            return Result(check.name, NOT_WRITTEN, f"{name} is not written yet")
        if isinstance(cause, AttributeError) and cause.obj is code and cause.name in lab.functions:
            return Result(check.name, ERROR, f"the file has no function {cause.name}")
        words = f"your code raised {_in_one_line(cause)}"
        call = getattr(cause, "call", None)
        if call is not None:
            words += f"\n  in {called(*call)}"
        return Result(check.name, ERROR, words)


def called(name: str, arguments: Sequence[object]) -> str:
    """A call in a message; long arguments are cut, and objects without a text left out."""
    words: list[str] = []
    for one in arguments:
        text = shown(one)
        words.append(
            "..." if text.startswith("<") else text if len(text) <= 40 else text[:37] + "..."
        )
    return f"{name}({', '.join(words)})"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the engine's warnings, because the result reports the fault."""
    logger = logging.getLogger("lsmkv")
    before, logger.disabled = logger.disabled, True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecoveryWarning)
            yield
    finally:
        logger.disabled = before


def _first_cause(error: BaseException) -> BaseException:
    """The original cause of an engine's error: the engine wraps the errors of its parts."""
    while error.__cause__ is not None and not isinstance(error, PipeError):
        error = error.__cause__
    return error


def _in_one_line(error: BaseException) -> str:
    """An error in one line, with the student's line that raised it."""
    what = type(error).__name__ + (f": {error}" if str(error) else "")
    return what + place_of(error)


@functools.cache
def without_network() -> tuple[str, ...]:
    """The command prefix that starts a program without a network, if the system supports it."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return ()
    tried = subprocess.run([unshare, "-rn", "true"], capture_output=True, check=False)
    return (unshare, "-rn") if tried.returncode == 0 else ()
