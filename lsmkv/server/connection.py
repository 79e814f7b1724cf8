"""A client's connection: bytes in, requests to the engine, replies out."""

from __future__ import annotations

import asyncio
import asyncio.protocols  # where mypyc looks for the base class
import contextlib
import logging
import socket
import time
from collections import deque
from typing import Any

from mypy_extensions import mypyc_attr

from lsmkv.server.engine import Engine
from lsmkv.server.requests import ProtocolError, RequestReader
from lsmkv.server.resp import CommandError

_log = logging.getLogger("lsmkv.server")
_MOST_OUTPUT = 1 << 20
"""Bytes of unsent replies above which the next request waits."""
_UNKNOWN_BULK = 16 * 1024
"""The longest request, in bytes, of a client that has not authenticated."""
_MOST_BEHIND = 64 * 1024
"""Bytes received after a blocking command above which reading stops until it is answered."""


@mypyc_attr(native_class=False)
class Connection(asyncio.protocols.Protocol):
    """A connection: one of asyncio's protocols.

    Requests run as they arrive.  They wait while the client is blocked or a long script runs, and
    while it does not read its replies.  Then nothing more is read from it either, so a slow client
    costs no more memory than the replies that are under way.  A blocked client is still read from,
    up to a bound: otherwise its disconnect would go unnoticed, and an element would be taken for a
    client that is gone.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.transport: Any = None
        """The transport is asyncio's or uvloop's, which share no base class."""
        self._reader = RequestReader(engine.settings.max_bulk)
        self._backlog: deque[bytes] = deque()
        """Chunks that arrived while requests had to wait."""
        self._behind = 0
        """The bytes in them."""
        self._paused = False
        """True while the client does not read, and output waits."""
        self._stopped = False
        """True if reading from the client is paused."""
        self._pumping = False

    def connection_made(self, transport: Any) -> None:
        """Start the session of a new client, or refuse it."""
        self.transport = transport
        engine = self._engine
        connected = transport.get_extra_info("socket")
        peer = transport.get_extra_info("peername")
        local = transport.get_extra_info("sockname")
        self.session = session = engine.open_session(_shown(peer or local), _shown(local))
        session.send = self._send
        session.disconnect = self.transport.abort
        session.hang_up = self.transport.close
        session.on_unblocked = self._resume_later
        session.unread = self._unread
        if connected is not None:
            session.descriptor = connected.fileno()
        refusal = self._refusal(peer)
        if refusal:
            engine.refused_connections += 1
            session.reply(CommandError(refusal))
            self.transport.write(session.take_output())
            session.closing = True
            transport.close()
            return
        if connected is not None and connected.family in (socket.AF_INET, socket.AF_INET6):
            with contextlib.suppress(OSError):  # it may be gone already
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                _keep_alive(connected, engine.settings.tcp_keepalive)

    def _refusal(self, peer: object) -> str:
        """Return the reason for refusing a client; empty if it is accepted."""
        settings = self._engine.settings
        if len(self._engine.sessions) > settings.maxclients:
            return "ERR max number of clients reached"
        outside = (
            isinstance(peer, tuple)
            and peer[0] != "::1"
            and not peer[0].startswith(("127.", "::ffff:127."))
        )
        if outside and settings.protected_mode and self._engine.users.default.any_password:
            return (
                "DENIED lsmkv serve is running in protected mode: without a password, only clients"
                " on this machine are served. Start it with --requirepass, or with"
                " --no-protected-mode if you trust the network."
            )
        return ""

    def data_received(self, data: bytes) -> None:
        """Buffer received bytes, and run the requests in them."""
        self._engine.bytes_in += len(data)
        session = self.session
        if session.closing:
            return
        session.last_active = time.monotonic()
        blocked = session.wait is not None or self._engine.holds_back(session)
        if blocked or self._paused or self._pumping or self._stopped or self._backlog:
            self._backlog.append(data)
            self._behind += len(data)
            if not blocked or self._behind > _MOST_BEHIND:
                self._stop_reading()
            return
        self._reader.feed(data)
        self._pump()

    def _pump(self) -> None:
        """Run the buffered requests.  An unexpected failure ends this connection only."""
        try:
            self._run_requests()
        except Exception:
            address = self.session.address
            _log.exception("the connection of %s failed", address, extra={"client": address})
            self.session.cut()

    def _run_requests(self) -> None:
        session, reader, run = self.session, self._reader, self._engine.run
        while not session.closing:
            if session.wait is not None or self._engine.holds_back(session):
                if self._behind <= _MOST_BEHIND:
                    self._go_on_reading()
                return
            if self._paused or session.unsent > _MOST_OUTPUT:
                self._stop_reading()
                if not self._paused and not session.held:
                    self._resume_later()
                return
            try:
                request = reader.next_request()
            except ProtocolError as error:
                self._refuse(str(error))
                return
            if request is not None:
                run(session, request)
            elif self._backlog:
                data = self._backlog.popleft()
                self._behind -= len(data)
                reader.feed(data)
            else:
                break
        if session.closing:
            session.close()  # at once if there is no reply: a client may have turned replies off
            return
        memory = reader.memory + session.queued_size
        if memory > _UNKNOWN_BULK and session.must_authenticate:
            self._refuse("Protocol error: unauthenticated bulk length")
        elif memory > self._engine.settings.query_buffer_limit:
            self._refuse("Protocol error: too big a request")
        else:
            self._go_on_reading()

    def _unread(self) -> int:
        return self._reader.buffered + self._behind

    def _refuse(self, reason: str) -> None:
        self.session.reply(CommandError(f"ERR {reason}"))
        self.session.close()

    def _stop_reading(self) -> None:
        if not self._stopped and not self.transport.is_closing():
            self._stopped = True
            self.transport.pause_reading()

    def _go_on_reading(self) -> None:
        if self._stopped and not self.transport.is_closing():
            self._stopped = False
            self.transport.resume_reading()

    def _resume_later(self) -> None:
        """Continue with waiting requests in the next tick."""
        if not self._pumping:
            self._pumping = True
            asyncio.get_running_loop().call_soon(self._resume)

    def _resume(self) -> None:
        self._pumping = False
        if not self.transport.is_closing():
            self._pump()

    def _send(self, data: bytes) -> None:
        """Send replies.  The engine calls this once their writes are done."""
        transport = self.transport
        if transport.is_closing():
            return  # uvloop's raises on a connection that is lost
        self._engine.bytes_out += len(data)
        transport.write(data)
        session = self.session
        if session.closing:
            session.close()
            return
        if session.subscribed or session.monitoring:
            limit = self._engine.settings.pubsub_limit
            if limit and not transport.is_closing() and transport.get_write_buffer_size() > limit:
                session.cut()
                return
        if self._stopped and not self._paused:
            self._resume_later()

    def pause_writing(self) -> None:
        """Stop running requests: the client does not read."""
        self._paused = True

    def resume_writing(self) -> None:
        """Run requests again: the client reads."""
        self._paused = False
        self._resume_later()

    def connection_lost(self, error: Exception | None) -> None:
        """Close the session of a lost connection."""
        self._backlog.clear()
        self._reader = RequestReader()
        self._engine.close_session(self.session)


def _keep_alive(connected: Any, seconds: int) -> None:
    """Enable keepalive probes, which find a lost peer within twice ``seconds``.  0: none."""
    if seconds == 0:
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Redis uses the same times: a probe after ``seconds``, then three more in the same time.
    options = {"TCP_KEEPIDLE": seconds, "TCP_KEEPINTVL": max(1, seconds // 3), "TCP_KEEPCNT": 3}
    if not hasattr(socket, "TCP_KEEPIDLE"):
        options["TCP_KEEPALIVE"] = options.pop("TCP_KEEPIDLE")  # macOS
    for name, value in options.items():
        if hasattr(socket, name):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _shown(address: object) -> str:
    if isinstance(address, tuple):
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        return f"{host}:{address[1]}"
    return f"{address or ''}:0"
