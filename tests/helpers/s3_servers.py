"""A server that speaks S3, by moto, and buckets in it."""

from __future__ import annotations

import contextlib
import http.client
import logging
import threading
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest


class S3Server(NamedTuple):
    """Where the server listens."""

    host: str
    port: int

    def new_bucket(self) -> str:
        """The name of an empty bucket that no other test uses."""
        name = f"test-{uuid.uuid4().hex}"
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        try:
            connection.request("PUT", f"/{name}")
            reply = connection.getresponse()
            reply.read()
            assert reply.status == 200
        finally:
            connection.close()
        return name


@contextlib.contextmanager
def an_s3_server() -> Iterator[S3Server]:
    """A server for some tests; they are skipped where moto is not installed.

    It carries out one request at a time: moto's own state bears no threads, and a read beside a
    write may end in status 500.  Connections are served side by side.
    """
    moto = pytest.importorskip("moto.server")
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    app = moto.DomainDispatcherApplication(moto.create_backend_app)
    mutex = threading.Lock()

    def one_at_a_time(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        with mutex, contextlib.closing(app(environ, start_response)) as reply:
            return list(reply)

    server = make_server("127.0.0.1", 0, one_at_a_time, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield S3Server("127.0.0.1", server.server_port)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def s3_options(endpoint: str) -> dict[str, object]:
    """Options for ``open_objects`` with a server on this machine, or a proxy before it."""
    return {
        "endpoint": endpoint,
        "access_key_id": "test",
        "secret_access_key": "test",
        "region": "us-east-1",
        "allow_http": True,
    }
