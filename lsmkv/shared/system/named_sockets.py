"""Unix sockets with a name in ``/tmp``: between processes that share a store on macOS.

Here is what differs from :mod:`lsmkv.shared.system.sockets`, which is Linux's.  Names cannot be
abstract.  They are not in the store's directory, so a killed owner's does not prevent copying it,
and no path is too long for them.  ``/tmp`` is the same for all processes, unlike ``TMPDIR``.  A
name has the epoch's random number, so it never is another one's; what a kill leaves the next owner
removes.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from typing import Any, Final

from lsmkv.engine.env import forks
from lsmkv.shared.system import sockets
from lsmkv.shared.system.sockets import Socket, check_user, module, new
from lsmkv.shared.system.sockets import polling as _select

end = sockets.end
end_requests = sockets.end_requests
has_hung_up = sockets.has_hung_up
is_scarce = sockets.is_scarce
send_with = sockets.send_with
set_patience = sockets.set_patience
waiter = sockets.waiter

# Of macOS' headers; the interpreter has names for some of them.
SO_NOSIGPIPE: Final = 0x1022
SOL_LOCAL: Final = 0
LOCAL_PEERCRED: Final = 1
LOCAL_PEERPID: Final = 2
CREDENTIALS: Final = struct.Struct("@IIh2xI60x")
"""``struct xucred``: version, user, number of groups, and the groups, of which the first counts."""
_PID: Final = struct.Struct("@i")

_BACKLOG: Final = 128
"""macOS takes no more, and refuses later ones: they try again."""
_BUFFER: Final = 1 << 18
"""Bytes on the way from one end to the other; macOS' default is 8 KB."""
_CHUNK: Final = 4096


def address_of(token: int, epoch: int) -> bytes:
    """The path of an owner's socket."""
    return b"/tmp/lsmkv-%016x-%d" % (token, epoch)


def forget(token: int, epoch: int) -> None:
    """Remove what a killed owner's socket has left."""
    path = address_of(token, epoch)
    try:
        if stat.S_ISSOCK(os.lstat(path).st_mode):
            os.unlink(path)
    except OSError:
        pass  # it closed the socket, or it was another user's


class _Listening(Socket):
    """A socket with a path, which is removed with it; not in a forked child."""

    __slots__ = ("path",)
    path: bytes

    def close(self) -> None:
        path, self.path = self.path, b""
        if path:
            try:
                os.unlink(path)
            except OSError:
                pass  # another program has removed it
        super().close()

    def close_in_child(self) -> None:
        self.path = b""
        super().close_in_child()


def _prepare(made: Any) -> None:
    """Set the options of every connection.  ``OSError`` also if the other end has gone already."""
    made.setsockopt(module.SOL_SOCKET, SO_NOSIGPIPE, 1)
    made.setsockopt(module.SOL_SOCKET, module.SO_SNDBUF, _BUFFER)
    made.setsockopt(module.SOL_SOCKET, module.SO_RCVBUF, _BUFFER)


def listen(address: bytes) -> Any:
    """A socket that other processes connect to, which never blocks.  ``OSError``."""
    with forks.changing:
        made = new(_Listening)
        made.path = b""
    try:
        made.setblocking(False)
        made.bind(address)
        made.path = address
        os.chmod(address, 0o600)  # no process can connect yet
        made.listen(_BACKLOG)
    except BaseException:
        made.close()
        raise
    return made


def check_peer(connected: Any) -> None:
    """Raise ``PermissionError`` if the other end belongs to another user."""
    pid, user, _ = peer(connected)
    check_user(pid, user)


def connect(address: bytes, patience: float | None) -> Any:
    """A socket that is connected to an owner: as :func:`lsmkv.shared.system.sockets.connect`."""
    try:
        return sockets.connect(address, patience, _prepare, check_peer)
    except FileNotFoundError:
        raise ConnectionRefusedError(errno.ECONNREFUSED, "not the socket of an owner") from None


def accept(listening: Any) -> Any:
    """The next connection: as :func:`lsmkv.shared.system.sockets.accept`."""
    return sockets.accept(listening, _prepare, check_peer)


