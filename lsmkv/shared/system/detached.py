"""Starts a process that outlives its starter: :class:`Detached`; and :func:`spawn`, one that does
not.

It runs ``main`` of a module of this package, in an interpreter of the same kind that reads neither
``PYTHON*`` variables nor ``site``; a frozen program starts itself (``adapters/pyinstaller``).  It
has its own session, so that no key of a terminal
reaches it; no descriptor except two pipes, whatever its starter lets others inherit; and ``/`` as
its working directory.  The request goes in through one pipe, and one answer comes out of the other.

Its parent is the system, not the starter: a process in between starts it and ends at once, so that
it is never a zombie of a starter that does not wait.  This also works where gevent or eventlet have
replaced the functions of ``os`` and ``subprocess``: it uses the interpreter's own.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
from importlib import import_module
from typing import Any

from lsmkv.engine.env.process import HOME, interpreter
from lsmkv.engine.util.threads import pause
from lsmkv.shared.system.sockets import polling

try:
    posix: Any = import_module("posix")
    fcntl: Any = import_module("fcntl")
except ImportError:  # Windows
    posix = fcntl = None

linux: Any = os
"""``os``, with what only Linux has."""
signals: Any = signal
"""``signal``, with what only some systems have."""

_CHUNK = 65536
_SIZE = struct.Struct("<Q")
_ENDS = ("SIGTERM", "SIGHUP", "SIGINT")
OTHER = 64
"""The status with which a Python of another version ends: it may be unable to load the modules."""

_FLAG = "--lsmkv-owner"
"""Tells a frozen program not to run its own script."""
# A shell is the process in between: the parent of a frozen program removes its unpacked files at
# its end.  A command in the background of a shell would read /dev/null.
_IN_BACKGROUND = 'exec 3<&0; "$0" "$@" <&3 3<&- &'

# It is imported from where this process has it, whatever else its path leads to.
# For a child the packages above its module's own are not run: those of the server would take ten
# times as long, and 37 MB instead of 22.
_BOOT = """
import os, sys, types
_, _, module, kind, bond, root, *path = sys.argv[1:]
if kind != sys.implementation.cache_tag + getattr(sys, "abiflags", ""):
    os._exit(64)
for fd in os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"):
    if int(fd) > 2:
        try:
            os.close(int(fd))
        except OSError:
            pass
if bond == "detached":
    if os.fork():
        os._exit(0)
    os.setsid()
else:
    names = module.split(".")[:-2]
    for count in range(len(names)):
        package = types.ModuleType(".".join(names[:count + 1]))
        package.__path__ = [os.path.join(root, *names[:count + 1])]
        sys.modules[package.__name__] = package
    path.append(root)  # for the extension that compiled modules share
