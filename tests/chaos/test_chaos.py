"""``make chaos``, for a moment: kills, stops, reloads and deploys lose no acknowledged write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from processes import run_python

from lsmkv.shared.system.local import SHARES

pytestmark = pytest.mark.skipif(not SHARES, reason="this system shares no store")


@pytest.mark.parametrize("owner", ["worker", "process"])
def test_nothing_is_lost_and_no_read_is_stale(owner: str) -> None:
    script = Path(__file__).with_name("chaos.py")
    done = run_python(script, "--seconds", "15", "--owner", owner)
    found = dict(re.findall(r"(?m)^(\w+): (\d+)$", done.stdout))
    assert (found["lost"], found["stale"]) == ("0", "0"), done.stdout
    assert done.returncode == 0, done.stderr
    for name in ("writes", "kill"):  # a busy machine may have no time for the others
        assert int(found[name]) > 0
