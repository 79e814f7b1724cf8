"""Another Python process that runs a module of this package, and the lines that the two exchange.

The process that starts it is its *owner*, and has a :class:`Process`; the started process has a
:class:`Port`.  It is isolated from everything but its owner: an interpreter of the same kind that
reads neither the environment's ``PYTHON*`` nor ``site``, a process group of its own (a Ctrl-C in
the terminal goes to the owner alone), no descriptor but one directory's.  It ends when its owner
ends, even if that is killed.
"""

from __future__ import annotations

import os
import re
import select
import signal
import sys
from collections import deque
from typing import Any

from lsmkv.env.local import LocalDirectory, LocalEnv
from lsmkv.util.threads import new_lock, start_new_thread

try:
    import fcntl
except ImportError:  # Windows, where nothing is started: see can_start
    fcntl = None  # type: ignore[assignment]

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_INTERPRETER = re.compile(r"(python|pypy)[0-9.]*[a-z]*", re.ASCII | re.IGNORECASE)
_CHUNK = 65536
_CHECK_OWNER_EVERY = 0.5  # seconds
_MAX_KILL_WAIT = 2.0  # seconds
_NICENESS = 5  # as ``nice`` counts: a third of what others get of a processor

# The package is named by its directory, so that no other lsmkv on the path can take its place, and
# so that what the module does not need is not imported: 50 ms from start to answer instead of 65.
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
    """Whether there is an interpreter that can be started again.

    Not in a frozen program, nor where Python is a part of another one, nor where gevent has put a
    class of its own in the place of ``Popen``: what that waits for is its loop, in its thread.
    """
    start = getattr(sys.modules.get("subprocess"), "Popen", None)
    if start is not None and start.__module__ != "subprocess":
        return False
    if (
        sys.platform == "win32"
        or os.name != "posix"
        or getattr(sys, "frozen", False)
        or not sys.executable
    ):
        return False
    return _INTERPRETER.fullmatch(os.path.basename(sys.executable)) is not None


def get_ready() -> None:
    """Import what :class:`Process` takes, and importing lsmkv leaves out: 2 ms that most have no
    use for.  What stands in the way of it is for the start to say.
    """
    try:
        import subprocess  # noqa: F401, PLC0415
    except Exception:  # no file may be opened any more, say
        pass


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def random_token() -> str:
    """16 random hexadecimal digits, which no other process draws."""
    return os.urandom(8).hex()


class Process:
    """A process that runs ``main`` of a module.

    Call order: ``(send | receive)* (end | abandon)``.

    Used by one thread at a time.  Nothing here waits for the process, but for ``receive``, as long
    as it is told to, and ``end``.
    """

    def __init__(self, module: str, directory: LocalDirectory) -> None:
        """Start it; it works in ``directory``, by a descriptor of its own.

        ``OSError`` or ``RuntimeError`` if it cannot be started, or whatever importing raises.
        """
        import subprocess  # noqa: PLC0415 - see get_ready

        # Not its own number: that may be one of the first three, if the owner has these closed.
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
            # A process that has ended is reaped at once, whatever its owner does meanwhile.
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
        """Whether it has ended."""
        return not self._ended.locked()

    @property
    def status(self) -> int | None:
        """Its exit status, or minus the number of the signal that killed it; None until it ends."""
        return self._process.returncode

    def send(self, line: bytes) -> None:
        """Send a line, which ``receive`` carries on if the process does not take all of it now."""
        self._unsent += line + b"\n"
        self._send_on()

    def receive(self, seconds: float) -> bytes | None:
        """The next line; None if there is none after this many seconds.

        :class:`ProcessEnded` when no more will come.
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
        """Kill it, and wait until it is gone; a dying process that takes long is not waited for.

        Calling it twice is harmless.
        """
        if not self.ended:
            self._process.kill()
            if self._ended.acquire(True, _MAX_KILL_WAIT):
                self._ended.release()
        self._close_pipes()

    def abandon(self) -> None:
        """In a forked child: the process is the parent's, and must not be kept alive from here."""
        self._process.returncode = 0  # it is not this process that waits for it
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
    """The process's own end: lines from its owner, and to it."""

    def __init__(self, owner: int) -> None:
        """``owner`` is the process id of the owner.

        Standard input and output are taken: what a library prints does not get among the lines.
        """
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
        """Lower the priority, for machines with too few processors for all processes."""
        if sys.platform == "win32":
            raise NotImplementedError
        os.nice(_NICENESS)

    def receive(self, seconds: float) -> bytes | None:
        """The next line; None if there is none after this many seconds.

        :class:`ProcessEnded` when the owner is gone.
        """
        line = self._lines.take()
        while line is None:
            # A fork of the owner may hold the pipe open: the parent tells for certain.
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
        """Raise :class:`ProcessEnded` if the owner is gone.  Costs two calls of the system."""
        line = self.receive(0)
        if line is not None:
            self._lines.put_back(line)

    def send(self, line: bytes) -> None:
        """Send a line; :class:`ProcessEnded` when the owner is gone."""
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
    """The command line.  Modules are looked for where this process looks for them."""
    path = [entry for entry in sys.path if isinstance(entry, str) and os.path.isabs(entry)]
    arguments = [_HOME, module, str(os.getpid()), str(directory), place, *path]
    # The compiled modules share an extension that lies beside the package.
    return [sys.executable, "-I", "-S", "-c", _BOOT, *arguments, os.path.dirname(_HOME)]


def _duplicate(fd: int) -> int:
    """A duplicate, which is not one of the first three numbers."""
    if sys.platform == "win32":
        raise NotImplementedError
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)


def _never_wait(fd: int) -> None:
    if sys.platform == "win32":
        raise NotImplementedError
    os.set_blocking(fd, False)


def _is_readable(fd: int, seconds: float) -> bool:
    """Whether there is something to read, or the end, within this many seconds."""
    if sys.platform == "win32":
        raise NotImplementedError
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


class _Lines:
    """Cuts received bytes into lines."""

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
        """The next whole line, if there is one."""
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
    """Wait for the end of the process, in a thread of its own."""
    try:
        process.wait()
    finally:
        ended.release()
