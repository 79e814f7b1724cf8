"""The proxy that tests fail requests with: what it promises to them."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from fault_proxy import Cut, Delay, FaultProxy, LostReply, Shorten, Status, Truncate
from waiting import wait_until

BODY = b"0123456789"


class Upstream(ThreadingHTTPServer):
    """Answers everything with the same ten bytes, and keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.got: list[tuple[str, str, bytes]] = []
        self.under_way = 0
        self.most_puts = 0
        self.mutex = threading.Lock()


class _Handler(BaseHTTPRequestHandler):
    server: Upstream

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        with self.server.mutex:
            self.server.got.append((self.command, self.path, body))
            self.server.under_way += 1
            self.server.most_puts = max(self.server.most_puts, self.server.under_way)
        threading.Event().wait(0.005)
        with self.server.mutex:
            self.server.under_way -= 1
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(BODY)

    do_GET = do_PUT = do_HEAD = do_PROPFIND = _answer

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def proxy(upstream: Upstream) -> Iterator[FaultProxy]:
    with FaultProxy("127.0.0.1", upstream.server_port) as proxy:
        yield proxy


def ask(
    proxy: FaultProxy, method: str = "GET", path: str = "/x", body: bytes | None = None
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(proxy.host, proxy.port, timeout=30)
    try:
        connection.request(method, path, body)
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


@pytest.mark.parametrize("method", ["GET", "PUT", "PROPFIND"])
def test_requests_are_forwarded_whole(upstream: Upstream, proxy: FaultProxy, method: str) -> None:
    assert ask(proxy, method, "/a/b?c=d", b"sent") == (200, BODY)
    assert upstream.got == [(method, "/a/b?c=d", b"sent")]
    (request,) = proxy.requests
    assert (request.method, request.path, request.length) == (method, "/a/b?c=d", 4)
    assert request.fault is None


def test_chunked_bodies_and_kept_connections(upstream: Upstream, proxy: FaultProxy) -> None:
    connection = http.client.HTTPConnection(proxy.host, proxy.port, timeout=30)
    connection.request("PUT", "/x", iter([b"ab", b"", b"cde"]), encode_chunked=True)
    assert connection.getresponse().read() == BODY
    connection.request("HEAD", "/y")
    reply = connection.getresponse()
    assert (reply.headers["content-length"], reply.read()) == ("10", b"")
    connection.close()
    assert upstream.got == [("PUT", "/x", b"abcde"), ("HEAD", "/y", b"")]


def test_faults_come_in_the_order_of_the_plan(upstream: Upstream, proxy: FaultProxy) -> None:
    proxy.plan(Status(503), None, Shorten(3), Truncate(4), Cut(), LostReply(), Delay(0.01))
    status, text = ask(proxy)
    assert status == 503
    assert b"<Code>SlowDown</Code>" in text
    assert ask(proxy) == (200, BODY)
    assert ask(proxy) == (200, BODY[:3])
    with pytest.raises(http.client.IncompleteRead) as caught:
        ask(proxy)
    assert caught.value.partial == BODY[:4]
    before = len(upstream.got)
    for reached in (0, 1):
        with pytest.raises(ConnectionError):
            ask(proxy)
        assert len(upstream.got) == before + reached
    assert ask(proxy) == (200, BODY)
    assert ask(proxy) == (200, BODY)
    assert (proxy.counts["GET"], proxy.faults) == (8, 6)


def test_a_plan_is_for_some_requests(proxy: FaultProxy) -> None:
    proxy.plan(Status(500), methods={"PUT"}, path="/v/", after=1)
    proxy.plan(Status(403), path="/w")
    found = [
        ask(proxy, method, path)[0]
        for method, path in (
            *(("GET", "/v/1"), ("PUT", "/x"), ("PUT", "/v/1"), ("PUT", "/v/2"), ("PUT", "/v/3")),
            *(("GET", "/w"), ("GET", "/w")),
        )
    ]
    assert found == [200, 200, 200, 500, 200, 403, 200]


def test_random_faults_are_repeated_by_their_seed(proxy: FaultProxy) -> None:
    def draw(seed: int) -> list[int]:
        proxy.fail_randomly(0.5, [Status(500), Status(503)], seed=seed, methods={"GET"})
        return [ask(proxy)[0] for _ in range(20)]

    first = draw(1)
    assert set(first) == {200, 500, 503}
    assert draw(1) == first
    assert draw(2) != first
    assert ask(proxy, "PUT")[0] == 200
    proxy.heal()
    proxy.forget()
    assert [ask(proxy)[0] for _ in range(20)] == [200] * 20
    assert (proxy.counts["GET"], proxy.faults) == (20, 0)


@pytest.mark.parametrize("serialize", [False, True])
def test_puts_are_forwarded_one_by_one_if_asked(upstream: Upstream, serialize: bool) -> None:
    with (
        FaultProxy("127.0.0.1", upstream.server_port, serialize_puts=serialize) as proxy,
        ThreadPoolExecutor(8) as pool,
    ):
        list(pool.map(lambda _: ask(proxy, "PUT"), range(24)))
        assert proxy.most_at_once > 1
    assert (upstream.most_puts == 1) == serialize


def test_closing_waits_for_no_delay(upstream: Upstream) -> None:
    with FaultProxy("127.0.0.1", upstream.server_port) as proxy, ThreadPoolExecutor(1) as pool:
        proxy.plan(Delay(3600))
        waiting = pool.submit(ask, proxy)
        wait_until(lambda: len(proxy.requests) == 1)
        proxy.close()
        assert waiting.exception() is not None or waiting.result() == (200, BODY)


def test_every_connection_can_be_cut(proxy: FaultProxy) -> None:
    proxy.plan(Delay(3600))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask, proxy)
        wait_until(lambda: len(proxy.requests) == 1)
        proxy.cut_all()
        assert isinstance(waiting.exception(), ConnectionError)
        proxy.close()


def test_a_server_that_is_down_cuts_connections() -> None:
    with FaultProxy("127.0.0.1", 1) as proxy, pytest.raises(ConnectionError):
        ask(proxy)
