"""A server for Redis clients that runs as long as a test needs it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lsmkv.server.server import Server


@contextmanager
def serving(path: str | os.PathLike[str] = ":memory:", **settings: Any) -> Iterator[Server]:
    """A server for Redis clients on a free port of this machine, in a thread, while the block runs.

    ``settings`` are those of :class:`lsmkv.server.Server`, whose ``port`` says where it listens.
    The fixture ``lsmkv_server`` of ``lsmkv.pytest_plugin`` is one for pytest.  Costs a thread.
    Raises what starting a server raises, and ``ImportError`` without the extra ``server``.

    >>> import socket
    >>> with serving() as server, socket.create_connection(("127.0.0.1", server.port)) as client:
    ...     client.sendall(b"PING\\r\\n")
    ...     client.recv(100)
    b'+PONG\\r\\n'
    """
    from lsmkv.server.server import Server  # noqa: PLC0415 - hiredis is an extra
    from lsmkv.server.thread import server_in_thread  # noqa: PLC0415

    with server_in_thread(Server(path, **{"port": 0, **settings})) as server:
        yield server
