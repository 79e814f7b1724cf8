"""Connections between simulated processes, and waiting for them: a simulation of
``lsmkv.shared.system.sockets``.

A connection takes any number of bytes; a message comes in two parts.  Every call is a switch point.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

from lsmkv.testing.processes import Process, error_of
from lsmkv.testing.scheduler import OWN_FILES

OWN_FILES.add(__file__)


class _Pollable:
    """An object for which a thread can wait, alone or with others."""

    _fd = -1

    def __init__(self, process: Process) -> None:
        self.process = process
        self.pollers: list[_Poll] = []

    def open(self) -> None:
        """Give it a descriptor."""
        self._fd = self.process.open(self)

    def fileno(self) -> int:
        """The descriptor; -1 once it is closed."""
        return self._fd

    @property
    def ready(self) -> bool:
        """True if a call does not block."""
        raise NotImplementedError

    @property
    def events(self) -> int:
        """The current events, for threads that wait for several objects."""
        return 1

    def changed(self) -> None:
        """Wake the threads that wait for it."""
        scheduler = self.process.system.scheduler
        scheduler.wake_waiting_for(self)
        for poll in self.pollers:
            scheduler.wake_waiting_for(poll)

    def close(self) -> None:
        """Close it."""
        if self._fd >= 0:
            self.process.at("closes a connection")
            self.end()

    def end(self) -> None:
        """Release its descriptor, as the system does on close."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self.process.forget(fd)
            for poll in list(self.pollers):
                poll.unregister(fd)
            self.changed()


class _Listening(_Pollable):
    """A socket that others connect to."""

    def __init__(self, process: Process, address: bytes) -> None:
        super().__init__(process)
        self._address = address
        self.waiting: list[_Socket] = []
        """The ends here of connections that are not accepted yet."""
        if address in process.system.listening:
            raise error_of(errno.EADDRINUSE)
        process.system.listening[address] = self
        self.open()

    @property
    def ready(self) -> bool:
        return bool(self.waiting)

    def end(self) -> None:
        if self._fd >= 0:
            del self.process.system.listening[self._address]
            super().end()
            for one in self.waiting:
                one.leave()


