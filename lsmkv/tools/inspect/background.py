"""Background work: in a thread, where there are threads.

In a browser there are none.  There the work is done at once, and the question that begins it waits.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Final

HAS_THREADS: Final[bool] = sys.platform not in ("emscripten", "wasi")
"""True if this platform can start a thread."""


class Work:
    """A function that runs in a thread of this name, or has run when this is made.

    >>> done = []
    >>> work = Work(lambda: done.append("all"), "lsmkv-example")
    >>> work.join()
    >>> done
    ['all']
    """

    def __init__(self, function: Callable[[], None], name: str) -> None:
        self._thread: threading.Thread | None = None
        if HAS_THREADS:
            self._thread = threading.Thread(target=function, name=name, daemon=True)
            self._thread.start()
        else:
            function()

    def join(self) -> None:
        """Wait for its end."""
        if self._thread is not None:
            self._thread.join()
