"""Access to the lock files of a store: the users that can lock it, or share it.

A process that can open ``LOCK`` can lock it, and so keep others out of the store; one that can open
``SHARED`` can keep its files from being removed, or, if it is of the owner's user, join.  lsmkv
makes both with mode 0600.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from typing import NamedTuple

from lsmkv.tools.doctor.engine import Advice

_LOCK, _SHARED = "LOCK", "SHARED"
_TIGHTEN = "Open the store once with this release, as its user; or run: chmod 600"


class Access(NamedTuple):
    """Permissions of a file that processes lock."""

    name: str
    mode: int
    """The bits of its permissions."""
    links: int
    """The number of its names (hard links)."""
    user: int
    """The id of the user that it belongs to."""

    @property
    def who(self) -> str:
        """The users that can lock it, in words."""
        if self.mode & 0o007:
            return "all users"
        return f"user {self.user} and the group" if self.mode & 0o070 else f"user {self.user}"

    def __str__(self) -> str:
        links = f", {self.links} names" if self.links > 1 else ""
        return f"{self.name} {self.mode:04o}{links}: {self.who}"


def access_of(path: str) -> tuple[Access, ...]:
    """The files of the store in ``path`` that processes lock; none on Windows, which has no such
    modes."""
    found: list[Access] = []
    for name in (_LOCK, _SHARED) if sys.platform != "win32" else ():
        try:
            status = os.lstat(os.path.join(path, name))
        except OSError:
            continue
        mode = stat.S_IMODE(status.st_mode)
        found.append(Access(name, mode, status.st_nlink, status.st_uid))
    return tuple(found)


def remarks_on_access(files: tuple[Access, ...]) -> Iterator[Advice]:
    """Yield advice on access by other users, and on files that are refused."""
    for file in files:
        if file.mode & 0o077:
            yield Advice(
                f"{file.name} has mode {file.mode:04o}: {file.who} can keep others out of the store"
                if file.name == _LOCK
                else f"{file.name} has mode {file.mode:04o}: {file.who} can keep its files",
                f"{_TIGHTEN} {file.name}. A group that may write keeps its access.",
            )
        if file.links > 1:
            refused = "no process shares the store" if file.name == _SHARED else "it is not written"
            yield Advice(
                f"{file.name} has {file.links} names (hard links): {refused}",
                "Remove the other names, or copy the file.",
            )
