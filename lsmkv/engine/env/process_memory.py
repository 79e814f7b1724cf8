"""The memory of this process and of the machine, as the system reports it."""

from __future__ import annotations

import os
import sys

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


def resident() -> int:
    """The bytes of this process that are in memory; the peak where the system reports only that,
    and 0 where it reports nothing."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return peak()


def peak() -> int:
    """The most bytes that this process had in memory; 0 where the system does not report it."""
    if sys.platform == "win32":
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most * (1 if sys.platform == "darwin" else 1024)


def installed() -> int:
    """The bytes of memory of the machine; 0 where the system does not report them."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0
