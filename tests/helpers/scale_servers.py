"""Object stores that speak S3, each in a process of its own: moto's server and nanio."""

from __future__ import annotations

import contextlib
import http.client
import secrets
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fault_proxy import FaultProxy
from s3_servers import s3_options
from tethered import Tethered

from lsmkv.shards.remote.objects.open import open_objects
from lsmkv.shards.remote.objects.retrying import DEFAULT_LIMITS, Limits, RetryingObjects

_MOTO = """
import logging
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
threading.Event().wait()
"""

_NANIO = """
import pathlib, socket, uvicorn
from nanio.app import build_app
from nanio.auth.credentials import StaticCredentialResolver
from nanio.config import Settings
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
credentials = StaticCredentialResolver({"test": "test"})
app = build_app(Settings(data_dir=pathlib.Path(sys.argv[1]), credentials=credentials))
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
"""


class Bucket(NamedTuple):
    """Where a shard set goes, and how it is reached."""

    url: str
    options: dict[str, object]

    def open(self, limits: Limits = DEFAULT_LIMITS) -> RetryingObjects:
        """The objects in it."""
        return open_objects(self.url, options=self.options, limits=limits)

    def at(self, endpoint: str) -> Bucket:
        """The same one by another way, such as past a proxy."""
        return self._replace(options={**self.options, "endpoint": endpoint})


@contextlib.contextmanager
def moto_server(log: Path) -> Iterator[tuple[str, int]]:
    """Moto's server: its host and port.  It checks conditions of a PUT, but not atomically."""
    with Tethered(_MOTO, log=log) as server:
        yield "127.0.0.1", int(server.read_line())


@contextlib.contextmanager
def nanio_server(directory: Path, log: Path) -> Iterator[str]:
    """A nanio with a bucket ``test``; it ignores the conditions of a PUT."""
    (directory / "test").mkdir(parents=True)
    with Tethered(_NANIO, str(directory), log=log) as server:
        yield f"http://127.0.0.1:{server.read_line()}"


def new_bucket(proxy: FaultProxy) -> Bucket:
    """An empty bucket of the server behind a proxy, by way of the proxy."""
    name = f"test-{secrets.token_hex(8)}"
    with contextlib.closing(http.client.HTTPConnection(*proxy.upstream, timeout=30)) as connection:
        connection.request("PUT", f"/{name}")
        reply = connection.getresponse()
        assert reply.status == 200, reply.read()
    return Bucket(f"s3://{name}/set", s3_options(proxy.url))


def object_requests(proxy: FaultProxy) -> list[str]:
    """What the requests since ``forget`` were about: names below the set, or ``?list`` for one."""
    names = []
    for request in proxy.requests:
        path, _, query = urllib.parse.unquote(request.path).partition("?")
        names.append("?list" if "list-type" in query else path.partition("/set/")[2])
    return names
