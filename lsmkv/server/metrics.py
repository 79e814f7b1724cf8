"""``/metrics``: the figures of a server and of its store for Prometheus.

The text is :meth:`lsmkv.DB.metrics_text`, with the families of the server before its end.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable

from lsmkv.engine.db.observe.openmetrics import CONTENT_TYPE, label
from lsmkv.server.command import every
from lsmkv.server.info import SECTIONS
from lsmkv.server.queue_depths import QueueDepths
from lsmkv.server.session import Service

_SECONDS = 10.0
"""The seconds that a client may take to send its request, or to read the answer."""
_FIGURES = (
    ("clients", "connected_clients", "gauge", "Clients that are connected."),
    ("clients", "blocked_clients", "gauge", "Clients that wait in a blocking command."),
    ("memory", "used_memory_rss", "gauge", "Bytes that the process has in memory."),
    ("memory", "maxmemory", "gauge", "The limit of the disk in bytes; 0: none."),
    ("persistence", "rdb_changes_since_last_save", "gauge", "Changes of keys not yet synced."),
    ("stats", "total_connections_received", "counter", "Connections that were accepted."),
    ("stats", "rejected_connections", "counter", "Connections that were refused."),
    ("stats", "total_commands_processed", "counter", "Commands that ran."),
    ("stats", "total_net_input_bytes", "counter", "Bytes received."),
    ("stats", "total_net_output_bytes", "counter", "Bytes sent."),
    ("stats", "expired_keys", "counter", "Keys that expired."),
    ("stats", "evicted_keys", "counter", "Keys that were evicted."),
    ("stats", "keyspace_hits", "counter", "Lookups of keys that exist, by commands that read."),
    ("stats", "keyspace_misses", "counter", "Lookups of other keys, by commands that read."),
    ("lsmkv", "disk_bytes", "gauge", "Bytes that the store takes on disk."),
    ("lsmkv", "disk_free_bytes", "gauge", "Bytes that are free on that disk."),
)
"""Fields of INFO: their section, name, kind, and help."""


def server_metrics(service: Service, queues: QueueDepths) -> str:
    """The figures in the OpenMetrics text format."""
    lines = [service.db.metrics_text().removesuffix("# EOF\n")]
    sections = {name: SECTIONS[name](service) for name in {one[0] for one in _FIGURES}}
    for section, field, kind, words in _FIGURES:
        name = field.removeprefix("total_")
        lines += _family(name, kind, words, [("", sections[section][field])])
    commands = [one for one in every(service.table) if one.calls or one.rejected]
    for name, words, attribute in (
        ("command_calls", "Calls of each command.", "calls"),
        ("command_failures", "Calls of each command that failed.", "failed"),
        ("command_rejections", "Requests of each command that were refused.", "rejected"),
    ):
        samples = [(label("command", one.full_name), getattr(one, attribute)) for one in commands]
        lines += _family(name, "counter", words, samples)
    seconds = [(label("command", one.full_name), one.microseconds / 1e6) for one in commands]
    lines += _family("command_seconds", "counter", "Time that each command took.", seconds)
    errors = [
        (label("error", word), count) for word, count in sorted(service.errors.counts.items())
    ]
    lines += _family("errors", "counter", "Errors by their first word.", errors)
    for name, words, attribute in (
        ("keys", "Keys of each database.", "size"),
        ("expiring_keys", "Keys that expire, of each database.", "expiring"),
    ):
        databases = [one for one in service.space.databases if one.size]
        samples = [(label("db", str(one.index)), getattr(one, attribute)) for one in databases]
        lines += _family(name, "gauge", words, samples)
    figures = queues.figures()
    labels = [f"{label('db', str(one.database))},{label('queue', one.name)}" for one in figures]
    jobs = zip(labels, (one.jobs for one in figures), strict=True)
    lines += _family("queue_jobs", "gauge", "Jobs that wait in a queue.", jobs)
    ages = zip(labels, (round(one.age, 3) for one in figures), strict=True)
    words = "How long the oldest job of a queue has waited, as far as the server has seen it."
    lines += _family("queue_oldest_job_age_seconds", "gauge", words, ages)
    return "".join([*lines, "# EOF\n"])


def _family(name: str, kind: str, words: str, samples: Iterable[tuple[str, object]]) -> list[str]:
    """A metric family; nothing if there are no samples."""
    name = f"lsmkv_serve_{name}"
    suffix = "_total" if kind == "counter" else ""
    found = [
        f"{name}{suffix}{f'{{{labels}}}' if labels else ''} {value}\n" for labels, value in samples
    ]
    return [f"# TYPE {name} {kind}\n", f"# HELP {name} {words}\n", *found] if found else []


class MetricsPage:
    """Answers HTTP requests for ``/metrics``, one for each connection."""

    def __init__(self, service: Service, queues: QueueDepths) -> None:
        self._service = service
        self._queues = queues

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection, and close it."""
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, ValueError):
            async with asyncio.timeout(_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._response(head.partition(b"\r\n")[0].split()))
                await writer.drain()
        writer.close()

    def _response(self, words: list[bytes]) -> bytes:
        """The response to a request line."""
        if len(words) != 3 or words[0] not in (b"GET", b"HEAD"):
            return _http("405 Method Not Allowed", "text/plain", b"", [b"Allow: GET, HEAD"])
        if words[1].partition(b"?")[0] != b"/metrics":
            return _http("404 Not Found", "text/plain", b"The figures are at /metrics\n")
        body = server_metrics(self._service, self._queues).encode()
        return _http("200 OK", CONTENT_TYPE, body, body_left_out=words[0] == b"HEAD")


def _http(
    status: str,
    kind: str,
    body: bytes,
    more: list[bytes] | None = None,
    body_left_out: bool = False,
) -> bytes:
    lines = [b"HTTP/1.1 " + status.encode(), b"Content-Type: " + kind.encode(), *(more or [])]
    lines += [b"Content-Length: %d" % len(body), b"Connection: close", b"", b""]
    return b"\r\n".join(lines) + (b"" if body_left_out else body)
