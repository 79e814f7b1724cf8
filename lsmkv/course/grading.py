"""Grades a folder of submissions: each lab in a process group of its own, with limits.

The limits keep an endless loop, or a list without an end, from stopping the grading.  They are no
sandbox: the code runs as the teacher, and can read and write what the teacher can.
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
"""An outcome beside those of :mod:`lsmkv.course.running`: there is no file."""

_GRACE = 5
"""Seconds that a check which does not hear that its time is over has more."""


@dataclass(frozen=True)
class Limits:
    """What one check may take."""

    seconds: int
    memory_mib: int


@dataclass(frozen=True)
class LabGrade:
    """What became of one lab of one student."""

    lab: int
    title: str
    file: str
    passed: int
    checks: list[Result]


@dataclass(frozen=True)
class Submission:
    """What became of a student's folder."""

    name: str
    labs: list[LabGrade]


def students(directory: str) -> list[str]:
    """The names of the folders in a directory, in order; hidden ones and ``__MACOSX`` are none.

    ``OSError`` if it cannot be read, or has no folders.
    """
    with os.scandir(directory) as entries:
        names = sorted(e.name for e in entries if e.is_dir() and not e.name.startswith((".", "__")))
    if not names:
        raise FileNotFoundError(errno.ENOENT, "no folders of students in it", directory)
    return names


class Grader:
    """Runs the checks of several labs at a time.  Leaving its block ends what still runs."""

    def __init__(self, limits: Limits, advance: Callable[[int], None] = lambda _: None) -> None:
        """``advance`` is called with 1 for each lab of a student that is done."""
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
        """Grade students' folders in a directory, each given when it is done, in that order."""
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
        """Run the checks from one on, in a process that is killed with all that it started.

        Ends after the last one, or with one that ended the process or had to be stopped.
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
            process.stdout.readline()  # what starting takes on a busy machine is not the student's
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
        """A process in a directory and a group of its own, which go when the block ends."""
        with tempfile.TemporaryDirectory(prefix="lsmkv-course-") as scratch:
            with self._lock:
                if not self._is_open:
                    raise RuntimeError("grading was ended")
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
    """End a process and all that it started."""
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
    """How to start a program that has no network, if that is allowed here."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return ()
    tried = subprocess.run([unshare, "-rn", "true"], capture_output=True, check=False)
    return (unshare, "-rn") if tried.returncode == 0 else ()
