"""The server's end of the process that scripts run in; ``process_main.py`` is what runs there.

Messages to the process are pickled.  What comes from it is read as a client's requests are, with
their bounds, and is never unpickled: a script may have taken the process over.

==================================  ========================  =====================================
to the process                      answers from it           meaning
==================================  ========================  =====================================
``(version, memory)``                                         first: the version of Redis, and the
                                                              bytes that a script may have
``("load", sha, source)``           ``compiled``              compile a script
``("run", sha, source or None,      ``compiled``, ``done      run a script, compiled before without
keys, arguments, resp3, memory)``   reply memory``            a source; the reply is bytes of RESP
the same with ``called``            the same                  a library: see ``Sandbox.run``
\\                                   ``refused text``          it cannot be compiled
\\                                   ``failed text [place]``   it has ended with an error
the command's reply                 ``call word...``          the script runs a command
a boolean, or None                  ``permits word...``       ``redis.acl_check_cmd``
\\                                   ``resp3 0|1``             ``redis.setresp``
\\                                   ``log level text``        ``redis.log``
==================================  ========================  =====================================
"""

from __future__ import annotations

import math
import pickle
import re
import select
import socket
import time
from typing import Any, Final

from lsmkv.server.requests import ProtocolError, RequestReader
from lsmkv.server.scripts.process_main import NO_MEMORY
from lsmkv.shared.system.attached import Attached

_CHUNK: Final = 65536
_LENGTH: Final = re.compile(rb"0|-1|[1-9][0-9]{0,9}")
selecting: Any = select
"""``select``, with what not every system has."""


class ProcessEnded(Exception):
    """The process has ended; or has broken the protocol, with the reason."""


class ScriptProcess:
    """A process that runs scripts.

    Call order: ``(send | receive)* close``, by one thread at a time; ``interrupt`` at any time.
    """

    def __init__(self, version: str, memory: int, most: int) -> None:
        """Start it, with ``memory`` bytes for scripts.  It answers some 50 ms later.

        A message of more than ``most`` bytes breaks the protocol.  Raises ``OSError``, and
        ``NotImplementedError`` where there is no interpreter to start.
        """
        self.memory = memory
        self._most = most
        self._process = Attached("lsmkv.server.scripts.process_main", "lsmkv-scripts")
        self._socket = self._process.connection
        self._socket.setblocking(False)
        self.pid = self._process.pid
        self._reading = selecting.poll()
        self._reading.register(self._socket, selecting.POLLIN)
        self._both = selecting.poll()
        self._both.register(self._socket, selecting.POLLIN | selecting.POLLOUT)
        self._reader = RequestReader()
        self._unsent = memoryview(b"")
        self.send((version, memory))

    def send(self, message: Any) -> None:
        """Send a message.  ``receive`` sends what the process does not take now."""
        data = pickle.dumps(message, -1)
        self._unsent = memoryview(bytes(self._unsent) + data if self._unsent else data)
        self._send_on()

    def _send_on(self) -> None:
        try:
            while self._unsent:
                sent = self._socket.send(self._unsent)  # mypyc would call it twice in the slice
                self._unsent = self._unsent[sent:]
        except BlockingIOError:
            pass
        except OSError:
            raise ProcessEnded from None

    def receive(self, deadline: float) -> list[bytes] | None:
        """The next message; None if none has come by the deadline, of ``time.perf_counter``.

        Raises :class:`ProcessEnded`.
        """
        try:
            while (message := self._reader.next_request()) is None:
                if self._reader.memory > self._most:
                    raise ProcessEnded("it has sent too much")
                wait = deadline - time.perf_counter()
                if wait <= 0:
                    return None
                poll = self._both if self._unsent else self._reading
                poll.poll(None if wait == math.inf else math.ceil(1000 * wait))
                if self._unsent:
                    self._send_on()
                self._receive_some()
        except ProtocolError as error:
            raise ProcessEnded(str(error)) from None
        return message

    def _receive_some(self) -> None:
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            raise ProcessEnded from None
        if not data:
            raise ProcessEnded
        self._reader.feed(data)

    def is_idle(self) -> bool:
        """True if it waits for a script, and has neither ended nor sent anything."""
        return not self._reader.buffered and not self._reading.poll(0)

    def interrupt(self) -> None:
        """From another thread: make ``send`` and ``receive`` raise :class:`ProcessEnded`."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it has ended

    def close(self) -> str:
        """Kill it, and wait for its end.  Returns why it has ended, if it was before."""
        status, meaning = self._process.end()
        return "it ran out of memory" if status == NO_MEMORY else meaning


def is_one_reply(data: bytes) -> bool:
    r"""True if these bytes are exactly one RESP reply.  O(its elements).

    >>> is_one_reply(b"*2\r\n:1\r\n$2\r\n\r\n\r\n"), is_one_reply(b":1\r\n:2\r\n")
    (True, False)
    """
    at, left = 0, 1
    while left:
        end = data.find(b"\r\n", at)
        if end <= at:  # compiled, a slice that begins after its end raises
            return False
        mark, line = data[at : at + 1], data[at + 1 : end]
        at, left = end + 2, left - 1
        if mark in (b"+", b"-", b":", b",", b"#", b"_", b"("):
            if b"\n" in line or b"\r" in line:
                return False
            continue
        if not _LENGTH.fullmatch(line):
            return False
        length = int(line)
        if mark in (b"$", b"="):
            if length >= 0:
                at += length + 2
                if at > len(data) or data[at - 2 : at] != b"\r\n":
                    return False
        elif mark in (b"*", b"~"):
            left += max(length, 0)
        elif mark == b"%":
            left += 2 * max(length, 0)
        else:
            return False
    return at == len(data)
