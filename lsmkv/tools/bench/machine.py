"""Describes the machine on which the figures were measured."""

from __future__ import annotations

import os
import platform
from typing import Any

from lsmkv.engine.env.mounts import file_system_of


def machine(directory: str) -> dict[str, Any]:
    """Processor, memory, system, interpreter, and the file system of ``directory``."""
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": _memory(),
        "file_system": file_system_of(directory) or None,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def _processor() -> str | None:
    for line in _lines("/proc/cpuinfo"):
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or None


def _memory() -> int | None:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemTotal:"):
            return 1024 * int(line.split()[1])
    return None


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            return list(lines)
    except OSError:
        return []
