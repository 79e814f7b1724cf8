"""By what this system's processes share stores in directories of the local file system."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Final

from lsmkv.env import forks, named_page, named_sockets, shared_page, sockets
from lsmkv.env.shared_file import SharedFile
from lsmkv.env.shared_page import fcntl
from lsmkv.util.signals import deferred

_NAMED: bool = not shared_page.HAS_PAGES and sys.platform == "darwin" and named_page.HAS_NAMED_PAGES
SHARES: Final[bool] = shared_page.HAS_PAGES or _NAMED
"""Whether they can."""
PAGES: Final[Any] = named_page if _NAMED else shared_page
SOCKETS: Final[Any] = named_sockets if _NAMED else sockets


def forget(file: SharedFile) -> None:
    """Free what a killed owner has left outside of the directory.  Caller holds ``LOCK``."""
    last = file.read_head()
    if last is not None:
        PAGES.end_page([], last.token)
        SOCKETS.forget(last.token, last.epoch)


class Claim:
    """The claim to start an owner: a lock on the store's directory, by a descriptor of its own.

    A forked child closes it at once: it would keep the claim of a parent that is killed.
    """

    def __init__(self, open_directory: Callable[[], int]) -> None:
        """``BlockingIOError`` if another process has it."""
        with deferred, forks.changing:
            self._fd = open_directory()
            forks.note(self)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise
        except OSError:
            pass  # a file system without such locks

    def close(self) -> None:
        """End it, also in children that were forked meanwhile without this module's knowledge."""
        with deferred, forks.changing:
            fd, self._fd = self._fd, -1
            if fd >= 0:
                try:
                    fcntl.flock(fd, fcntl.LOCK_UN)
                except OSError:
                    pass
                os.close(fd)

    def close_in_child(self) -> None:
        """In a forked child: the claim stays the parent's."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
