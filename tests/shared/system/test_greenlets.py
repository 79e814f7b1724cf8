"""Waits in which other greenlets of the thread go on."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from processes import run_python

from lsmkv.shared.system.greenlets import waiter
from lsmkv.shared.system.local import SHARES

pytestmark = pytest.mark.skipif(
    not SHARES or any(find_spec(name) is None for name in ("gevent", "eventlet")),
    reason="they are installed with the other requirements of the suite",
)

_GEVENT = """
import gevent.monkey
assert waiter() is None
gevent.monkey.patch_all()
import gevent
pause, spawn, join = gevent.sleep, gevent.spawn, lambda one: one.get()
def in_hub(function):
    gevent.get_hub().loop.run_callback(function)
"""
_EVENTLET = """
import eventlet
assert waiter() is None
eventlet.monkey_patch()
pause, spawn, join = eventlet.sleep, eventlet.spawn, lambda one: one.wait()
def in_hub(function):
    eventlet.hubs.get_hub().schedule_call_global(0, function)
"""
_WAITS = """
wait = waiter()
assert not wait(reading, False, 0.01)  # without any greenlet yet
os.write(writing, b"k")
assert wait(reading, False, math.inf)
os.read(reading, 1)
assert wait(writing, True, math.inf)

depths = []
def tick():
    for _ in range(5):
        depths.append(deferred._depth)
        pause(0)

def section(fd):
    with deferred, deferred:
        assert not wait(fd, False, 0.1)
        assert deferred._depth == 2
    assert deferred._depth == 0

some = [spawn(section, reading), spawn(section, os.pipe()[0]), spawn(tick)]
for one in some:
    join(one)
assert depths == [0] * 5, depths

found = []
in_hub(lambda: found.append(wait(reading, False, 0.01)))
pause(0.1)
assert found == [False], found

def undisturbed():
    with deferred, deferred.undisturbed():
        assert not wait(reading, False, 0.01)
join(spawn(undisturbed))

ended = new_lock()
ended.acquire()
def thread():
    found.append(wait(reading, False, 0.01))
    ended.release()
start_new_thread(thread, ())
ended.acquire()
assert found == [False, False], found
"""
_BEGIN = """
import math, os
from lsmkv.engine.util.signals import deferred
from lsmkv.engine.util.threads import new_lock, start_new_thread
from lsmkv.shared.system.greenlets import waiter
reading, writing = os.pipe()
"""


def test_nothing_waits_instead_where_no_library_is_loaded() -> None:
    assert waiter() is None


@pytest.mark.parametrize("library", [_GEVENT, _EVENTLET], ids=["gevent", "eventlet"])
def test_a_wait_lets_other_greenlets_go_on_where_it_can(library: str, tmp_path: Path) -> None:
    done = run_python("-W", "ignore", "-c", _BEGIN + library + _WAITS, timeout=100, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
