"""Asks the owner of a shared store about itself, or for a handover, without joining the store.

A visitor says hello without the names that a member must agree with, since it reads nothing.  The
commands ``lsmkv owner status`` and ``lsmkv owner handover`` are the callers.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from lsmkv.engine.db.opening.directory import open_database_directory
from lsmkv.engine.env.base import Directory
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.errors import Error, LockedError, raise_typed
from lsmkv.engine.format.filenames import SHARED
from lsmkv.engine.util.signals import deferred
from lsmkv.shared.connection import OwnerGone, result_in
from lsmkv.shared.counting import Counting
from lsmkv.shared.frames import CALL, json_frame
from lsmkv.shared.handover import HANDS_OVER, STATUS, ask_for_handover
from lsmkv.shared.joined import Joined
from lsmkv.shared.lock_holder import LockState, look_at_lock
from lsmkv.shared.system.local import SHARES, place_of
from lsmkv.shared.system.system import LOCAL

_PATIENCE = 30.0
"""Seconds that an owner may take for an answer."""


class OwnerStatus(NamedTuple):
    """The status that the owner of a shared store reports."""

    pid: int
    release: str | None
    """Its release of lsmkv; None of one that cannot be asked."""
    only_owns: bool | None
    """True if that process does nothing but own the store; None of an older release."""
    members: list[int] | None
    """The process ids of the members; None of a release that cannot be asked."""


def owner_status(path: str | os.PathLike[str]) -> OwnerStatus | None:
    """Return the owner of a shared store; None if no process owns it.

    Raises :class:`NotFoundError`, :class:`LockedError` if a process has the store open that does
    not share it, and :class:`IOError`.
    """
    return _visit(os.fsdecode(path), False)


def hand_over(path: str | os.PathLike[str]) -> OwnerStatus | None:
    """Let the owner of a shared store close it: the next process that needs one takes its place, or
    starts another.

    Returns what it has said of itself before; None if there is none.  Raises :class:`Error` if it
    does not hand over, and what :func:`owner_status` raises.
    """
    return _visit(os.fsdecode(path), True)


def _visit(path: str, ends: bool) -> OwnerStatus | None:
    if not SHARES:
        raise NotImplementedError("only Linux and macOS can share a store between processes")
    try:
        with deferred, open_database_directory(LocalEnv(), path, False) as directory:
            look = look_at_lock(LocalEnv(), path)
            if look.state is LockState.NOBODY:
                return None
            if look.state is LockState.UNKNOWN:
                raise LockedError(path, look.holder)
            return _ask(directory, path, look.holder, ends)
    except OSError as error:
        raise_typed(error)


def _ask(directory: Directory, path: str, holder: int, ends: bool) -> OwnerStatus:
    file = place_of(directory).shared_file(SHARED, False)
    status = OwnerStatus(holder, None, None, None)
    joined: Joined | None = None
    try:
        head = file.read_head()
        if head is not None and head.ready:
            joined = Joined(LOCAL, file, head, {}, _PATIENCE, Counting(LOCAL))
            joined.join(file)
            status = _status_of(joined)
            if not ends or (joined.revision >= HANDS_OVER and ask_for_handover(joined, None)):
                return status
    except (ConnectionError, OwnerGone):
        pass  # it closes the store, or has just begun to open it
    except Error:
        pass  # an older release, which answers only members; or it does not answer in time
    finally:
        if joined is not None:
            joined.leave()
        file.close()
    if ends and joined is None:
        raise Error(f"{path}: process {status.pid} has just begun to own the store: ask it again")
    if ends:
        raise Error(
            f"{path}: process {status.pid} owns the store, and does not hand it over: it runs an"
            " older release, holds a named lease, follows the writes, or does not answer"
        )
    return status


def _status_of(joined: Joined) -> OwnerStatus:
    call: dict[str, Any] = {"method": STATUS, "arguments": {}}
    members: list[int] | None = None
    if joined.revision >= HANDS_OVER:
        answer = joined.ask_in_section(lambda request: json_frame(CALL, request, call))
        members = result_in(answer)["members"]
    only_owns = None if joined.revision < HANDS_OVER else not joined.owner_does_more
    return OwnerStatus(joined.owner, joined.release or None, only_owns, members)
