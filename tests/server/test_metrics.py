"""``/metrics``, as Prometheus reads it."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from lsmkv.engine.db.observe.openmetrics import CONTENT_TYPE
from lsmkv.server import Server

PLACE = {"db": "0", "queue": "rq:queue:default"}


async def asked(port: int | None, request: bytes) -> tuple[str, str]:
    """The head and the body of an answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = (await reader.read()).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    return head, body


def test_prometheus_reads_the_figures(runner: asyncio.Runner) -> None:
    async def main() -> None:
        async with Server(":memory:", port=0, metrics_port=0) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"RPUSH rq:queue:default a b\r\nGET none\r\nGET rq:queue:default\r\n")
            assert [await reader.readline() for _ in range(2)] == [b":2\r\n", b"$-1\r\n"]
            await reader.readline()
            server._look_at_queues()
            head, body = await asked(server.metrics_port, b"GET /metrics HTTP/1.1\r\n\r\n")
            writer.close()
        assert head.startswith("HTTP/1.1 200 OK\r\n")
        assert f"Content-Type: {CONTENT_TYPE}\r\n" in head
        assert f"Content-Length: {len(body)}\r\n" in head
        found = {
            (sample.name.removeprefix("lsmkv_"), *sorted(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(body)
            for sample in family.samples
        }
        assert found["serve_queue_jobs", *PLACE.items()] == 2
        assert 0 <= found["serve_queue_oldest_job_age_seconds", *PLACE.items()] < 60
        assert found["serve_connected_clients",] == 1
        assert found["serve_keyspace_hits_total",] == found["serve_keyspace_misses_total",] == 1
        assert found["serve_errors_total", ("error", "WRONGTYPE")] == 1
        assert found["serve_command_calls_total", ("command", "rpush")] >= 1
        assert found["serve_keys", ("db", "0")] == 1
        assert found["writes_total", ("store", ":memory:")] >= 1

    runner.run(main())


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /metrics?x=1 HTTP/1.0\r\n\r\n", "200 OK"),
        (b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK"),
        (b"GET / HTTP/1.1\r\n\r\n", "404 Not Found"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        (b"\r\n\r\n", "405 Method Not Allowed"),
        (b"x" * 100_000, ""),
    ],
)
def test_requests(runner: asyncio.Runner, request_: bytes, status: str) -> None:
    async def main() -> None:
        async with Server(":memory:", port=0, metrics_port=0) as server:
            head, body = await asked(server.metrics_port, request_)
        assert head.startswith(f"HTTP/1.1 {status}" if status else "")
        assert bool(head) == bool(status)
        assert bool(body) == (request_[:3] == b"GET")

    runner.run(main())


def test_the_port_needs_a_host() -> None:
    with pytest.raises(ValueError, match="metrics_port needs a host"):
        Server(":memory:", host=None, unix_socket="s", metrics_port=0)
