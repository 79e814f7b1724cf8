"""Unix sockets that no library has changed, between the processes of a shared store.

gevent and eventlet replace the module ``socket``; these are the interpreter's own.  Names are in
Linux's abstract namespace: there is no file, so a kill leaves none, and no path is too long.
Both ends compare the user of the other one, which the kernel knows, with their own.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from lsmkv.engine.env import forks
from lsmkv.engine.env.descriptors import is_one_of_the_last, with_room
from lsmkv.engine.env.local_file import Descriptor
from lsmkv.engine.util.threads import second_instance
from lsmkv.shared.system import greenlets

try:
    module: Any = second_instance("_socket")
    polling: Any = second_instance("select")
    """The interpreter's own ``select``, with ``epoll``."""
except (AttributeError, ImportError):  # an interpreter without them, which shares no store
    module = polling = None

try:
    fcntl: Any = import_module("fcntl")
    TIOCOUTQ: Any = import_module("termios").TIOCOUTQ
except ImportError:  # Windows
    fcntl = TIOCOUTQ = None

_PEER: Final = struct.Struct("3i")
_TIME: Final = struct.Struct("@qq")
_BACKLOG: Final = 1024

linux: Any = os
"""``os``, with what only Linux has."""
NO_SIGNAL: int = getattr(module, "MSG_NOSIGNAL", 0)
"""A flag of every call that sends: a peer that has gone is an error, and never ends the process."""


DONT_WAIT: int = getattr(module, "MSG_DONTWAIT", 0)
"""A flag of a call that raises ``BlockingIOError`` instead of waiting."""
waiter: Final = greenlets.waiter


class Socket(getattr(module, "socket", object)):  # type: ignore[misc]
    """The interpreter's socket class; closed in a forked child: it belongs to the parent.

    It is made by :func:`new`.
    """

    __slots__ = ("__weakref__",)

    def close(self) -> None:
        """Close it."""
        with forks.changing:
            super().close()

    def close_in_child(self) -> None:
        """In a forked child: the connection stays that of the parent."""
        fd = self.detach()
        if fd >= 0:
            os.close(fd)


def new(kind: type[Socket] = Socket, fd: int | None = None) -> Any:
    """A new socket, or that of a descriptor.  Caller holds ``forks.changing``."""
    made = kind(module.AF_UNIX, module.SOCK_STREAM, 0, fd)  # and no program that is run gets it
    forks.note(made)
    return made


def address_of(token: int, epoch: int) -> bytes:
    """The name of an owner's socket, in the abstract namespace: no file, and removed with it."""
    return b"\0lsmkv-%016x-%d" % (token, epoch)


def forget(token: int, epoch: int) -> None:
    """Remove what a killed owner's socket has left: nothing."""


def listen(address: bytes) -> Any:
    """A socket that other processes connect to, which never blocks.  ``OSError``."""
    with forks.changing:
        made = new()
    try:
        made.setblocking(False)
        made.bind(address)
        made.listen(_BACKLOG)
    except BaseException:
        made.close()
        raise
    return made


def check_peer(connected: Any) -> None:
    """Raise ``PermissionError`` if the other end belongs to another user."""
    pid, user, _ = peer(connected)
    check_user(pid, user)


def check_user(pid: int, user: int) -> None:
    """Raise ``PermissionError`` if that process, of that user, is another user's."""
    own = linux.geteuid()
    if user != own:
        raise PermissionError(
            errno.EPERM,
            f"process {pid} of user {user} answers for this store, and this process is of user"
            f" {own}: only processes of one user share a store",
        )


def _nothing(made: Any) -> None:
    """Do nothing: connections on Linux need no preparation."""


def connect(
    address: bytes,
    patience: float | None,
    prepare: Callable[[Any], None] = _nothing,
    check: Callable[[Any], None] = check_peer,
) -> Any:
    """A socket that is connected to an owner; ``OSError``, ``ConnectionRefusedError`` if no
    process listens.

    This call and each later one wait for so many seconds at most, and raise ``BlockingIOError``.
    ``prepare`` and ``check`` are this system's, before it is connected and after that.
    """
    with forks.changing:
        made = with_room(new)
    try:
        prepare(made)
        if patience is not None:
            set_patience(made, patience)
        made.connect(address)
        check(made)
    except BaseException:
        made.close()
        raise
    return made


def accept(
    listening: Any,
    prepare: Callable[[Any], None] = _nothing,
    check: Callable[[Any], None] = check_peer,
) -> Any:
    """The next connection, which never blocks; None if there is none, or another user's.

    ``OSError`` without a free descriptor: :class:`ReserveDescriptor` is for that.  ``prepare`` and
    ``check`` are those of :func:`connect`.
    """
    try:
        with forks.changing:
            made = new(fd=with_room(listening._accept)[0])
    except BlockingIOError:
        return None
    except ConnectionError:
        return None  # it has gone again
    try:
        made.setblocking(False)
        prepare(made)
        check(made)
    except OSError:  # it has gone again, or is another user's
        made.close()
        return None
    return made


