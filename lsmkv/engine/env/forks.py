"""Registry of what a forked child must close: locks, leases and connections of its parent.

The child closes them immediately.  A fork waits while another thread opens or closes one of them,
so that each one is either noted here, or not there.
"""

from __future__ import annotations

import os
import sys
import weakref
from typing import Any, Final, Protocol

from lsmkv.engine.errors import Error
from lsmkv.engine.util.threads import new_reentrant_lock

changing: Final[Any] = new_reentrant_lock()
"""Held while such a descriptor is opened and noted, or forgotten and closed, and for nothing
that waits.  It is re-entrant, since a garbage collection may finalize another one."""


class OfParent(Protocol):
    """An object with a descriptor that belongs to this process alone."""

    def close_in_child(self) -> None:
        """Close the descriptor, and change nothing that it leads to."""
        ...


_INFORMING: Final = ("py-call-uwsgi-fork-hooks", "py-call-osafterfork")
"""Options of uWSGI, which then calls the functions of ``os.register_at_fork``."""

_noted: weakref.WeakSet[OfParent] = weakref.WeakSet()


def note(one: OfParent) -> None:
    """Let forked children close it."""
    _noted.add(one)


def noted() -> list[OfParent]:
    """Return the objects that a forked child would close now."""
    return list(_noted)


def _close_in_child() -> None:
    try:
        for one in list(_noted):
            one.close_in_child()
        _noted.clear()
    finally:
        changing._at_fork_reinit()  # uWSGI's --py-call-osafterfork calls this alone, not `before`


def refuse_unseen_forks(path: str) -> None:
    """Raise :class:`Error` in the master process of uWSGI, which forks its workers by a call of C.

    Python is not informed of such a fork, and nothing would be closed in the child: each worker
    would take itself for the owner of the store.  Not raised where an option changes that.
    """
    uwsgi: Any = sys.modules.get("uwsgi")  # a module of uWSGI, which only its processes have
    if uwsgi is None or not hasattr(uwsgi, "masterpid") or uwsgi.worker_id() or uwsgi.mule_id():
        return
    master = uwsgi.masterpid()
    forks = master == os.getpid() if master else uwsgi.numproc > 1
    if forks and not any(option in uwsgi.opt for option in _INFORMING):
        raise Error(
            f"{path}: opened before uWSGI forks its workers, of which Python is not informed: start"
            " uwsgi with --lazy-apps, or with --py-call-uwsgi-fork-hooks"
        )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=changing.acquire,
        after_in_parent=changing.release,
        after_in_child=_close_in_child,
    )
