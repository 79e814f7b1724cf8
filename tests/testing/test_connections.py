"""lsmkv.testing.connections do what the operating system's do: the same program runs on both, here
on those of the system, and in test_process_env.py on the simulated ones."""

from __future__ import annotations

import os

import pytest
import sharing_systems

from lsmkv.shared.system import sockets
from lsmkv.shared.system.local import SHARES


@pytest.mark.skipif(not SHARES, reason="this system shares no store")
def test_real_connections() -> None:
    sharing_systems.connections(sockets, sockets, sharing_systems.ADDRESS % os.getpid())
