"""The process in which ``lsmkv course grade`` judges one lab of one student.

It reports on stdout, a line of JSON each: the ids of the processes that run the student's code, so
that the grader can end them even if this one is gone, and the results.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sys
from dataclasses import asdict

from lsmkv.course.labs.registry import find
from lsmkv.course.running import Limits, run_checks

_PR_SET_DUMPABLE = 4


def hide() -> None:
    """Close this process's memory and pipes, below ``/proc``, to others of the same user."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # Linux alone


def main() -> None:
    """Judge what stdin describes: "lab", "path", "files", "seconds", "memory_mib"."""
    hide()
    asked = json.load(sys.stdin)
    out = os.dup(1)
    os.dup2(2, 1)

    def report(line: object) -> None:
        os.write(out, json.dumps(line).encode() + b"\n")

    limits = Limits(asked["seconds"], asked["memory_mib"])
    results = run_checks(
        find(asked["lab"]), asked["path"], limits, files=asked["files"], started=report
    )
    for result in results:
        report(asdict(result))


if __name__ == "__main__":
    main()
