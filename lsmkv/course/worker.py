"""The process in which ``lsmkv course grade`` runs a lab's checks: it limits itself first.

It reports when it is ready.  Then each result is one line of JSON on stdout.  The student's code
has no access to that: what it prints is dropped.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict

from lsmkv.course.labs.registry import find
from lsmkv.course.running import run_one

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

_LARGEST_FILE = 64 << 20


def limit(seconds: int, memory_mib: int) -> None:
    """Limit the processor time, memory and file sizes of this process and its children."""
    if sys.platform == "win32" or resource is None:
        return
    memory = memory_mib << 20
    for what, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, _LARGEST_FILE),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def main(arguments: list[str]) -> None:
    """Run a lab's checks.  The arguments are lab, file, the first check, and its limits."""
    slug, path, first, seconds, memory_mib = arguments
    out = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    lab = find(slug)
    checks = lab.checks[int(first) :]
    os.write(out, b"ready\n")
    limit(int(seconds) * len(checks), int(memory_mib))
    for check in checks:
        result = run_one(lab, path, check, int(seconds))
        os.write(out, json.dumps(asdict(result)).encode() + b"\n")
    os._exit(0)  # threads of the student's code must not delay the exit


if __name__ == "__main__":
    main(sys.argv[1:])
