"""A file system in memory whose syncs wait."""

from __future__ import annotations

import threading
from typing import Any

from lsmkv import MemoryEnv


class HeldSyncs(MemoryEnv):
    """Holds up the syncs of the log until they are let go, for half a minute at most."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.go.set()

    def open_directory(self, path: str, create: bool = False) -> Any:
        directory: Any = super().open_directory(path, create)
        inner = directory.create

        def made(name: str) -> Any:
            file = inner(name)
            if name.endswith(".log"):
                sync = file.sync
                file.sync = lambda: (self.go.wait(30), sync())
            return file

        directory.create = made
        return directory
