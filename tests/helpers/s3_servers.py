"""A server that speaks S3, by moto, and buckets in it."""

from __future__ import annotations

import contextlib
import http.client
import logging
import uuid
from collections.abc import Iterator
from typing import NamedTuple

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
    """A server for some tests; they are skipped where moto is not installed."""
    server = pytest.importorskip("moto.server")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    try:
        yield S3Server(*running.get_host_and_port())
    finally:
        running.stop()


def s3_options(endpoint: str) -> dict[str, object]:
    """Options for ``open_objects`` with a server on this machine, or a proxy before it."""
    return {
        "endpoint": endpoint,
        "access_key_id": "test",
        "secret_access_key": "test",
        "region": "us-east-1",
        "allow_http": True,
    }
