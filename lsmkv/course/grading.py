"""Grades a folder of submissions: each lab in its own process group, with limits.

The limits stop an endless loop or an endless list.  They are not a sandbox: the code runs as the
teacher, and can read and write what the teacher can.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lsmkv.course.lab import Lab
from lsmkv.course.labs.registry import LABS
from lsmkv.course.running import PASSED, STOPPED, Result

MISSING = "missing"
"""An outcome in addition to those of :mod:`lsmkv.course.running`: there is no file."""

_GRACE = 5
"""Extra seconds for a check that ignores its time limit."""


@dataclass(frozen=True)
class Limits:
    """What one check may take."""

    seconds: int
    memory_mib: int


@dataclass(frozen=True)
class LabGrade:
    """The result of one lab of one student."""

    lab: int
    title: str
    file: str
    passed: int
    checks: list[Result]


@dataclass(frozen=True)
class Submission:
    """The results of a student's folder."""

    name: str
    labs: list[LabGrade]


def students(directory: str) -> list[str]:
    """The names of the folders in a directory, sorted, without hidden ones and ``__MACOSX``.

    Raises ``OSError`` if it cannot be read, or contains no folders.
    """
    with os.scandir(directory) as entries:
        names = sorted(e.name for e in entries if e.is_dir() and not e.name.startswith((".", "__")))
    if not names:
        raise FileNotFoundError(errno.ENOENT, "it contains no folders of students", directory)
    return names


class Grader:
    """Runs the checks of several labs at a time.  The end of its block ends what still runs."""

    def __init__(self, limits: Limits, advance: Callable[[int], None] = lambda _: None) -> None:
        """``advance`` is called with 1 after each lab of a student."""
        self._limits = limits
        self._advance = advance
        self._pool = ThreadPoolExecutor(os.cpu_count())
        self._running: set[subprocess.Popen[bytes]] = set()
        self._is_open = True
        self._lock = threading.Lock()

    def __enter__(self) -> Grader:
        return self

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._is_open = False
            for process in self._running:
                _kill(process)
        self._pool.shutdown(cancel_futures=True)

    def grade(self, directory: str, names: list[str]) -> Iterator[Submission]:
        """Grade students' folders in a directory, and yield each in order when it is done."""
        graded = {
            name: [
                self._pool.submit(self.grade_lab, lab, os.path.join(directory, name))
                for lab in LABS
            ]
            for name in names
        }
        for name, labs in graded.items():
            yield Submission(name, [lab.result() for lab in labs])

    def grade_lab(self, lab: Lab, folder: str) -> LabGrade:
        """All checks of a lab on the file in a student's folder."""
        path = os.path.abspath(os.path.join(folder, lab.file_name))
        results: list[Result] = []
        if not os.path.isfile(path):
            message = f"there is no file {lab.file_name}"
            results = [Result(check.name, MISSING, message) for check in lab.checks]
        while len(results) < len(lab.checks):
            results += self._run_from(lab, path, len(results))
        passed = sum(result.outcome == PASSED for result in results)
        self._advance(1)
        return LabGrade(lab.number, lab.title, lab.file_name, passed, results)

    def _run_from(self, lab: Lab, path: str, first: int) -> list[Result]:
        """Run the checks from one on, in a process that is killed with everything that it started.

        Ends after the last check, or after one that ended the process or had to be stopped.
        """
        seconds = self._limits.seconds
        command = [
            *without_network(),
            *(sys.executable, "-P", "-m", "lsmkv.course.worker"),
            *(lab.slug, path, str(first), str(seconds), str(self._limits.memory_mib)),
        ]
        results: list[Result] = []
        with self._started(command) as process:
            assert process.stdout is not None
            process.stdout.readline()  # a slow start does not count
            for check in lab.checks[first:]:
                watch = threading.Timer(seconds + _GRACE, _kill, [process])
                watch.start()
                line = process.stdout.readline()
                was_late = not watch.is_alive()
                watch.cancel()
                try:
                    results.append(Result(**json.loads(line)))
                except (ValueError, TypeError):
                    why = f"after {seconds} s" if was_late else _ending(process)
                    return [*results, Result(check.name, STOPPED, f"it was stopped {why}")]
        return results

    @contextlib.contextmanager
    def _started(self, command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
        """A process in its own temporary directory and process group, both removed at the end of
        the block."""
        with tempfile.TemporaryDirectory(prefix="lsmkv-course-") as scratch:
            with self._lock:
                if not self._is_open:
                    raise RuntimeError("grading was stopped")
                process = subprocess.Popen(
                    command,
                    cwd=scratch,
                    env=os.environ | {"TMPDIR": scratch},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
                self._running.add(process)
            with process:
                try:
                    yield process
                finally:
                    _kill(process)
                    with self._lock:
                        self._running.discard(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and everything that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


def _ending(process: subprocess.Popen[bytes]) -> str:
    """Why a process has ended, in words."""
    status = process.wait()
    if status >= 0:
        return f"since its process ended with status {status}"
    name = signal.Signals(-status).name
    return f"since its process crashed: {name}"


@functools.cache
def without_network() -> tuple[str, ...]:
    """The command prefix that starts a program without a network, if the system supports it."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return ()
    tried = subprocess.run([unshare, "-rn", "true"], capture_output=True, check=False)
    return (unshare, "-rn") if tried.returncode == 0 else ()
