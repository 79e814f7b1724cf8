"""Runs a module of this package in another Python process, and exchanges lines with it.

The process that starts it is its *owner*, and has a :class:`Process`; the started process has a
:class:`Port`.  It is isolated from everything except its owner: an interpreter of the same kind
that reads neither ``PYTHON*`` variables nor ``site``, its own process group (Ctrl-C in the terminal
reaches only the owner), and no descriptor except one directory's.  It ends when its owner ends,
even if the owner is killed.
"""

from __future__ import annotations

import os
import select
import sys
from collections import deque
from typing import Any

from lsmkv.engine.env.local import LocalDirectory, LocalEnv
from lsmkv.engine.util.signals import deferred
from lsmkv.engine.util.threads import new_lock, start_new_thread

try:
    import fcntl
except ImportError:  # Windows, where no process is started: see can_start
    fcntl = None  # type: ignore[assignment]

HOME = os.path.abspath(os.path.join(os.path.dirname(__file__), os.pardir, os.pardir))
"""The directory of the package."""
_CHUNK = 65536
_CHECK_OWNER_EVERY = 0.5  # seconds
_MAX_KILL_WAIT = 2.0  # seconds
_NICENESS = 5  # in units of ``nice``: a third of the processor time of other processes

# The package is named by its directory, so no other lsmkv on the path can replace it, and the
# module imports only what it needs: 50 ms from start to answer instead of 65.
_BOOT = """
import sys, types
home, module, owner, directory, place, *sys.path = sys.argv[1:]
package = types.ModuleType("lsmkv")
package.__path__ = [home]
sys.modules["lsmkv"] = package
__import__(module, fromlist=["main"]).main(int(owner), int(directory), place)
"""


class ProcessEnded(Exception):
    """The process at the other end has ended, or has closed its pipe."""


def can_start() -> bool:
    """Return True if there is an interpreter that can be started again.

    False in a frozen program, and where Python is embedded in another program and not installed.
    Also false if gevent has replaced ``Popen``: its class waits in gevent's loop, in gevent's
    thread.
    """
    start = getattr(sys.modules.get("subprocess"), "Popen", None)
    if start is not None and start.__module__ != "subprocess":
        return False
    return bool(interpreter())


def interpreter() -> str:
    """The path of a Python of this program's version; empty if none is known.

    It is ``sys.executable``, unless that is another program with a Python inside, such as uWSGI, or
    was removed: then the one that a virtual environment was made from, or the installation's.
    """
    if sys.platform == "win32" or os.name != "posix" or getattr(sys, "frozen", False):
        return ""
    kind = "pypy" if sys.implementation.name == "pypy" else "python"
    number = f"{sys.version_info[0]}.{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
    installed = os.path.join(sys.base_exec_prefix, "bin", kind + number)
    for path in (sys.executable, getattr(sys, "_base_executable", ""), installed):
        if path and _is_python(os.path.basename(path)) and os.access(path, os.X_OK):
            return str(path)
    return ""


def _is_python(name: str) -> bool:
    """Return True if a file name is one of Python's."""
    for kind in ("python", "pypy"):
        if name[: len(kind)].lower() == kind:
            letters = name[len(kind) :].lstrip("0123456789.")
            return not letters or (letters.isascii() and letters.isalpha())
    return False


def get_ready() -> None:
    """Import what :class:`Process` needs and importing lsmkv leaves out: 2 ms that most programs do
    not need.  Errors are left for the start to report.
    """
    try:
        import subprocess  # noqa: F401, PLC0415
    except Exception:  # for example, no file may be opened any more
        pass


def processors() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def random_token() -> str:
    """16 random hexadecimal digits, unique to this process."""
    return os.urandom(8).hex()


