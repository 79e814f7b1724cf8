"""lsmkv.tools.bench.machine: what the figures were measured on."""

from __future__ import annotations

import sys
from pathlib import Path

from lsmkv.tools.bench.machine import machine


def test_the_machine_is_known(tmp_path: Path) -> None:
    about = machine(str(tmp_path))
    assert about["python"].endswith(".".join(map(str, sys.version_info[:3])))
    if sys.platform == "linux":
        assert about["memory_bytes"] > 1 << 20
        assert about["file_system"]
