"""The system facilities by which processes share a store: :class:`System`."""

from __future__ import annotations

from typing import Any, Final

from lsmkv.engine.env.base import Env
from lsmkv.engine.env.local import LocalEnv
from lsmkv.shared.system.local import PAGES, SOCKETS
from lsmkv.shared.system.sharing import SharingEnv


class System:
    """The file system, connections and shared memory of one process."""

    def __init__(self, env: Env, connections: Any, pages: Any) -> None:
        self.env = env
        """Its directories are :class:`~lsmkv.shared.system.sharing.SharingDirectory`."""
        self.sockets: Any = connections
        """Has what :mod:`lsmkv.shared.system.sockets` has."""
        self.pages: Any = pages
        """Has what :mod:`lsmkv.shared.system.shared_page` has."""


LOCAL: Final = System(LocalEnv(), SOCKETS, PAGES)
"""The operating system's."""


def system_of(env: object) -> System:
    """Return an env's system, or the operating system for None; ``ValueError`` for others."""
    if env is None:
        return LOCAL
    if not isinstance(env, SharingEnv):
        raise ValueError("a shared store has no option env")
    return System(env, env.sockets, env.pages)
