"""Tasks that kill the process that they are given to.

A spawned process imports them by name, and so they stand where each process finds them: a test
module is not on its path.
"""

from __future__ import annotations

import os
import signal


def die(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def pairs_unless_killed(first: int, marker: str, times: int) -> list[tuple[bytes, bytes]]:
    """Pairs; the first calls kill the process that they are made in."""
    for number in range(times):
        try:
            os.close(os.open(f"{marker}-{number}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        os.kill(os.getpid(), signal.SIGKILL)
    return [(b"%06d" % number, b"v") for number in range(first, first + 100)]
