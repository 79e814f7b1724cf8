"""No interrupt leaves a descriptor, a lock, a lease, a map or a thread behind.

Interpreted, signals come before lines of the call; compiled, where there are no lines, at random
moments.  ``make test-storms`` takes many of both.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from storms import STORMS, Storm, run_at_lines, run_at_random

import lsmkv

INTERRUPTS = int(os.environ.get("LSMKV_STORM_INTERRUPTS", "10"))
"""For each storm, which they seed too."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counted in /proc")


@pytest.mark.parametrize("storm", STORMS, ids=[storm.name for storm in STORMS])
def test_an_interrupted_call_leaves_nothing_held(storm: Storm, tmp_path: Path) -> None:
    run = run_at_random if lsmkv.COMPILED else run_at_lines
    counts = run(storm, tmp_path, INTERRUPTS, INTERRUPTS)
    assert lsmkv.COMPILED or counts.interrupts > 0
    assert not counts.places, f"{counts}: {counts.places}"
    assert not counts.refused


@pytest.mark.parametrize("storm", STORMS, ids=[storm.name for storm in STORMS])
def test_an_interrupt_at_a_random_moment_leaves_nothing_held(storm: Storm, tmp_path: Path) -> None:
    counts = run_at_random(storm, tmp_path, INTERRUPTS, INTERRUPTS)
    assert not counts.places, str(counts)
    assert not counts.refused
