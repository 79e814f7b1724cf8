"""Starts a process that ends with its starter, and the connection between both: :class:`Attached`.

It is started as one that outlives its starter (``detached.py``), but is a child.  It may be
hostile: what runs there may have no descriptor but the connection, and can be bounded.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
from importlib import import_module
from io import BufferedReader
from typing import Any, Final, Never

from lsmkv.shared.system.detached import OTHER, above_the_first, reap, signals, spawn

_LOOK_EVERY: Final = 500
"""Milliseconds after which the process checks whether its parent has ended."""
_BASE: Final = 192 * 2**20
"""Bytes of address space that an interpreter with two threads takes, and some room."""
selecting: Any = select
"""``select``, with what not every system has."""


class Attached:
    """A process that runs ``main`` of a module."""

    def __init__(self, module: str, name: str) -> None:
        """Start it.  ``name`` is for people who list processes.

        Raises ``OSError``, and ``NotImplementedError`` where there is no interpreter to start.
        """
        self.connection, theirs = socket.socketpair()
        try:
            descriptor = above_the_first(theirs.fileno())
            try:
                ends = (descriptor, descriptor)
                self.program, self.pid = spawn(module, name, str(os.getpid()), ends)
            finally:
                os.close(descriptor)
        except BaseException:
            self.connection.close()
            raise
        finally:
            theirs.close()

    def end(self) -> tuple[int, str]:
        """Kill it, and wait for its end.

        Returns its exit status, negative for a signal, and what that means; 0 and an empty text if
        it was killed here, and on a second call.
        """
        pid, self.pid = self.pid, 0
        if not pid:
            return 0, ""
        try:
            os.kill(pid, signals.SIGKILL)  # without effect if it is ending by itself
        except ProcessLookupError:
            pass  # this program waits for all of its children itself
        self.connection.close()
        status = reap(pid)
        if status is None or status == -signals.SIGKILL:
            return 0, ""
        if status == OTHER:
            return status, f"{self.program} is a Python of another version"
        return status, signal.Signals(-status).name if status < 0 else f"exit status {status}"


# In the process that was started


def connection() -> tuple[socket.socket, BufferedReader]:
    """The connection to the starter, to write to and to read from.

    With its end this process ends, whatever it is doing: a thread has to get the interpreter's lock
    for that, which long calls of C must release.
    """
    taken = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(taken.fileno(), os.getppid()), daemon=True).start()
    # Not the socket's own file: a call of the script takes 28 us with this one, and 42 with that.
    return taken, open(taken.fileno(), "rb", closefd=False)


def _end_with(descriptor: int, parent: int) -> None:
    poll = selecting.poll()
    poll.register(descriptor, 0)  # the end of the connection alone
    # A fork of the parent may hold the other end open.
    while not poll.poll(_LOOK_EVERY) and os.getppid() == parent:
        pass
    os._exit(0)


def leave(status: int) -> Never:
    """End this process at once, with the connection, so that the starter sees the status."""
    os._exit(status)


def give_up(memory: int) -> None:
    """Give up what this process no longer needs: files, processes, and memory beyond so many
    bytes.  Systems other than Linux do not bound the memory."""
    resource: Any = import_module("resource")
    most = memory + _BASE
    for name, number in (
        ("RLIMIT_AS", most),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_FSIZE", 0),
        ("RLIMIT_NPROC", 0),
        ("RLIMIT_NOFILE", 1),  # as many as the thread polls
    ):
        resource.setrlimit(getattr(resource, name), (number, number))