os.chdir("/")
sys.path[:] = [root, *path]
import lsmkv
sys.path[:] = path
__import__(module, fromlist=["main"]).main()
"""


class Detached:
    """A process that was started, until it has answered.  Call order: ``receive* close``."""

    def __init__(
        self, module: str, name: str, place: str, request: bytes, python: str = ""
    ) -> None:
        """Caller defers signals until :meth:`close`.

        ``name`` and ``place`` are for people who list processes; ``python`` is the path of the
        interpreter, if it is not to be found.  Raises ``OSError``, and ``NotImplementedError``
        where there is no interpreter to start.
        """
        self.program = ""
        self.is_other = False
        """True if the interpreter was one of another version, once it is closed."""
        self._answer = b""
        self._pid = 0
        descriptors = [*_pipe(), *_pipe()]
        self._output, self._input = descriptors[2], descriptors[1]
        try:
            self.program, self._pid = spawn(
                module, name, place, (descriptors[0], descriptors[3]), python, detached=True
            )
        except BaseException:
            self.close()
            raise
        finally:
            os.close(descriptors[0])
            os.close(descriptors[3])
        self._send(request)

    def receive(self, seconds: float) -> bytes | None:
        """The whole answer; None after that many seconds without one.

        It is empty if the process has ended without one.
        """
        poll = polling.poll()
        poll.register(self._output, polling.POLLIN)
        while poll.poll(seconds * 1000):
            data = os.read(self._output, _CHUNK)
            if not data:
                return b""
            self._answer += data
            if _is_whole(self._answer):
                return self._answer[_SIZE.size :]
        return None

    def close(self) -> None:
        """Let it go on alone."""
        for fd in (self._input, self._output):
            if fd >= 0:
                os.close(fd)
        self._input = self._output = -1
        pid, self._pid = self._pid, 0
        if pid > 0:
            self.is_other = reap(pid) == OTHER  # the process in between, which has ended

    def _send(self, request: bytes) -> None:
        fd, self._input = self._input, -1
        request = _SIZE.pack(len(request)) + request
        try:
            while request:
                request = request[os.write(fd, request) :]
        except OSError:
            pass  # it has ended, as the answer says
        finally:
            os.close(fd)


def spawn(
    module: str,
    name: str,
    place: str,
    descriptors: tuple[int, int],
    python: str = "",
    detached: bool = False,
) -> tuple[str, int]:
    """Start a process that has these two descriptors, as its numbers 0 and 1, and no others.

    Returns its program and its process id: of a child, which the caller waits for, or with
    ``detached`` of a process in between, which ends immediately.  Raises as :class:`Detached`.
    """
    command = _command(module, name, place, python, detached)
    actions = [
        (posix.POSIX_SPAWN_DUP2, descriptors[0], 0),
        (posix.POSIX_SPAWN_DUP2, descriptors[1], 1),
        (posix.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    pid = posix.posix_spawn(
        command[0],
        command,
        {**os.environ, "PYINSTALLER_RESET_ENVIRONMENT": "1"},  # it unpacks itself again
        file_actions=actions,
        setpgroup=0,
        setsigmask=(),
        setsigdef=[getattr(signal, one) for one in (*_ENDS, "SIGCHLD")],
    )
    return command[0], pid


def reap(pid: int) -> int | None:
    """Wait for the end of a started process; returns its exit status, negative for a signal, or
    None if the program waits for all of its children itself."""
    try:
        return os.waitstatus_to_exitcode(posix.waitpid(pid, 0)[1])
    except ChildProcessError:
        return None


def _command(module: str, name: str, place: str, python: str, detached: bool) -> list[str]:
    """The program that is started, and its arguments."""
    if getattr(sys, "lsmkv_owner", False) and not python:
        again = [sys.executable, _FLAG, name, place, module]
        return ["/bin/sh", "-c", _IN_BACKGROUND, *again] if detached else again
    python = python or interpreter()
    if not python:
        raise NotImplementedError(
            f"{sys.executable!r} cannot be started as Python: pass the path of one as python="
        )
    kind = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    bond = "detached" if detached else "child"
    arguments = [name, place, module, kind, bond, os.path.dirname(HOME), *_search_path()]
    return [python, "-I", "-S", "-c", _BOOT, *arguments]


def _search_path() -> list[str]:
    """Return the directories in which this process searches for modules, for a process with another
    working directory."""
    try:
        here = os.getcwd()
    except FileNotFoundError:  # it was removed, and nothing can be imported from there
        here = ""
    return [
        os.path.join(here, entry)
        for entry in sys.path
        if isinstance(entry, str) and (here or os.path.isabs(entry))
    ]


def _is_whole(message: bytes) -> bool:
    """Return True if a message is there as far as its length says.

    The end of the pipe does not show it: a fork of the starter may have it open.
    """
    start = len(message) >= _SIZE.size
    return bool(start and len(message) - _SIZE.size >= _SIZE.unpack_from(message)[0])


def _pipe() -> tuple[int, int]:
    """A pipe whose descriptors are not among the first three numbers."""
    ends = os.pipe()
    try:
        reading, writing = (above_the_first(one) for one in ends)
    finally:
        for one in ends:
            os.close(one)
    return reading, writing


def above_the_first(descriptor: int) -> int:
    """A duplicate of a descriptor, with a number not among the first three."""
    duplicate: int = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    return duplicate


# In the process that was started


def run_frozen(module: str) -> None:
    """Run a module of a frozen program instead of its own script, and end the process."""
    listed = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"
    for fd in [int(one) for one in os.listdir(listed) if int(one) > 2]:
        try:
            os.close(fd)
        except OSError:
            pass
    if linux.getpgrp() != os.getpid():  # otherwise it is a child, with its own group
        linux.setsid()
    os.chdir("/")
    import_module(module).main()
    os._exit(0)


def request() -> bytes:
    """Return the starter's request.  Signals that end a process are noted from now on."""
    signals.pthread_sigmask(signals.SIG_BLOCK, [getattr(signal, one) for one in _ENDS])
    message = b""
    while not _is_whole(message) and (data := os.read(0, _CHUNK)):
        message += data
    return message[_SIZE.size :]


def answer(content: bytes) -> None:
    """Answer the starter, and have nothing more to do with it."""
    content = _SIZE.pack(len(content)) + content
    try:
        while content:
            content = content[os.write(1, content) :]
    except OSError:
        pass  # the starter has ended
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    if null > 2:
        os.close(null)


def is_ended(seconds: float) -> bool:
    """Wait that long; True if a signal asks this process to end, at once where the system can."""
    numbers = [getattr(signal, one) for one in _ENDS]
    if hasattr(signals, "sigtimedwait"):
        return signals.sigtimedwait(numbers, seconds) is not None
    pause(seconds)  # macOS: the signals are blocked, so nothing ends this sleep before
    return not signals.sigpending().isdisjoint(numbers)