def peer(connected: Any) -> tuple[int, int, int]:
    """The process, user and group at the other end."""
    (pid,) = _PID.unpack(connected.getsockopt(SOL_LOCAL, LOCAL_PEERPID, _PID.size))
    return pid, *_credentials(connected)


def _credentials(connected: Any) -> tuple[int, int]:
    """The user and group at the other end."""
    found = connected.getsockopt(SOL_LOCAL, LOCAL_PEERCRED, CREDENTIALS.size)
    if len(found) != CREDENTIALS.size:
        raise PermissionError(errno.EPERM, "the system does not report whose process answers")
    version, user, _, group = CREDENTIALS.unpack(found)
    if version != 0:
        raise PermissionError(errno.EPERM, "the system does not report whose process answers")
    return user, group


def is_stopped(_connected: Any) -> bool:
    """Return False: macOS does not report whether the process at the other end is stopped."""
    return False


def is_unread(_connected: Any) -> bool:
    """Return False: macOS does not report whether the other end has read all that was sent."""
    return False


def receive_with(connected: Any, size: int) -> tuple[bytes, int]:
    """Some bytes, and the descriptor that came with them: as in ``sockets.py``."""
    content, fd = sockets.receive_with(connected, size, 0)
    if fd >= 0:
        os.set_inheritable(fd, False)
    return content, fd


class _Poll:
    """Waits for several, as ``select.epoll`` does."""

    def __init__(self) -> None:
        self._poll = _select.poll()

    def register(self, fd: int, events: int) -> None:
        """Also wait for this descriptor."""
        self._poll.register(fd, events)

    def unregister(self, fd: int) -> None:
        """Stop waiting for this descriptor."""
        try:
            self._poll.unregister(fd)
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from None

    def poll(self, seconds: float = -1.0, _most: int = -1) -> list[tuple[int, int]]:
        """All descriptors that are ready, once there are some; none after so many seconds."""
        found: list[tuple[int, int]] = self._poll.poll(None if seconds < 0 else seconds * 1000)
        return found

    def close(self) -> None:
        """Do nothing: there is no descriptor."""


class _Polling:
    """The parts of Linux's module ``select`` that are needed here."""

    EPOLLIN: int = getattr(_select, "POLLIN", 1)
    EPOLLRDHUP: int = getattr(_select, "POLLHUP", 16)
    POLLIN: int = getattr(_select, "POLLIN", 1)
    POLLOUT: int = getattr(_select, "POLLOUT", 4)

    def epoll(self) -> _Poll:
        """Return an object that waits for several descriptors."""
        return _Poll()

    def poll(self) -> Any:
        """Return the interpreter's own ``poll``."""
        return _select.poll()


polling: Final = _Polling()


class Alarm:
    """Wakes a thread that polls."""

    def __init__(self) -> None:
        """Raises ``OSError``."""
        with forks.changing:
            ends = module.socketpair()
            self._near, self._far = (new(Socket, one.detach()) for one in ends)
        for one in (self._near, self._far):
            one.setblocking(False)
        self.fd: int = self._near.fileno()

    def ring(self) -> None:
        """Wake the thread, at once or when it polls next.  Any thread may call this."""
        try:
            self._far.send(b"\0")
        except OSError:
            pass  # it rings already, or is closed

    def quiet(self) -> None:
        """Be silent until the next :meth:`ring`."""
        try:
            while len(self._near.recv(_CHUNK)) == _CHUNK:
                pass
        except BlockingIOError:
            pass

    def close(self) -> None:
        """Close the descriptors."""
        self.fd = -1
        self._near.close()
        self._far.close()


class ReserveDescriptor:
    """A descriptor that is given up for a moment where another one is needed."""

    def __init__(self) -> None:
        """Raises ``OSError``."""
        self._held: Any = None
        self.renew()

    def renew(self) -> None:
        """Reserve the descriptor again.  ``OSError`` if others have taken it."""
        if self._held is None:
            with forks.changing:
                self._held = new()

    def close(self) -> None:
        """Give it up."""
        held, self._held = self._held, None
        if held is not None:
            held.close()
