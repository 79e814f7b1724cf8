"""The page of ``lsmkv course see``: a student's steps next to the engine's, one after the other.

It is made of the inspector's own scripts and styles.  Each question runs the student's file again,
and the page asks again when the file has been saved.
"""

from __future__ import annotations

import os
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from lsmkv.course.lab import Lab
from lsmkv.course.step_views import look, sight_of
from lsmkv.tools.inspect.guard import Guard
from lsmkv.tools.inspect.server import STATIC

HOST = "127.0.0.1"


def application(lab: Lab, path: str, key: str | None = None) -> Starlette:
    """The ASGI application for a student's file; it answers this machine only.

    ``key`` is the first one to see, and otherwise the lab's own.  Raises ``ValueError`` for a lab
    that has no steps.
    """
    first = sight_of(lab).key if key is None else key

    async def page(_: Request) -> Response:
        return FileResponse(os.path.join(STATIC, "see.html"))

    async def steps(request: Request) -> Response:
        asked = request.query_params.get("key", first)
        try:
            # The stamp is read before the file runs: a file saved during the run is seen again.
            stamp = _stamp(path)
            seen = await run_in_threadpool(look, lab, path, asked)
        except OSError as error:
            return JSONResponse({"error": f"{path}: {error.strerror}"}, 409)
        about: dict[str, Any] = {"title": lab.title, "file": os.path.basename(path)}
        return JSONResponse({**seen.to_dict(), **about, "stamp": stamp})

    async def saved(_: Request) -> Response:
        try:
            return JSONResponse({"stamp": _stamp(path)})
        except OSError:  # an editor replaces it at this moment
            return JSONResponse({"stamp": None})

    return Starlette(
        routes=[
            Route("/", page),
            Route("/api/see", steps),
            Route("/api/saved", saved),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(Guard, host=HOST, token=None)],
    )


def _stamp(path: str) -> str:
    """A stamp that changes when a file is saved."""
    found = os.stat(path)
    return f"{found.st_ino}.{found.st_mtime_ns}.{found.st_size}"
