"""What a forked child must not keep: descriptors of locks, leases and connections of its parent.

The child closes them at once.  A fork waits while another thread opens or closes one of them, so
that each one is either noted here, or not there.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, Final, Protocol

from lsmkv.engine.util.threads import new_reentrant_lock

changing: Final[Any] = new_reentrant_lock()
"""Held while such a descriptor is opened and noted, or forgotten and closed, and for nothing
that waits.  It is re-entrant: a garbage collection meanwhile may finalize another one."""


class OfParent(Protocol):
    """What has a descriptor of this process alone."""

    def close_in_child(self) -> None:
        """Close the descriptor, and change nothing that it leads to."""
        ...


_noted: weakref.WeakSet[OfParent] = weakref.WeakSet()


def note(one: OfParent) -> None:
    """Let forked children close it."""
    _noted.add(one)


def noted() -> list[OfParent]:
    """What forked children would close now."""
    return list(_noted)


def _close_in_child() -> None:
    try:
        for one in list(_noted):
            one.close_in_child()
        _noted.clear()
    finally:
        changing.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=changing.acquire,
        after_in_parent=changing.release,
        after_in_child=_close_in_child,
    )
