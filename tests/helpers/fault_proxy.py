"""A proxy for HTTP that forwards requests to a server, and fails some of them as networks do.

What fails is said by a plan (:meth:`FaultProxy.plan`), by a probability
(:meth:`FaultProxy.fail_randomly`), or both; :meth:`FaultProxy.heal` ends it.  The proxy also writes
down every request, so that tests count them::

    with FaultProxy(host, port) as proxy:
        proxy.plan(Status(503), Cut(), LostReply())
        ...                                  # three requests fail, one after the other
        assert proxy.counts["GET"] == 4
"""

from __future__ import annotations

import http.client
import random
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

_HOP_BY_HOP = frozenset(("connection", "keep-alive", "transfer-encoding", "expect"))
_S3_CODES = {
    400: "BadRequest",
    403: "AccessDenied",
    404: "NoSuchKey",
    409: "ConditionalRequestConflict",
    412: "PreconditionFailed",
    416: "InvalidRange",
    429: "TooManyRequests",
    500: "InternalError",
    503: "SlowDown",
}


# Faults


class Cut(NamedTuple):
    """The connection ends before the request has any effect."""


class LostReply(NamedTuple):
    """The request is carried out; the connection ends instead of the reply."""


class Delay(NamedTuple):
    """The request is carried out after some seconds."""

    seconds: float


class Status(NamedTuple):
    """The server is not asked; the reply is an error, worded as S3 does."""

    status: int
    code: str = ""
    """S3's name for it; the usual one by default."""
    message: str = "made by the proxy"


class Truncate(NamedTuple):
    """The reply ends early: the connection is cut after this many bytes of the body."""

    keep: int


class Shorten(NamedTuple):
    """The reply has fewer bytes than the object or range, and a Content-Length that agrees."""

    keep: int


Fault = Cut | LostReply | Delay | Status | Truncate | Shorten


