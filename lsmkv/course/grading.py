"""Grades a folder of submissions: each lab of each student is judged in a separate process.

The limits stop an endless loop or an endless list.  They are not a sandbox: the code runs as the
teacher, and can read and write what the teacher can.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import datetime

from lsmkv.course.lab import Lab
from lsmkv.course.labs.registry import LABS
from lsmkv.course.owned import Own, OwnWork, find_own, look_at, own_work
from lsmkv.course.running import MOST_WAITS, PASSED, STOPPED, Limits, Result
from lsmkv.course.similarity import Fingerprint, alike, fingerprint, imported_beyond
from lsmkv.course.submissions import find_files, modules

MISSING = "missing"
"""An outcome in addition to those of :mod:`lsmkv.course.running`: there is no file."""

_JUDGED = 300
"""Seconds that the judge itself may take for a check, with a great margin."""


@dataclass(frozen=True)
class LabGrade:
    """The result of one lab of one student."""

    lab: int
    title: str
    file: str
    passed: int
    points: int
    maximum: int
    """The points of all checks: 1 for each, and 2 for the last one."""
    checks: list[Result]
    own: OwnWork | None = None
    """The work with the student's own data; None if there are none."""


@dataclass(frozen=True)
class Submission:
    """The results of a student's folder."""

    name: str
    labs: list[LabGrade]
    look_at: list[str] = field(default_factory=list)
    """Remarks for the teacher: how files were found, what they import, which others they resemble,
    which were late, whose data they have."""
    student: str | None = None
    """The name from which the student's own data follow."""


def owns_of(directory: str, names: Sequence[str]) -> tuple[dict[str, Own], dict[str, list[str]]]:
    """Return the owner of the data in each folder of a directory, and remarks on damaged ones."""
    owns: dict[str, Own] = {}
    damaged: dict[str, list[str]] = {}
    for name in names:
        try:
            own = find_own(os.path.abspath(os.path.join(directory, name)))
        except ValueError:
            damaged[name] = ["student.json is damaged"]
            continue
        if own is not None:
            owns[name] = own
    return owns, damaged


def points_of(checks: Sequence[Result]) -> int:
    """The points of a lab's results; the last check, in the real engine, counts double."""
    points = sum(result.outcome == PASSED for result in checks)
    return points + (bool(checks) and checks[-1].outcome == PASSED)


class Grader:
    """Runs the checks of several labs at a time.  The end of its block ends what still runs."""

    def __init__(
        self,
        limits: Limits,
        advance: Callable[[int], None] = lambda _: None,
        labs: Sequence[Lab] = LABS,
        due: datetime | None = None,
    ) -> None:
        """``advance`` is called with 1 after each lab of a student.  Files that were changed after
        ``due`` are late."""
        self._limits = limits
        self._advance = advance
        self._labs = labs
        self._due = due
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
                _kill(process.pid)
        self._pool.shutdown(cancel_futures=True)

    def grade(self, directory: str, names: list[str]) -> Iterator[Submission]:
        """Grade students' folders in a directory, and yield each in order when it is done."""
        found = {name: find_files(os.path.abspath(os.path.join(directory, name))) for name in names}
        owns, damaged = owns_of(directory, names)
        graded = {
            name: [
                self._pool.submit(self.grade_lab, lab, files, owns.get(name)) for lab in self._labs
            ]
            for name, (files, _) in found.items()
        }
        looks = look_at(owns, self._labs)
        by_themselves = self._look_at({name: files for name, (files, _) in found.items()})
        for name, labs in graded.items():
            said = [*damaged.get(name, ()), *looks.get(name, ()), *by_themselves[name]]
            student = owns[name].owner.student if name in owns else None
            done = [lab.result() for lab in labs]
            yield Submission(name, done, found[name].warnings + said, student)

    def _look_at(self, files: Mapping[str, Mapping[str, str]]) -> dict[str, list[str]]:
        """Return remarks on the files of each student."""
        said: dict[str, list[str]] = {name: [] for name in files}
        for lab in self._labs:
            prints: dict[str, Fingerprint] = {}
            for name, paths in files.items():
                path = paths.get(lab.file_name)
                if path is None:
                    continue
                words = [f"imports {module}" for module in imported_beyond(path, lab.starter())]
                written = datetime.fromtimestamp(os.stat(path).st_mtime).astimezone()
                if self._due is not None and written > self._due:
                    words.append(f"is late ({written:%Y-%m-%d %H:%M})")
                said[name] += [f"lab {lab.number} {word}" for word in words]
                prints[name] = fingerprint(path, lab.starter())
            for name, others in alike(prints).items():
                said[name].append(f"lab {lab.number} is like {_in_words(others)}")
        return said

    def grade_lab(self, lab: Lab, files: Mapping[str, str], own: Own | None = None) -> LabGrade:
        """All checks of a lab on a student's files: paths, by the labs' own names."""
        path = files.get(lab.file_name)
        if path is None:
            message = f"there is no file {lab.file_name}"
            results = [Result(check.name, MISSING, message) for check in lab.checks]
        else:
            results = self._judged(lab, path, files)
        passed = sum(result.outcome == PASSED for result in results)
        self._advance(1)
        return LabGrade(
            lab.number,
            lab.title,
            lab.file_name,
            passed,
            points_of(results),
            len(lab.checks) + 1,
            results,
            None if own is None else own_work(own, lab),
        )

    def _judged(self, lab: Lab, path: str, files: Mapping[str, str]) -> list[Result]:
        """Judge a lab in a process.  If that is ended, so are all checks that are left."""
        asked = {"lab": lab.slug, "path": path, "files": modules(dict(files))}
        results: list[Result] = []
        with self._started({**asked, **asdict(self._limits)}) as (process, pids):
            assert process.stdout is not None
            while len(results) < len(lab.checks):
                most = self._limits.seconds * MOST_WAITS + _JUDGED
                watch = threading.Timer(most, _kill, [process.pid])
                watch.start()
                line = process.stdout.readline()
                watch.cancel()
                try:
                    said = json.loads(line)
                    if isinstance(said, int):
                        pids.append(said)
                    else:
                        results.append(Result(**said))
                except (ValueError, TypeError):
                    break
        why = "it was stopped since the process that judges it was ended"
        return results + [Result(check.name, STOPPED, why) for check in lab.checks[len(results) :]]

    @contextlib.contextmanager
    def _started(
        self, asked: Mapping[str, object]
    ) -> Iterator[tuple[subprocess.Popen[bytes], list[int]]]:
        """A process in its own temporary directory and process group, both removed at the end of
        the block, and the list of other groups to end with it."""
        pids: list[int] = []
        with tempfile.TemporaryDirectory(
            prefix="lsmkv-course-", ignore_cleanup_errors=True
        ) as scratch:
            with self._lock:
                if not self._is_open:
                    raise RuntimeError("grading was stopped")
                process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "lsmkv.course.worker"],
                    cwd=scratch,
                    env=os.environ | {"TMPDIR": scratch},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
                self._running.add(process)
            with process:
                try:
                    assert process.stdin is not None
                    with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
                        pipe.write(json.dumps(asked).encode())
                    yield process, pids
                finally:
                    for pid in (*pids, process.pid):
                        _kill(pid)
                    with self._lock:
                        self._running.discard(process)


def _kill(pid: int) -> None:
    """Kill a process and everything that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            os.kill(pid, signal.SIGTERM)
        else:
            os.killpg(pid, signal.SIGKILL)


def _in_words(others: Iterable[tuple[str, float]]) -> str:
    return ", ".join(f"{name}'s ({share:.0%})" for name, share in others)
