"""By what this system's processes share stores in directories of the local file system."""

from __future__ import annotations

import sys
from typing import Any, Final

from lsmkv.env import named_page, named_sockets, shared_page, sockets
from lsmkv.env.shared_file import SharedFile

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
