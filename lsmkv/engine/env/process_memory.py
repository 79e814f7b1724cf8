"""The memory of this process and of the machine, as the system reports it."""

from __future__ import annotations

import os
import sys
from typing import Any

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

system: Any = os
"""``os``, with what not every system has."""


def resident() -> int:
    """The bytes of this process that are in memory; the peak where the system reports only that,
    and 0 where it reports nothing."""
    try:
        with open("/proc/self/statm", "rb") as file:
            pages = int(file.read().split()[1])
            size: int = pages * system.sysconf("SC_PAGE_SIZE")
            return size
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
        size: int = system.sysconf("SC_PAGE_SIZE") * system.sysconf("SC_PHYS_PAGES")
        return size
    except (AttributeError, OSError, ValueError):
        return 0
