"""The process that ``lsmkv course grade`` runs one check in: it limits itself, then runs it.

The result is one line of JSON on stdout, which the student's code does not have: what that prints
goes nowhere.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict

from lsmkv.tools.course.labs.registry import find
from lsmkv.tools.course.running import run_one

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

_LARGEST_FILE = 64 << 20


def limit(seconds: int, memory_mib: int) -> None:
    """Limit this process and its children in processor time, memory, and the size of files."""
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
    """Run the check that the arguments name: lab, file, number of the check, and the limits."""
    slug, path, number, seconds, memory_mib = arguments
    out = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    lab = find(slug)
    limit(int(seconds), int(memory_mib))
    result = run_one(lab, path, lab.checks[int(number)])
    os.write(out, json.dumps(asdict(result)).encode() + b"\n")
    os._exit(0)  # threads that the student's code started do not hold it up


if __name__ == "__main__":
    main(sys.argv[1:])
