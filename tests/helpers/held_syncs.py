"""A file system in memory whose syncs wait."""

from __future__ import annotations

import threading

from hooked import HookedEnv


class HeldSyncs(HookedEnv):
    """Holds up the syncs of the log until they are let go, for half a minute at most."""

    def __init__(self) -> None:
        super().__init__(self._hold)
        self.go = threading.Event()
        self.go.set()

    def _hold(self, call: str, name: str) -> None:
        if call == "sync" and name.endswith(".log"):
            self.go.wait(30)
