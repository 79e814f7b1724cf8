"""What the tests of the engine share: a watchdog, for a lost wakeup would hang the run for good."""

from __future__ import annotations

import faulthandler
import gc
import os
from collections.abc import Iterator

import pytest

_LONGEST_TEST = 300.0  # seconds; only a hang takes that long


@pytest.fixture(scope="session")
def _real_stderr(pytestconfig: pytest.Config) -> Iterator[int]:
    """Where a traceback can be read although the run dies: past pytest's capture."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    if capture is None:
        fd = os.dup(2)
    else:
        with capture.global_and_fixture_disabled():
            fd = os.dup(2)
    yield fd
    os.close(fd)


@pytest.fixture
def signals_are_heard() -> Iterator[None]:
    """Nobody is called back by the garbage collector.

    What a signal's handler raises in such a call is swallowed by the interpreter; hypothesis, once
    imported, has itself called at every collection.
    """
    callbacks = list(gc.callbacks)
    gc.callbacks.clear()
    yield
    gc.callbacks.extend(callbacks)


@pytest.fixture(autouse=True)
def _watchdog(_real_stderr: int) -> Iterator[None]:
    """Ends a run that hangs, and shows where every thread stands."""
    faulthandler.dump_traceback_later(_LONGEST_TEST, exit=True, file=_real_stderr)
    yield
    faulthandler.cancel_dump_traceback_later()
