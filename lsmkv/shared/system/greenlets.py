"""Waits in which other greenlets of the thread go on: :func:`waiter`, for gevent and eventlet.

A member's write waits for the owner's answer.  Where one of the two libraries has replaced the
module ``socket``, the thread serves other greenlets meanwhile, by what that library has for it.
It waits with the whole thread for the first millisecond, in which the answer comes as a rule.

No greenlet goes on in a section in which signals wait (``engine/util/signals.py``): the section is
left for the wait, and begins again after it.  A thread that has no hub has no other greenlets.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Final

from lsmkv.engine.util.signals import deferred
from lsmkv.engine.util.threads import second_instance

try:
    _select: Any = second_instance("select")
except (AttributeError, ImportError):  # an interpreter without it, which shares no store
    _select = None

Waiter = Callable[[int, bool, float], bool]
"""Waits until a descriptor can be read, or written to, for so many seconds at most.
Returns True if it can."""

_BRIEF: Final = 0.001
"""Seconds for which the whole thread waits."""


class _TimeIsOver(Exception):
    """The wait has ended without a result."""


def waiter() -> Waiter | None:
    """Return the function that waits; None if no library has replaced the module ``socket``."""
    gevent = sys.modules.get("gevent.monkey")
    if gevent is not None and gevent.is_module_patched("socket"):
        return partial(_wait, _switch_in_gevent)
    eventlet = sys.modules.get("eventlet.patcher")
    if eventlet is not None and eventlet.is_monkey_patched("socket"):
        return partial(_wait, _switch_in_eventlet)
    return None


def _wait(
    switch: Callable[[int, bool, float | None], bool], fd: int, writes: bool, seconds: float
) -> bool:
    if _poll(fd, writes, min(seconds, _BRIEF)):
        return True
    if deferred.is_undisturbed:
        return _poll(fd, writes, seconds)
    left = None if seconds == math.inf else max(0.0, seconds - _BRIEF)
    try:
        if deferred.interruptible(partial(switch, fd, writes, left)):
            return True
    except _TimeIsOver:
        return False
    return _poll(fd, writes, seconds)


def _poll(fd: int, writes: bool, seconds: float) -> bool:
    """Wait with the whole thread."""
    poll = _select.poll()
    poll.register(fd, _select.POLLOUT if writes else _select.POLLIN)
    return bool(poll.poll(None if seconds == math.inf else math.ceil(1000 * seconds)))


def _switch_in_gevent(fd: int, writes: bool, seconds: float | None) -> bool:
    """Let other greenlets run until the descriptor is ready; False if this one cannot wait."""
    gevent: Any = import_module("gevent")
    hub = import_module("gevent._hub_local").get_hub_if_exists()
    if hub is None or gevent.getcurrent() is hub:
        return False
    sockets: Any = import_module("gevent.socket")
    wait = sockets.wait_write if writes else sockets.wait_read
    wait(fd, timeout=seconds, timeout_exc=_TimeIsOver())
    return True


def _switch_in_eventlet(fd: int, writes: bool, seconds: float | None) -> bool:
    """Let other greenlets run until the descriptor is ready; False if this one cannot wait."""
    hubs: Any = import_module("eventlet.hubs")
    hub = getattr(hubs._threadlocal, "hub", None)
    if hub is None or hub.greenlet is import_module("greenlet").getcurrent():
        return False
    hubs.trampoline(fd, read=not writes, write=writes, timeout=seconds, timeout_exc=_TimeIsOver)
    return True
