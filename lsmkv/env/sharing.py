"""What processes that share a store need of their system besides files.

On Linux these are :mod:`lsmkv.env.sockets` and :mod:`lsmkv.env.shared_page`, for directories of the
local file system.  A :class:`SharingEnv` has others instead: the processes of a simulation share
stores through it (:mod:`lsmkv.testing.processes`).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from lsmkv.env.base import Directory, Env
from lsmkv.env.shared_file import SharedFile


class SharingDirectory(Directory):
    """A directory whose store processes can share."""

    @abstractmethod
    def shared_file(self, name: str, create: bool) -> SharedFile:
        """The file by which they do; see :mod:`lsmkv.env.shared_file`.

        It can be written to with ``create``, that is, by the owner.
        """

    @abstractmethod
    def is_writable(self) -> bool:
        """Whether this process may make files here."""

    @abstractmethod
    def claim_start(self) -> bool:
        """Claim to be the one that starts an owner of the store; False if another process does.

        The claim ends with :meth:`end_start`, with :meth:`close`, or with the process.  It excludes
        nobody from the store: it saves all but one of many a start that is of no use.
        """

    @abstractmethod
    def end_start(self) -> None:
        """End the claim, in this process and in those that were forked meanwhile."""


class SharingEnv(Env):
    """A file system other than the local one in which processes share stores, for one of them.

    Its directories are :class:`SharingDirectory`.
    """

    sockets: Any
    """Has what :mod:`lsmkv.env.sockets` has."""
    pages: Any
    """Has what :mod:`lsmkv.env.shared_page` has: ``SharedPage make_page find_page
    close_descriptor``."""
