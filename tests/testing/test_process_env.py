"""What a simulated process has of its system does what the operating system does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import sharing_systems

from lsmkv.engine.env.local import LocalEnv
from lsmkv.shared.system import shared_page, sockets
from lsmkv.shared.system.local import SHARES
from lsmkv.testing import simulate

real = pytest.mark.skipif(not SHARES, reason="this system shares no store")


@real
def test_real_pages() -> None:
    address = sharing_systems.ADDRESS % os.getpid()
    sharing_systems.pages(sockets, sockets, shared_page, shared_page, address, os.getpid())


@real
def test_real_leases(tmp_path: Path) -> None:
    one, other = (LocalEnv().open_directory(str(tmp_path)) for _ in range(2))
    sharing_systems.leases(one, other, os.getpid())


def test_those_of_a_simulation() -> None:
    report = simulate(sharing_systems.program, seed=0)
    assert report.failure is None, str(report)
