"""Grades a folder of submissions: each check in a process group of its own, with limits.

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
from dataclasses import dataclass

from lsmkv.tools.course.lab import Check, Lab
from lsmkv.tools.course.labs.registry import LABS
from lsmkv.tools.course.running import PASSED, Result

STOPPED = "stopped"
MISSING = "missing"
"""Outcomes beside those of :mod:`lsmkv.tools.course.running`."""


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


def grade_directory(directory: str, limits: Limits) -> list[Submission]:
    """Grade each folder in ``directory``, in the order of their names.

    ``OSError`` if it cannot be read, or has no folders.
    """
    with os.scandir(directory) as entries:
        names = sorted(e.name for e in entries if e.is_dir() and not e.name.startswith("."))
    if not names:
        raise FileNotFoundError(errno.ENOENT, "no folders of students in it", directory)
    return [
        Submission(name, [grade_lab(lab, os.path.join(directory, name), limits) for lab in LABS])
        for name in names
    ]


def grade_lab(lab: Lab, folder: str, limits: Limits) -> LabGrade:
    """All checks of a lab on the file in a student's folder."""
    path = os.path.abspath(os.path.join(folder, lab.file_name))
    if os.path.isfile(path):
        results = [run_limited(lab, path, check, limits) for check in lab.checks]
    else:
        message = f"there is no file {lab.file_name}"
        results = [Result(check.name, MISSING, message) for check in lab.checks]
    passed = sum(result.outcome == PASSED for result in results)
    return LabGrade(lab.number, lab.title, lab.file_name, passed, results)


def run_limited(lab: Lab, path: str, check: Check, limits: Limits) -> Result:
    """One check in a process group of its own, which is killed when its time is over."""
    number = str(lab.checks.index(check))
    command = [
        *without_network(),
        *(sys.executable, "-P", "-m", "lsmkv.tools.course.worker"),
        *(lab.slug, path, number, str(limits.seconds), str(limits.memory_mib)),
    ]
    with tempfile.TemporaryDirectory(prefix="lsmkv-course-") as scratch:
        process = subprocess.Popen(
            command,
            cwd=scratch,
            env=os.environ | {"TMPDIR": scratch},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            out, _ = process.communicate(timeout=limits.seconds + 5)
        except subprocess.TimeoutExpired:
            out = b""
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if sys.platform == "win32":
                    process.kill()
                else:
                    os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    try:
        return Result(**json.loads(out.splitlines()[-1]))
    except (ValueError, TypeError, IndexError):
        limit = f"{limits.seconds} s or {limits.memory_mib} MiB"
        return Result(check.name, STOPPED, f"it was stopped: it took more than {limit}, or crashed")


@functools.cache
def without_network() -> tuple[str, ...]:
    """How to start a program that has no network, if that is allowed here."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return ()
    tried = subprocess.run([unshare, "-rn", "true"], capture_output=True, check=False)
    return (unshare, "-rn") if tried.returncode == 0 else ()
