"""A web service that keeps notes: Starlette, on lsmkv.aio.

    python examples/web_service.py [--port PORT] [--workers N] [DIRECTORY]

It serves until Ctrl-C; then, in another terminal:

    curl -X PUT --data 'buy bread' http://127.0.0.1:8000/notes/monday
    curl http://127.0.0.1:8000/notes/monday
    curl 'http://127.0.0.1:8000/notes?limit=10'

The store is opened when the service starts and closed when it ends, and no call blocks the event
loop.  A note is durable before the service says so; requests that write at the same time share the
wait for the disk.

Several workers (Linux) share the store: each opens it as a ``SharedDB``, and a small process of
lsmkv's owns it, so that no worker waits for another one that computes.  Another program may open it
in the same way meanwhile: ``examples/notes_beside.ipynb`` is a notebook that does.

It listens on this machine alone, and asks nobody who they are.  It needs ``starlette`` and
``uvicorn``: the extra ``tools`` has both.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

import lsmkv
import lsmkv.aio

LONGEST = 64 * 1024  # bytes of a note


def store(request: Request) -> lsmkv.aio.DB:
    db: lsmkv.aio.DB = request.state.db
    return db


def key(request: Request) -> bytes:
    return f"note:{request.path_params['name']}".encode()


async def list_notes(request: Request) -> Response:
    """Names in order, a page at a time: ``after`` is the last name of the page before."""
    try:
        limit = int(request.query_params.get("limit", "20"))
    except ValueError:
        return PlainTextResponse("limit is no number\n", 400)
    limit = max(1, min(limit, 100))
    after = b"note:" + request.query_params.get("after", "").encode()
    names: list[str] = []
    # The iterator sees the store as it was when the request came, whatever is written meanwhile.
    async with store(request).iterator(
        start=after, include_start=False, stop=b"note;", include_value=False, chunk=limit + 1
    ) as keys:
        async for name in keys:
            if len(names) >= limit:
                return JSONResponse({"names": names, "more": True})
            names.append(name.removeprefix(b"note:").decode())
    return JSONResponse({"names": names, "more": False})


async def read_note(request: Request) -> Response:
    text = await store(request).get(key(request))
    return PlainTextResponse("no such note\n", 404) if text is None else PlainTextResponse(text)


async def write_note(request: Request) -> Response:
    """Set a note, and count the changes to it, both or neither."""
    text = b""
    async for part in request.stream():
        text += part
        if len(text) > LONGEST:
            return PlainTextResponse("too long\n", 413)
    count = b"changes:" + key(request)

    async def change(both: lsmkv.aio.Transaction) -> int:
        """Called again if another request changes the same note meanwhile."""
        changes = int(await both.get(count, b"0")) + 1
        both.put(count, b"%d" % changes)
        both.put(key(request), text)
        return changes

    return JSONResponse({"changes": await store(request).run(change, sync=True)})


async def delete_note(request: Request) -> Response:
    async with store(request).write_batch(sync=True) as both:
        both.delete(key(request))
        both.delete(b"changes:" + key(request))
    return Response(status_code=204)


def opened(path: str, workers: int) -> lsmkv.aio.DB:
    """The store in a directory, which is made if necessary; ``async with`` opens it."""
    if workers == 1:
        return lsmkv.aio.open_db(path, create_if_missing=True)
    return lsmkv.aio.SharedDB(path, owner="process", create_if_missing=True)


def application(path: str, workers: int = 1) -> Starlette:
    """The service over a store, in one of so many workers."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, lsmkv.aio.DB]]:
        async with opened(path, workers) as db:
            yield {"db": db}

    routes = [
        Route("/notes", list_notes),
        Route("/notes/{name}", read_note),
        Route("/notes/{name}", write_note, methods=["PUT"]),
        Route("/notes/{name}", delete_note, methods=["DELETE"]),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def worker() -> Starlette:
    """What each of several workers calls."""
    return application(os.environ["NOTES"], int(os.environ["NOTES_WORKERS"]))


def serve(path: str, port: int, workers: int) -> None:
    if workers == 1:
        uvicorn.run(application(path), port=port)
        return
    os.environ |= {"NOTES": os.path.abspath(path), "NOTES_WORKERS": str(workers)}
    here = os.path.dirname(os.path.abspath(__file__))
    uvicorn.run("web_service:worker", factory=True, app_dir=here, port=port, workers=workers)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("directory", nargs="?")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        serve(arguments.directory or directory, arguments.port, arguments.workers)
