"""Facts about a directory for a store: file system, supported operations, free space.

A directory that holds a store, or is in one, is only listed: the trials go to the directory above,
if that is on the same file system and no store, and are left out otherwise.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from lsmkv.engine.env.mounts import file_system_of
from lsmkv.tools.doctor.access import Access, access_of
from lsmkv.tools.doctor.trial import Trials, beside, free_bytes, open_file_limit, try_directory
from lsmkv.tools.next_step import holds_store


class Place(NamedTuple):
    """A directory for a store."""

    path: str
    """As it was given, with the user's home directory as ``~``."""
    missing: str
    """The system's reason for which it cannot be listed; empty if it can."""
    holds_store: bool
    """True if it holds a store, or is a part of one."""
    file_system: str
    """Its type; empty if it is not known."""
    tried_in: str
    """The place of the trials: ``"the directory"``, ``"the directory above"`` or ``""``."""
    trials: Trials | None
    not_tried: str
    """The system's reason for which nothing was tried; empty if that is by intent."""
    free_bytes: int | None
    open_file_limit: int | None
    access: tuple[Access, ...] = ()
    """Access to the lock files of the store that it holds."""


def place(path: str) -> Place:
    """Look at a directory, and try what a store does there."""
    missing, is_store, not_tried = "", False, ""
    try:
        is_store = holds_store(path)
    except OSError as error:
        missing = error.strerror or str(error)
    above = None if missing else beside(path)
    if above is not None and _is_listed_as_store(above):
        is_store, above = True, None
    where = None if missing else above if is_store else path
    trials: Trials | None = None
    if where is not None:
        try:
            trials = try_directory(where)
        except OSError as error:
            not_tried = error.strerror or str(error)
    tried_in = "the directory above" if is_store else "the directory"
    return Place(
        path=shortened(path),
        missing=missing,
        holds_store=is_store,
        file_system="" if missing else file_system_of(path),
        tried_in="" if trials is None else tried_in,
        trials=trials,
        not_tried=not_tried,
        free_bytes=None if missing else free_bytes(path),
        open_file_limit=open_file_limit(),
        access=() if missing or not is_store else access_of(path),
    )


def shortened(path: str) -> str:
    """A path as it was given, with the user's home directory as ``~``."""
    home = os.path.expanduser("~").rstrip(os.sep)
    if home and (path == home or path.startswith(home + os.sep)):
        return "~" + path[len(home) :]
    return path


def _is_listed_as_store(path: str) -> bool:
    try:
        return holds_store(path)
    except OSError:
        return False