def is_scarce(connected: Any) -> bool:
    """Return True if this connection has one of the last descriptors of the process."""
    return is_one_of_the_last(connected.fileno())


def peer(connected: Any) -> tuple[int, int, int]:
    """The process, user and group at the other end."""
    found = connected.getsockopt(module.SOL_SOCKET, module.SO_PEERCRED, _PEER.size)
    return _PEER.unpack(found)


def is_stopped(connected: Any) -> bool:
    """Return True if the process at the other end is stopped; False where that cannot be known."""
    pid, _, _ = peer(connected)
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except (OSError, IndexError):
        return False


def is_unread(connected: Any) -> bool:
    """True if the other end has not read all that was sent; False where that cannot be known."""
    count = bytearray(4)
    try:
        fcntl.ioctl(connected.fileno(), TIOCOUTQ, count)
    except OSError:
        return False
    return any(count)


def has_hung_up(connected: Any) -> bool:
    """Return True if the other end sends nothing more, and all that it has sent was read."""
    try:
        return not connected.recv(1, module.MSG_PEEK | module.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def set_patience(connected: Any, seconds: float) -> None:
    """Let each later call wait for so many seconds at most; 0.0 is no limit."""
    whole = int(seconds)
    part = int((seconds - whole) * 1_000_000)
    if whole == 0 and seconds > 0.0:
        part = max(1, part)  # or it would be no limit
    time = _TIME.pack(whole, part)
    connected.setsockopt(module.SOL_SOCKET, module.SO_RCVTIMEO, time)
    connected.setsockopt(module.SOL_SOCKET, module.SO_SNDTIMEO, time)


def send_with(connected: Any, content: bytes, fd: int) -> None:
    """Send bytes, and with them a descriptor."""
    passed = [(module.SOL_SOCKET, module.SCM_RIGHTS, struct.pack("i", fd))]
    sent = connected.sendmsg([content], passed, NO_SIGNAL)
    if sent < len(content):
        connected.sendall(content[sent:], NO_SIGNAL)


def receive_with(
    connected: Any, size: int, how: int = getattr(module, "MSG_CMSG_CLOEXEC", 0)
) -> tuple[bytes, int]:
    """Some bytes, at most ``size``, and the descriptor that came with them; -1 if there is none.

    ``OSError`` if this process can have no more descriptors.
    """
    content, passed, flags, _ = connected.recvmsg(size, module.CMSG_SPACE(4), how)
    fds: list[int] = []
    for level, kind, data in passed:
        if level == module.SOL_SOCKET and kind == module.SCM_RIGHTS:
            fds += struct.unpack(f"{len(data) // 4}i", data)
    for more in fds[1:]:
        os.close(more)
    if not fds and flags & module.MSG_CTRUNC:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    return content, fds[0] if fds else -1


def end_requests(connected: Any) -> None:
    """Shut down the read side; data sent to the other end remains readable there."""
    _shut_down(connected, module.SHUT_RD)


def end(connected: Any) -> None:
    """End a call that another thread makes with it now."""
    _shut_down(connected, module.SHUT_RDWR)


def _shut_down(connected: Any, how: int) -> None:
    try:
        connected.shutdown(how)
    except OSError:
        pass  # it has gone


class Alarm(Descriptor):
    """Wakes a thread that polls."""

    def __init__(self) -> None:
        """Raises ``OSError``.  The caller defers signals."""
        super().__init__(linux.eventfd(0, linux.EFD_CLOEXEC | linux.EFD_NONBLOCK), "")

    @property
    def fd(self) -> int:
        """The descriptor, which can be read from while it rings; -1 once closed."""
        return self._fd

    def ring(self) -> None:
        """Wake the thread, at once or when it polls next.  Any thread may call this."""
        try:
            linux.eventfd_write(self.fd, 1)
        except (OSError, ValueError):
            pass  # it rings already, or is closed

    def quiet(self) -> None:
        """Be silent until the next :meth:`ring`."""
        linux.eventfd_read(self.fd)


class ReserveDescriptor(Descriptor):
    """A descriptor that is given up for a moment where another one is needed.

    Without it a process that has no more of them could not even accept a connection to say so.
    """

    def __init__(self) -> None:
        """Raises ``OSError``.  The caller defers signals."""
        self.renew()

    def renew(self) -> None:
        """Reserve the descriptor again.  ``OSError`` if others have taken it."""
        if self._fd < 0:
            self._fd = linux.eventfd(0, linux.EFD_CLOEXEC)