class Request(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    """With the query."""
    headers: dict[str, str]
    """Names in lower case."""
    length: int
    """Bytes of the body."""
    fault: Fault | None
    """What became of it; None if it was forwarded, and its reply came whole."""


class _Step(NamedTuple):
    fault: Fault | None
    applies: Callable[[str, str], bool]


class FaultProxy:
    """The proxy.  Give clients :attr:`url`, or :attr:`host` and :attr:`port`.

    ``serialize_puts`` forwards one PUT at a time, for a server whose check of ``If-None-Match`` is
    not atomic.
    """

    def __init__(self, host: str, port: int, *, serialize_puts: bool = False) -> None:
        self.upstream = (host, port)
        self.requests: list[Request] = []
        """In the order in which they came in."""
        self.most_at_once = 0
        """Requests that were under way at one time."""
        self.errors: list[BaseException] = []
        """What went wrong in the proxy itself; raised when it is closed."""
        self._mutex = threading.Lock()
        self._put_mutex: threading.Lock | None = threading.Lock() if serialize_puts else None
        self._steps: list[_Step] = []
        self._random: Callable[[str, str], Fault | None] = lambda method, path: None
        self._under_way = 0
        self._stopped = threading.Event()
        self._server = _Server(self)
        self.host, self.port = self._server.server_address[:2]
        self.url = f"http://{self.host}:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    # What fails

    def plan(
        self, *faults: Fault | None, methods: Iterable[str] = (), path: str = "", after: int = 0
    ) -> None:
        """Let the next requests meet these faults in their order; None lets one through.

        ``methods`` and ``path``, a part of the path, say which requests count; by default all do.
        ``after`` of them are let through first.  Further plans go on behind this one, each for its
        own requests.
        """
        chosen = frozenset(methods)

        def applies(method: str, its_path: str) -> bool:
            return (not chosen or method in chosen) and path in its_path

        with self._mutex:
            self._steps += [_Step(fault, applies) for fault in (None,) * after + faults]

    def fail_randomly(
        self,
        probability: float,
        faults: Iterable[Fault],
        *,
        seed: int = 0,
        methods: Iterable[str] = (),
    ) -> None:
        """Let a request for which there is no plan meet one of these, with this probability."""
        rng, kinds, chosen = random.Random(seed), list(faults), frozenset(methods)

        def draw(method: str, path: str) -> Fault | None:
            if (chosen and method not in chosen) or rng.random() >= probability:
                return None
            return rng.choice(kinds)

        with self._mutex:
            self._random = draw

    def heal(self) -> None:
        """Let every request through from now on."""
        with self._mutex:
            self._steps = []
            self._random = lambda method, path: None

    # What came

    @property
    def counts(self) -> Counter[str]:
        """Requests by method, those that failed included."""
        with self._mutex:
            return Counter(request.method for request in self.requests)

    @property
    def faults(self) -> int:
        """How many requests met a fault."""
        with self._mutex:
            return sum(request.fault is not None for request in self.requests)

    @property
    def under_way(self) -> int:
        """Requests that have come and are not answered, whether or not their clients live."""
        with self._mutex:
            return self._under_way

    def forget(self) -> None:
        """Count from zero."""
        with self._mutex:
            self.requests = []
            self.most_at_once = 0

    def cut_all(self) -> None:
        """End every connection now."""
        self._server.cut_all()

    def close(self) -> None:
        """Stop, and end every connection.  Raises what went wrong in the proxy."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._server.shutdown()
        self._thread.join()
        self._server.cut_all()
        self._server.server_close()  # waits for the threads
        if self.errors:
            raise self.errors[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # For the threads of the requests

    def begin(self, method: str, path: str, headers: dict[str, str], length: int) -> Fault | None:
        """Write down a request, and choose its fault."""
        with self._mutex:
            fault = self._next_fault(method, path)
            self.requests.append(Request(method, path, headers, length, fault))
            self._under_way += 1
            self.most_at_once = max(self.most_at_once, self._under_way)
            return fault

    def end(self) -> None:
        with self._mutex:
            self._under_way -= 1

    def wait(self, seconds: float) -> None:
        self._stopped.wait(seconds)

    def forward(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """The server's reply: status, headers and body."""
        if method == "PUT" and self._put_mutex is not None:
            with self._put_mutex:
                return self._ask(method, path, headers, body)
        return self._ask(method, path, headers, body)

    def _next_fault(self, method: str, path: str) -> Fault | None:
        for at, step in enumerate(self._steps):
            if step.applies(method, path):
                del self._steps[at]
                return step.fault
        return self._random(method, path)

    def _ask(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(*self.upstream, timeout=30)
        try:
            sent = {name: value for name, value in headers.items() if name not in _HOP_BY_HOP}
            sent["content-length"] = str(len(body))
            connection.request(method, path, body, sent)
            reply = connection.getresponse()
            return reply.status, reply.getheaders(), reply.read()
        finally:
            connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # close() waits for them
    request_queue_size = 128

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy = proxy
        self._open: set[socket.socket] = set()
        self._mutex = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._mutex:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._mutex:
            self._open.discard(request)
        super().shutdown_request(request)

    def cut_all(self) -> None:
        with self._mutex:
            for connection in self._open:
                _end(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: the handler has kept what is of interest."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    wbufsize = -1
    disable_nagle_algorithm = True  # a reply of several writes would wait for 40 ms

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""

    def _serve(self) -> None:
        proxy = self.server.proxy
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            body = self._body(headers)
            fault = proxy.begin(self.command, self.path, headers, len(body))
            try:
                self._answer(proxy, fault, headers, body)
            finally:
                proxy.end()
        except (ConnectionError, TimeoutError):  # by the client, or by cut_all
            self.close_connection = True
        except BaseException as error:
            self.close_connection = True
            proxy.errors.append(error)

    def _answer(
        self, proxy: FaultProxy, fault: Fault | None, headers: dict[str, str], body: bytes
    ) -> None:
        if isinstance(fault, Cut):
            return self._cut()
        if isinstance(fault, Status):
            return self._reply_error(fault)
        if isinstance(fault, Delay):
            proxy.wait(fault.seconds)
        status, its_headers, data = proxy.forward(self.command, self.path, headers, body)
        if isinstance(fault, LostReply):
            return self._cut()
        announced = len(data)
        if isinstance(fault, Shorten | Truncate):
            data = data[: fault.keep]
        if isinstance(fault, Shorten):
            announced = len(data)
        self._reply(status, its_headers, data, announced)
        if len(data) < announced:
            self._cut()
        return None

    def _reply(
        self, status: int, headers: Iterable[tuple[str, str]], data: bytes, announced: int
    ) -> None:
        bare = self.command == "HEAD" or status in (204, 304)
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in _HOP_BY_HOP and (bare or name.lower() != "content-length"):
                self.send_header(name, value)
        if not bare:
            self.send_header("Content-Length", str(announced))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def _reply_error(self, fault: Status) -> None:
        code = fault.code or _S3_CODES.get(fault.status, "Error")
        text = f"<Error><Code>{code}</Code><Message>{fault.message}</Message></Error>"
        data = text.encode()
        self._reply(fault.status, [("Content-Type", "application/xml")], data, len(data))

    def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() != "chunked":
            length = int(headers.get("content-length", 0))
            data = self.rfile.read(length)
            if len(data) < length:
                raise ConnectionAbortedError("the client died in the middle of its request")
            return data
        parts: list[bytes] = []
        while length := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(length))
            self.rfile.readline()
        while self.rfile.readline().strip():  # trailers
            pass
        return b"".join(parts)

    def _cut(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        _end(self.connection)


def _end(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # it has ended already
        pass
