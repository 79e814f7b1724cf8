"""A small program that processes of every kind run: it counts visits in a store that they share.

``STORE`` and ``OWNER`` of the environment say which store, and ``owner=`` of ``lsmkv.SharedDB``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import lsmkv

db = lsmkv.SharedDB(
    os.environ.get("STORE", "db"),
    create_if_missing=True,
    owner="process" if os.environ.get("OWNER") == "process" else None,
)


def _one_more(old: bytes | None) -> bytes:
    return b"%d" % (int(old or 0) + 1)


def visit(_: object = None) -> bytes:
    """Count a visit, for all and for this process; the number for all."""
    count = db.update(b"visits", _one_more)
    namespace = os.readlink("/proc/self/ns/pid").encode()
    db.update(b"by %s %d" % (namespace, os.getpid()), _one_more)
    assert count is not None
    return count


def answer(path: str) -> bytes:
    """A visit; for ``/by`` how many each process has counted."""
    return b" ".join(value for _, value in db.iterator(prefix=b"by ")) if path == "/by" else visit()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """For WSGI."""
    count = answer(environ["PATH_INFO"])
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", f"{len(count)}")])
    return [count]


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """For ASGI."""
    if scope["type"] == "http":
        count = answer(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": count})


def tasks() -> Any:
    """For Celery, with a broker in the working directory."""
    from celery import Celery  # type: ignore[import-untyped]

    celery = Celery("shop", broker="filesystem://", backend=f"file://{os.getcwd()}/results")
    folders = {f"data_folder_{way}": "queue" for way in ("in", "out")}
    celery.conf.broker_transport_options = folders
    celery.task(visit, name="visit")
    return celery
