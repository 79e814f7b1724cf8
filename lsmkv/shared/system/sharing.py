"""Interface to the facilities with which processes share a store; simulations implement it.

For directories of the local file system these are :mod:`lsmkv.shared.system.sockets` and
:mod:`lsmkv.shared.system.shared_page` on Linux, :mod:`lsmkv.shared.system.named_sockets` and
:mod:`lsmkv.shared.system.named_page` on macOS.  A :class:`SharingEnv` has others instead: the
processes of a simulation share stores through it (:mod:`lsmkv.testing.processes`).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from lsmkv.engine.env.base import Env, FileLock
from lsmkv.shared.system.shared_file import SharedFile


class SharingPlace:
    """The facilities of a directory whose store processes share, besides its files."""

    @abstractmethod
    def shared_file(self, name: str, create: bool) -> SharedFile:
        """The file by which they do; see :mod:`lsmkv.shared.system.shared_file`.

        It can be written to with ``create``, that is, by the owner.
        """

    @abstractmethod
    def lock_as_owner(self, name: str) -> FileLock:
        """Take the store's lock, except for the members' part: see
        :mod:`lsmkv.engine.env.lock`.  :class:`lsmkv.errors.LockedError` if it is held."""

    @abstractmethod
    def lock_as_member(self, name: str) -> FileLock | None:
        """Take a member's part of the lock; None if others have locked all of it, or there is no
        such file.

        As long as it is held, only processes that share the store can own it.
        """

    @abstractmethod
    def is_lock_shared(self, name: str) -> bool:
        """Return True if there is such a lock, and no process has all of it."""

    @abstractmethod
    def is_writable(self) -> bool:
        """Return True if this process may create files here."""

    @abstractmethod
    def claim_start(self) -> bool:
        """Claim to be the one that starts an owner of the store; False if another process does.

        The claim ends with :meth:`end_start`, or with the process.  It excludes no process from the
        store: it saves all processes except one a useless start.
        """

    @abstractmethod
    def end_start(self) -> None:
        """End the claim, in this process and in those that were forked since."""


class SharingEnv(Env):
    """A file system other than the local one in which processes share stores, for one of them.

    Its directories are also :class:`SharingPlace`.
    """

    sockets: Any
    """Has what :mod:`lsmkv.shared.system.sockets` has."""
    pages: Any
    """Has what :mod:`lsmkv.shared.system.shared_page` has: ``SharedPage make_page end_page
    make_memory map_memory close_descriptor``."""
