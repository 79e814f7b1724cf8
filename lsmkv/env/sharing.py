"""What processes that share a store need of their system besides files.

For directories of the local file system these are :mod:`lsmkv.env.sockets` and
:mod:`lsmkv.env.shared_page` on Linux, :mod:`lsmkv.env.named_sockets` and
:mod:`lsmkv.env.named_page` on macOS.  A :class:`SharingEnv` has others instead: the processes of a
simulation share stores through it (:mod:`lsmkv.testing.processes`).
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

    def forget_sharing(self, name: str) -> None:
        """Free what a killed owner has left outside of the directory; ``name`` is that of the file
        by which the store was shared.  Caller holds ``LOCK``."""

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
    """Has what :mod:`lsmkv.env.shared_page` has: ``SharedPage make_page end_page
    close_descriptor``."""