class _Socket(_Pollable):
    """One end of a connection."""

    other: _Socket
    """The other end."""

    def __init__(self, process: Process, blocking: bool) -> None:
        super().__init__(process)
        self.patience: float | None = None
        self.received = bytearray()
        self.passed: list[Any] = []
        """The memory whose descriptors came with what was received."""
        self.gone = False
        """True once it was closed."""
        self.ended = False
        """True if no more data will come."""
        self.reset = False
        """True if the other end closed without reading everything."""
        self.refuses = False
        """True if the other end may send nothing more."""
        self._blocking = blocking

    @property
    def ready(self) -> bool:
        return bool(self.received) or self.ended

    @property
    def events(self) -> int:
        return 3 if self.ended else 1

    def sendall(self, data: bytes, _flags: int) -> None:
        """Send everything, a message in two parts."""
        half = len(data) // 2
        self.send(data[:half], 0)
        self.send(data[half:], 0)

    def send(self, data: bytes, _flags: int) -> int:
        """Send everything in one part."""
        self._at("sends")
        other = self.other
        if other.gone or other.refuses:
            raise error_of(errno.EPIPE)
        other.received += data
        other.changed()
        return len(data)

    def recv(self, most: int) -> bytes:
        """Receive at most this many bytes; none at the end."""
        self._at("receives")
        while not self.received:
            if self.reset:
                raise error_of(errno.ECONNRESET)
            if self.ended:
                return b""
            scheduler = self.process.system.scheduler
            if not self._blocking or not scheduler.wait(self, self.patience, False, "receives"):
                raise error_of(errno.EAGAIN)
            if self.gone:
                raise error_of(errno.EBADF)
        data = bytes(self.received[:most])
        del self.received[:most]
        return data

    def recv_into(self, buffer: Any) -> int:
        """:meth:`recv` into a buffer."""
        data = self.recv(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def hung_up(self) -> None:
        """True if the other end was closed."""
        self.ended = True
        self.changed()

    def end(self) -> None:
        super().end()
        self.leave()

    def leave(self) -> None:
        """Notify the other end that this one was closed."""
        if not self.gone:
            self.gone = True
            self.other.reset = bool(self.received)
            self.other.hung_up()

    def _at(self, doing: str) -> None:
        self.process.at(doing)
        if self.gone:
            raise error_of(errno.EBADF)


class _Alarm(_Pollable):
    """Wakes a thread that polls."""

    _rings = False

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self.open()

    @property
    def fd(self) -> int:
        return self._fd

    @property
    def ready(self) -> bool:
        return self._rings

    def ring(self) -> None:
        """Wake the thread."""
        self.process.at("rings")
        self._rings = True
        self.changed()

    def quiet(self) -> None:
        """Reset the alarm."""
        self.process.at("is quiet")
        self._rings = False


class _ReserveDescriptor:
    """A descriptor, of which there are enough here."""

    def renew(self) -> None:
        """Take it again."""

    def close(self) -> None:
        """Give it up."""


class _Poll:
    """Waits for several."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._registered: dict[int, _Pollable] = {}

    def register(self, fd: int, _events: int) -> None:
        """Also wait for it."""
        one = self._process.opened(fd)
        self._registered[fd] = one
        one.pollers.append(self)

    def unregister(self, fd: int) -> None:
        """Stop waiting for it."""
        one = self._registered.pop(fd, None)
        if one is None:
            raise error_of(errno.ENOENT)
        one.pollers.remove(self)

    def poll(self, seconds: float = -1.0, most: int = -1) -> list[tuple[int, int]]:
        """The descriptors that are ready, once there are some; none after the timeout in
        seconds."""
        scheduler = self._process.at("polls")
        while True:
            ready = [(fd, one.events) for fd, one in self._registered.items() if one.ready]
            if ready:
                return ready if most < 0 else ready[:most]
            if not scheduler.wait(self, None if seconds < 0 else seconds, False, "polls"):
                return []

    def close(self) -> None:
        """Stop waiting."""
        for fd in list(self._registered):
            self.unregister(fd)


class _Polling:
    """Simulation of the module ``select``."""

    EPOLLIN = 1
    EPOLLRDHUP = 2
    POLLOUT = 4

    def __init__(self, process: Process) -> None:
        self._process = process

    def epoll(self) -> _Poll:
        return _Poll(self._process)

    def poll(self) -> _Ready:
        return _Ready()


class _Ready:
    """Waits for room to send, of which there is enough."""

    def register(self, fd: int, _events: int) -> None:
        """Also wait for it."""

    def poll(self) -> None:
        """Return without waiting."""


class Sockets:
    """Simulation of :mod:`lsmkv.shared.system.sockets`."""

    def __init__(self, process: Process, map_memory: Callable[[Any], int]) -> None:
        """``map_memory`` returns a descriptor of memory that another process has passed on."""
        self._process = process
        self._map = map_memory
        self.polling = _Polling(process)

    def Alarm(self) -> _Alarm:
        return _Alarm(self._process)

    def ReserveDescriptor(self) -> _ReserveDescriptor:
        return _ReserveDescriptor()

    def address_of(self, token: int, epoch: int) -> bytes:
        return b"%d-%d" % (token, epoch)

    def forget(self, token: int, epoch: int) -> None:
        pass

    def listen(self, address: bytes) -> _Listening:
        self._process.at("listens")
        return _Listening(self._process, address)

    def connect(self, address: bytes, patience: float | None) -> _Socket:
        self._process.at("connects")
        listening = self._process.system.listening.get(address)
        if listening is None:
            raise error_of(errno.ECONNREFUSED)
        near = _Socket(self._process, True)
        far = _Socket(listening.process, False)
        near.other, far.other = far, near
        near.patience = patience
        near.open()
        listening.waiting.append(far)
        listening.changed()
        return near

    def accept(self, listening: _Listening) -> _Socket | None:
        self._process.at("accepts")
        if not listening.waiting:
            return None
        accepted = listening.waiting.pop(0)
        accepted.open()
        return accepted

    def is_scarce(self, _connected: _Socket) -> bool:
        return False

    def peer(self, connected: _Socket) -> tuple[int, int, int]:
        return connected.other.process.pid, 0, 0

    def waiter(self) -> None:
        return None

    def is_unread(self, connected: _Socket) -> bool:
        self._process.at("looks whether all was read")
        return bool(connected.other.received)

    def has_hung_up(self, connected: _Socket) -> bool:
        self._process.at("looks whether the other end hung up")
        return (connected.gone or connected.ended) and not connected.received

    def is_stopped(self, connected: _Socket) -> bool:
        return bool(connected.other.process.stopped)

    def set_patience(self, connected: _Socket, seconds: float) -> None:
        connected.patience = seconds or None

    def send_with(self, connected: _Socket, content: bytes, fd: int) -> None:
        mapped = self._process.opened(fd)
        connected.other.passed.append(mapped.memory)
        connected.send(content, 0)

    def receive_with(self, connected: _Socket, size: int) -> tuple[bytes, int]:
        content = connected.recv(size)
        if not connected.passed:
            return content, -1
        return content, self._map(connected.passed.pop(0))

    def end_requests(self, connected: _Socket) -> None:
        connected.refuses = connected.ended = True
        connected.changed()

    def end(self, connected: _Socket) -> None:
        for one in (connected, connected.other):
            one.refuses = True
            one.hung_up()
