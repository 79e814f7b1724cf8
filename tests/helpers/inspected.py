"""What tests of the inspector share: a store with levels, and questions to the application."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lsmkv
from lsmkv.tools.inspect.api import Api

WORDS = [b"word %05d" % (number * 7919 % 4000) for number in range(4000)]
HOSTILE = {
    b"<script>alert(1)</script>": b"<img src=x onerror=alert(1)>",
    b"\xff\x00\x1b[31m": b"\x00\x01",
    b"long" + b"k" * 5000: b"v" * 50_000,
    b"</script><!--": b"&amp;",
}


def levelled_store(path: Path) -> Path:
    """A store with several levels, deletions, versions, hostile keys, and writes in its log."""
    with lsmkv.DB(
        path,
        create_if_missing=True,
        write_buffer_size=32 << 10,
        max_file_size=16 << 10,
        background="thread",
    ) as db:
        for number, word in enumerate(WORDS):
            db.put(word, b"value %d" % number * 3)
            if number == len(WORDS) // 2:
                db.compact_range()
        for word in WORDS[::50]:
            db.delete(word)
        for key, value in HOSTILE.items():
            db.put(key, value)
        db.flush()
        db.put(WORDS[1], b"in the log")
    return path


def damage(path: Path, offset: int) -> None:
    """Flip the bits of one byte of a file."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 0xFF
    path.write_bytes(bytes(data))


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(
    app: Any,
    path: str,
    *,
    method: str = "GET",
    query: str = "",
    body: bytes = b"",
    port: int = 8000,
    **headers: str,
) -> Answer:
    """One request to an ASGI application, past any socket; ``_`` stands for ``-`` in headers."""
    given = {"host": "127.0.0.1:8000"} | {k.replace("_", "-"): v for k, v in headers.items()}
    sent: list[dict[str, Any]] = []

    bodies = [body]

    async def receive() -> dict[str, Any]:
        if not bodies:
            await asyncio.sleep(3600)  # nobody hangs up: the application ends this wait
        return {"type": "http.request", "body": bodies.pop(), "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "server": ("127.0.0.1", port),
        "client": ("127.0.0.1", 50000),
    }
    asyncio.run(app(scope, receive, send))
    start = sent[0]
    return Answer(
        start["status"],
        {name.decode(): value.decode() for name, value in start["headers"]},
        b"".join(message.get("body", b"") for message in sent[1:]),
    )


def one_table(path: Path, keys: list[bytes], **options: Any) -> Path:
    """A store of one table with these keys."""
    with lsmkv.DB(path, create_if_missing=True, **options) as db:
        for key in keys:
            db.put(key, b"value " * 5)
        db.flush()
    return path


@contextlib.contextmanager
def opened(path: Path) -> Any:
    """The inspector of a store, and the name of one of its tables."""
    with contextlib.closing(Api(str(path))) as api:
        yield api, next(path.glob("*.ldb")).name
