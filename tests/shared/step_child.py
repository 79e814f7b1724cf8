"""Owners that are killed at a chosen line of the engine, for ``test_each_step.py``.

It reads ``KIND STEP PATH`` a line, and forks a process that opens the store, says so, and is killed
at that line of what it then does:

* ``serve``: joining a member and carrying out its requests, in the owner's thread for members;
* ``close``: closing the store, which hands it over;
* ``own``: a write whose owner dies before it answers: as a member, it takes the owner's place, and
  finds out what became of the write.

With ``before`` and ``after`` the process is such an owner: it is killed before or after it writes
the next batch of a member, and answers neither.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import lsmkv
from lsmkv.shared.group_commit import GroupCommit
from lsmkv.shared.listener import Listener

_ENGINE = os.path.dirname(lsmkv.__file__) + os.sep


def killer(step: int) -> Callable[..., Any]:
    """A trace function that kills the process at so many lines of the engine."""
    left = step

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(_ENGINE):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                die()
        return trace

    return trace


def die(*_: object) -> None:
    """End as a kill at any moment ends a process."""
    os.kill(os.getpid(), signal.SIGKILL)


def live(kind: str, step: int, path: str, say: int) -> None:
    """What the forked process does."""
    kill = killer(step)
    armed = False
    if kind == "before":
        GroupCommit._commit_group = die  # type: ignore[assignment]
    elif kind == "after":
        GroupCommit._acknowledge = die  # type: ignore[assignment]
    if kind == "serve":
        turn = Listener._turn

        def traced(self: Listener) -> None:
            if armed:
                sys.settrace(kill)
            turn(self)

        Listener._turn = traced  # type: ignore[method-assign]
    db = lsmkv.SharedDB(path, create_if_missing=True)
    os.write(say, b"%d %s\n" % (os.getpid(), db.role.encode()))
    if kind == "serve":
        armed = True
        db._part.listener._alarm.ring()  # type: ignore[union-attr]
    if kind in ("serve", "before", "after"):
        while True:
            signal.pause()
    signal.sigwait([signal.SIGUSR1])
    sys.settrace(kill)
    if kind == "own":
        db.put(b"own", b"%d" % step)
        sys.settrace(None)
    db.close()
    sys.settrace(None)
    os.write(say, b"survived\n")


def main() -> None:
    """Fork one for each line."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])  # until it is waited for
    while line := sys.stdin.readline():
        kind, step, path = line.split()
        if os.fork() == 0:
            try:
                live(kind, int(step), path, sys.stdout.fileno())
            finally:
                os._exit(1)


if __name__ == "__main__":
    main()
