"""``lsmkv.server.Server``: serves a store with Redis' protocol."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Never, Self

from lsmkv.engine.db.db import DB
from lsmkv.engine.db.opening.directory import LockWait
from lsmkv.engine.env.unix_sockets import bind_unix_socket
from lsmkv.engine.errors import Error, LockedError
from lsmkv.engine.options import Options, checked_lock_timeout
from lsmkv.engine.util.copying import refuse_copy
from lsmkv.server.commands import COMMANDS
from lsmkv.server.commands.raw import RAW_COMMANDS
from lsmkv.server.connection import Connection
from lsmkv.server.database import DATABASES
from lsmkv.server.descriptors import Room, reserve
from lsmkv.server.disk_limit import DiskLimit
from lsmkv.server.engine import Engine
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.metrics import MetricsPage
from lsmkv.server.queue_depths import QueueDepths
from lsmkv.server.raw_keyspace import RawKeyspace
from lsmkv.server.script_choice import ScriptChoice
from lsmkv.server.settings import Settings, Sync, parse_size
from lsmkv.server.tls import TLS, AuthClients

DEFAULT_PORT = 6379
WRITE_BUFFER_SIZE = 32 * 2**20
CACHE_SIZE = 16 * 2**20
"""Memory for the memtable and the block cache, in bytes, if no size is given.  Larger memtables
mean less compaction.  The system also caches files, and a server of several GB is to take less than
200 MB."""
_TLS_SECONDS = 10.0
"""The seconds that a client may take to begin TLS, or to end it."""
_log = logging.getLogger("lsmkv.server")


class Server:
    """Serves a store to Redis clients, in the running asyncio loop.

    >>> import asyncio, socket
    >>> async def main():
    ...     async with Server(":memory:", port=0) as server:
    ...         reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    ...         writer.write(b"SET greeting hello\\r\\nGET greeting\\r\\n")
    ...         await writer.drain()
    ...         answers = [await reader.readline() for _ in range(3)]
    ...         writer.close()
    ...         return answers
    >>> asyncio.run(main())
    [b'+OK\\r\\n', b'$5\\r\\n', b'hello\\r\\n']

    ``start`` opens the store and ``stop`` closes it; an ``async with`` block does both.  All
    commands run in the loop's thread, one after the other.  The log is synced in another thread.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        host: str | None = "127.0.0.1",
        port: int | None = DEFAULT_PORT,
        unix_socket: str | os.PathLike[str] | None = None,
        unix_socket_mode: int | None = None,
        tls_port: int | None = None,
        tls_cert_file: str | os.PathLike[str] = "",
        tls_key_file: str | os.PathLike[str] = "",
        tls_ca_cert_file: str | os.PathLike[str] = "",
        tls_auth_clients: AuthClients | None = None,
        appendfsync: Sync = "everysec",
        password: str = "",
        acl_file: str | os.PathLike[str] = "",
        protected_mode: bool = True,
        maxclients: int = 10_000,
        timeout: int = 0,
        max_disk: int | str = 0,
        maxmemory_policy: str = "noeviction",
        raw: bool = False,
        read_only: bool = False,
        refresh_seconds: float = 1.0,
        scripts: str | Iterable[str] | None = None,
        metrics_port: int | None = None,
        queues: Sequence[str] = (),
        **options: Any,
    ) -> None:
        """Prepare a server of the store ``path``, or ``":memory:"``.

        ``host=None`` opens no TCP port, and ``port=None`` none without TLS.  Port 0 takes a free
        one: see :attr:`port`.  ``unix_socket_mode`` is the mode of the Unix socket, such as
        ``0o660``; by default the umask decides.

        ``tls_port`` is a port for TLS.  It needs ``tls_cert_file``, and ``tls_key_file`` unless
        that file has the key, in PEM.  With ``tls_ca_cert_file`` clients must have a certificate
        of these authorities, unless ``tls_auth_clients`` is ``"optional"`` or ``"no"``.

        ``password`` is that of the user ``default``.  ``acl_file`` is a file of users, as Redis has
        it, which ``start`` reads; it may be used instead of ``password``.
        ``max_disk`` is a limit in bytes, or text such as ``"10gb"``, for the store's size on disk.
        Beyond it keys are evicted by ``maxmemory_policy``, or commands that make the store grow are
        refused.

        ``raw`` serves an ordinary store's keys as strings.  ``read_only`` serves a store that
        another process may write, and looks for new writes every ``refresh_seconds``.  ``options``
        are those of :class:`lsmkv.DB`.  The store is made if it does not exist.

        ``scripts`` says where Lua scripts run: ``"inline"``, in this process; ``"process"``, in a
        separate process; ``"off"``, nowhere.  A list of SHA-1, in hexadecimal digits, lets
        these run inline, and refuses others.  By default scripts run inline, but in a process of
        their own if ``host`` is an address that other machines reach.
        ``metrics_port`` is a port of ``host`` that answers HTTP requests for ``/metrics``, for
        Prometheus, without a password.  ``queues`` are the names of keys whose length is shown
        there; without any, the queues of Celery, RQ, Dramatiq and Huey are found.

        ``maxclients`` and ``max_open_files`` are as large as the descriptors of this process allow.
        ``start`` raises the process's limit if it may, and logs a warning if there must be fewer
        clients.

        Raises ``ValueError`` for invalid settings.
        """
        if unix_socket is None and (host is None or (port is None and tls_port is None)):
            raise ValueError("a server needs a host, a Unix socket, or both")
        if host is None and tls_port is not None:
            raise ValueError("tls_port needs a host")
        if host is None and metrics_port is not None:
            raise ValueError("metrics_port needs a host")
        if refresh_seconds <= 0:
            raise ValueError("refresh_seconds must be more than 0")
        self.path = os.fsdecode(path)
        self.host = host
        self._has_port = host is not None and port is not None
        self.port = port or 0
        """The port without TLS; after ``start``, the port that is in use."""
        self.tls_port = tls_port
        """The port for TLS; after ``start``, the port that is in use.  None if there is none."""
        self.metrics_port = metrics_port
        """The port for ``/metrics``; after ``start``, the port that is in use."""
        self._queue_names = [name.encode("utf-8", "surrogateescape") for name in queues]
        self._queues: QueueDepths | None = None
        self._limit: DiskLimit | None = None
        self._tls: TLS | None = None
        if tls_port is not None:
            files = [os.fsdecode(one) for one in (tls_cert_file, tls_key_file, tls_ca_cert_file)]
            self._tls = TLS(files[0], files[1], files[2], tls_auth_clients)
        self._context: ssl.SSLContext | None = None
        self.unix_socket = None if unix_socket is None else os.fsdecode(unix_socket)
        self._unix_socket_mode = unix_socket_mode
        self.raw = raw
        self.read_only = read_only
        self._refresh_seconds = refresh_seconds
        self._options = {
            "create_if_missing": not (read_only or raw),
            "write_buffer_size": WRITE_BUFFER_SIZE,
            "lru_cache_size": CACHE_SIZE,
        } | options
        self.settings = Settings(
            appendfsync=appendfsync,
            password=password,
            acl_file=os.fsdecode(acl_file),
            protected_mode=protected_mode,
            maxclients=maxclients,
            timeout=timeout,
            scripts=ScriptChoice.of(scripts, host),
            max_disk=max_disk if isinstance(max_disk, int) else parse_size(max_disk),
            eviction=maxmemory_policy,
        )
        self._listeners: list[asyncio.Server] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping: asyncio.Event | None = None
        self._engine: Engine | None = None

    @property
    def db(self) -> DB:
        """The open store; ``RuntimeError`` before ``start`` and after ``stop``.

        You may read from it.  Writing to it corrupts the counts that commands keep.
        """
        return self.engine.db

    @property
    def engine(self) -> Engine:
        """Runs the commands; ``RuntimeError`` before ``start`` and after ``stop``."""
        if self._engine is None:
            raise RuntimeError("the server is not running")
        return self._engine

    async def start(self) -> None:
        """Open the store, and listen.

        Raises what opening raises, and ``ValueError`` if the store holds other data and ``raw`` is
        not set.  Raises ``OSError`` if the address is in use, or if the process may have so few
        files open that no client could be served.
        """
        room = self._reserve_descriptors()
        context = self._context = None if self._tls is None else self._tls.context()
        db = await self._open_when_unlocked(room.tables)
        try:
            keyspace, table = (RawKeyspace, RAW_COMMANDS) if self.raw else (Keyspace, COMMANDS)
            space = keyspace(db, writable=not self.read_only)
            engine = self._engine = Engine(db, space, table, self.settings)
            loop = asyncio.get_running_loop()
            engine.schedule = loop.call_soon
            self._stopping = asyncio.Event()
            engine.on_shutdown = self._stopping.set
            await self._listen(loop, lambda: Connection(engine), room.backlog, context)
            await self._listen_for_metrics(engine)
        except BaseException:
            self._engine = None
            self._close_listeners()
            db.close()
            raise
        self.settings.fixed = {
            "appendonly": "yes",
            "bind": self.host or "",
            "databases": "1" if self.raw else str(DATABASES),
            "dir": self.path,
            "port": str(self.port if self._has_port else 0),
            "save": "",
            "scripts": self.settings.scripts.name,
            "tls-port": str(self.tls_port or 0),
            "unixsocket": self.unix_socket or "",
            "unixsocketperm": f"{self._unix_socket_mode or 0:o}",
        }
        if self._tls is not None:
            self.settings.fixed |= {
                "tls-auth-clients": self._tls.auth_clients,
                "tls-ca-cert-file": self._tls.authorities,
                "tls-cert-file": self._tls.certificate,
                "tls-key-file": self._tls.key,
            }
        if self.read_only:
            work = [self._refresh()]
        else:
            work = [engine.syncs.every_second(), engine.tidy(), self._limit_disk(engine)]
        work.append(self._every_second())
        self._tasks = [loop.create_task(one) for one in work]

    def _reserve_descriptors(self) -> Room:
        """Limit clients and tables to the files that this process may have open."""
        settings = self.settings
        tables = self._options.get("max_open_files") or Options().max_open_files
        room = reserve(settings.maxclients, tables)
        if room.clients < settings.maxclients:
            _log.warning(
                "maxclients is %d instead of %d: this process may not open more files (ulimit -n)",
                *(room.clients, settings.maxclients),
            )
            settings.maxclients = room.clients
        settings.most_clients = lambda clients: reserve(clients, room.tables).clients
        return room

    async def _listen(
        self,
        loop: asyncio.AbstractEventLoop,
        protocol: Callable[[], Connection],
        backlog: int,
        context: ssl.SSLContext | None,
    ) -> None:
        if self._has_port:
            listener = await loop.create_server(protocol, self.host, self.port, backlog=backlog)
            self._listeners.append(listener)
            self.port = listener.sockets[0].getsockname()[1]
        if context is not None and self.tls_port is not None:
            listener = await loop.create_server(
                protocol,
                self.host,
                self.tls_port,
                backlog=backlog,
                ssl=context,
                ssl_handshake_timeout=_TLS_SECONDS,
                ssl_shutdown_timeout=_TLS_SECONDS,
            )
            self._listeners.append(listener)
            self.tls_port = listener.sockets[0].getsockname()[1]
        if self.unix_socket is not None:
            bound = bind_unix_socket(self.unix_socket, self._unix_socket_mode)
            made = await loop.create_unix_server(protocol, sock=bound, backlog=backlog)
            self._listeners.append(made)

    async def _listen_for_metrics(self, engine: Engine) -> None:
        if self.metrics_port is not None:
            self._queues = QueueDepths(engine.space, self._queue_names)
            answer = MetricsPage(engine, self._queues).answer
            listener = await asyncio.start_server(answer, self.host, self.metrics_port)
            self._listeners.append(listener)
            self.metrics_port = listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Run the requests that were received, send the replies, sync, and close the store.

        A second call has no effect.  Raises what closing the store raises.
        """
        engine = self._engine
        if engine is None:
            return
        self._close_listeners()
        if self._limit is not None:
            self._limit.end()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        await engine.evaluator.abandon()
        await engine.reads.drain()
        await engine.writes.drain()
        await engine.staging.drain()
        engine.end_pause()
        for session in list(engine.sessions.values()):
            engine.waits.unblock(session, error=True)
        engine.commit()
        try:
            await engine.syncs.drain()
        finally:
            await self._disconnect_all(engine)
            self._engine = None
            engine.evaluator.close()
            engine.db.close()

    async def _disconnect_all(self, engine: Engine) -> None:
        """Close the connections once their replies are sent, or after a second."""
        for session in list(engine.sessions.values()):
            session.close()
        for _ in range(100):
            if not engine.sessions:
                return
            await asyncio.sleep(0.01)
        for session in list(engine.sessions.values()):
            session.disconnect()

    def _close_listeners(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._listeners = []

    async def serve_until_shutdown(self) -> None:
        """Wait for the command SHUTDOWN, or for a call of :meth:`shut_down`."""
        assert self._stopping is not None
        await self._stopping.wait()

    def reload_certificates(self) -> None:
        """Read the certificate and its key again: new connections get them.

        Raises what :meth:`start` raises for them; the earlier ones stay in use.
        """
        if self._tls is not None and self._context is not None:
            self._tls.context()  # checks them
            self._tls.load(self._context)

    def shut_down(self) -> None:
        """End :meth:`serve_until_shutdown`.  Signal handlers may call it."""
        if self._stopping is not None:
            self._stopping.set()

    async def _open_when_unlocked(self, tables: int) -> DB:
        """Open the store with at most this many open tables.  Waits for its lock here, so that the
        loop is not blocked."""
        options = self._options | {"max_open_files": tables}
        wait = LockWait(checked_lock_timeout(options.pop("lock_timeout", 0.0)))
        while True:
            try:
                return DB(self.path, read_only=self.read_only, **options)
            except LockedError:
                pause = wait.pause()
                if pause == 0:
                    raise
            await asyncio.sleep(pause)

    def __reduce__(self) -> Never:
        refuse_copy("a server", "it listens in this process: start another server there")

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def _every_second(self) -> None:
        while True:
            await asyncio.sleep(1)
            self.engine.rates.sample(self.engine.totals)
            self._look_at_queues()
            self._disconnect_idle()

    async def _limit_disk(self, engine: Engine) -> None:
        limit = self._limit = DiskLimit(engine)
        while True:
            await asyncio.sleep(1)
            try:
                await limit.look()
            except (Error, OSError) as error:
                engine.fail("limiting the disk failed", error)
            except Exception:  # otherwise the disk would fill without notice
                _log.exception("limiting the disk failed")

    def _look_at_queues(self) -> None:
        if self._queues is None or self.engine.is_busy() or self.raw:
            return  # no script may see what another reads, and a raw store has no queues
        try:
            self._queues.look()
        except (Error, OSError) as error:
            _log.warning("looking at queues failed: %s", error)
        self.engine.space.records.touched = False

    def _disconnect_idle(self) -> None:
        timeout = self.settings.timeout
        if timeout == 0:
            return
        now = time.monotonic()
        for session in list(self.engine.sessions.values()):
            idle = now - session.last_active > timeout
            listens = session.subscribed or session.monitoring
            waits = session.wait or session.evaluating or session.postponed
            if idle and session.closing:
                session.disconnect()  # the client does not read the rest of its replies
            elif idle and not (waits or listens):
                session.close()

    async def _refresh(self) -> None:
        """Follow the writer of a store that is open for reading only."""
        while True:
            await asyncio.sleep(self._refresh_seconds)
            try:
                await asyncio.get_running_loop().run_in_executor(None, self.engine.db.refresh)
                if self.engine.busy is None:
                    self.engine.space.reload()
            except (Error, OSError) as error:
                _log.warning("refreshing failed: %s", error)
            except Exception:
                _log.exception("refreshing failed")