class Process:
    """A process that runs ``main`` of a module.

    Call order: ``(send | receive)* (end | abandon)``.

    Used by one thread at a time.  Only ``receive`` (up to its timeout) and ``end`` wait for the
    process.
    """

    def __init__(self, module: str, directory: LocalDirectory) -> None:
        """Start it; it works in ``directory``, through its own descriptor.

        Raises ``OSError`` or ``RuntimeError`` if it cannot be started, or any error of importing.
        """
        import subprocess  # noqa: PLC0415 - see get_ready

        # Not the original number: that may be one of the first three, if the owner has these
        # closed.
        with deferred:
            fd = _duplicate(directory.descriptor)
            try:
                self._process: subprocess.Popen[bytes] = subprocess.Popen(
                    _command(module, fd, directory.path),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    bufsize=0,
                    close_fds=True,
                    pass_fds=(fd,),
                    process_group=0,
                )
            finally:
                os.close(fd)
            self._ended = new_lock()
            self._ended.acquire()
            try:
                # A process that has ended is reaped at once, whatever its owner does.
                start_new_thread(_reap, (self._process, self._ended))
            except BaseException:
                self._process.kill()
                self._process.wait()
                self._close_pipes()
                raise
        self._input = self._process.stdin.fileno()  # type: ignore[union-attr]
        self._output = self._process.stdout.fileno()  # type: ignore[union-attr]
        _never_wait(self._input)
        _never_wait(self._output)
        self._lines = _Lines()
        self._unsent = b""

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """True if the process has ended."""
        return not self._ended.locked()

    @property
    def status(self) -> int | None:
        """Its exit status, or the negative number of its fatal signal; None until it ends."""
        return self._process.returncode

    def send(self, line: bytes) -> None:
        """Send a line.  ``receive`` sends the rest if the process does not accept all of it now."""
        self._unsent += line + b"\n"
        self._send_on()

    def receive(self, seconds: float) -> bytes | None:
        """The next line; None after this many seconds without one.

        Raises :class:`ProcessEnded` when no more will come.
        """
        if sys.platform == "win32":
            raise NotImplementedError
        line = self._lines.take()
        if line is not None:
            return line
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        if self._unsent:
            poll.register(self._input, select.POLLOUT)
        for fd, _ in poll.poll(seconds * 1000):
            if fd == self._input:
                self._send_on()
            else:
                self._lines.put(_read(self._output))
        return self._lines.take()

    def end(self) -> None:
        """Kill it, and wait until it is gone, but not long for a slow one.

        A second call has no effect.
        """
        if not self.ended:
            self._process.kill()
            if self._ended.acquire(True, _MAX_KILL_WAIT):
                self._ended.release()
        self._close_pipes()

    def abandon(self) -> None:
        """In a forked child: the process belongs to the parent, and must not be kept alive from
        here."""
        self._process.returncode = 0  # this process does not wait for it
        self._close_pipes()

    def _send_on(self) -> None:
        try:
            while self._unsent:
                sent = os.write(self._input, self._unsent[:_CHUNK])
                self._unsent = self._unsent[sent:]
        except BlockingIOError:
            pass
        except OSError as error:
            raise ProcessEnded(str(error)) from error

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class Port:
    """The started process's end: lines from its owner, and to it."""

    def __init__(self, owner: int) -> None:
        """``owner`` is the process id of the owner.

        Takes over standard input and output: what a library prints does not mix with the lines.
        """
        import signal  # noqa: PLC0415 - for the started process alone

        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._owner = owner
        self._input = os.dup(0)
        self._output = os.dup(1)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.close(null)
        self._lines = _Lines()

    def step_back(self) -> None:
        """Lower the priority, for machines with fewer processors than processes."""
        if sys.platform == "win32":
            raise NotImplementedError
        os.nice(_NICENESS)

    def receive(self, seconds: float) -> bytes | None:
        """The next line; None after this many seconds without one.

        Raises :class:`ProcessEnded` when the owner is gone.
        """
        line = self._lines.take()
        while line is None:
            # A fork of the owner may hold the pipe open: the parent's process id is certain.
            if os.getppid() != self._owner:
                raise ProcessEnded("the owner has ended")
            wait = min(seconds, _CHECK_OWNER_EVERY)
            if _is_readable(self._input, wait):
                self._lines.put(_read(self._input))
            line = self._lines.take()
            seconds -= wait
            if seconds <= 0:
                break
        return line

    def listen(self) -> None:
        """Raise :class:`ProcessEnded` if the owner is gone.  Costs two system calls."""
        line = self.receive(0)
        if line is not None:
            self._lines.put_back(line)

    def send(self, line: bytes) -> None:
        """Send a line; raises :class:`ProcessEnded` when the owner is gone."""
        data = memoryview(line + b"\n")
        try:
            while data:
                data = data[os.write(self._output, data) :]
        except OSError as error:
            raise ProcessEnded(str(error)) from error


def inherited_directory(descriptor: int, path: str) -> LocalDirectory:
    """The directory that the owner passed on."""
    os.set_inheritable(descriptor, False)
    return LocalDirectory(descriptor, path, LocalEnv())


def _command(module: str, directory: int, place: str) -> list[str]:
    """The command line.  Modules are searched for where this process searches for them."""
    path = [entry for entry in sys.path if isinstance(entry, str) and os.path.isabs(entry)]
    arguments = [HOME, module, str(os.getpid()), str(directory), place, *path]
    # The compiled modules share an extension next to the package.
    return [interpreter(), "-I", "-S", "-c", _BOOT, *arguments, os.path.dirname(HOME)]


def _duplicate(fd: int) -> int:
    """A duplicate descriptor that is not one of the first three numbers."""
    if sys.platform == "win32":
        raise NotImplementedError
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)


def _never_wait(fd: int) -> None:
    if sys.platform == "win32":
        raise NotImplementedError
    os.set_blocking(fd, False)


def _is_readable(fd: int, seconds: float) -> bool:
    """Return True if there is something to read, or the end, within this many seconds."""
    if sys.platform == "win32":
        raise NotImplementedError
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


class _Lines:
    """Splits received bytes into lines."""

    def __init__(self) -> None:
        self._whole: deque[bytes] = deque()
        self._rest: list[bytes] = []

    def put(self, data: bytes) -> None:
        first, *more = data.split(b"\n")
        self._rest.append(first)
        if more:
            self._whole.append(b"".join(self._rest))
            self._whole.extend(more[:-1])
            self._rest = [more[-1]]

    def put_back(self, line: bytes) -> None:
        self._whole.appendleft(line)

    def take(self) -> bytes | None:
        """The next complete line, if there is one."""
        return self._whole.popleft() if self._whole else None


def _read(fd: int) -> bytes:
    """The bytes that can be read now; :class:`ProcessEnded` at the end."""
    try:
        data = os.read(fd, _CHUNK)
    except BlockingIOError:
        return b""
    except OSError as error:
        raise ProcessEnded(str(error)) from error
    if not data:
        raise ProcessEnded("the pipe is closed")
    return data


def _reap(process: Any, ended: Any) -> None:
    """Wait for the end of the process, in a separate thread."""
    try:
        process.wait()
    finally:
        ended.release()
