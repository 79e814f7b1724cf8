"""The playground over HTTP: static files, with the headers that its pages are made for."""

from __future__ import annotations

import functools
import gzip
import os

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import FileResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import Scope

from lsmkv.tools.inspect.guard import Guard

HOST = "127.0.0.1"
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' 'wasm-unsafe-eval'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
    )
)
"""The Content-Security-Policy of the pages, which they state in a ``meta`` element as well."""
FILES = "files.json"
"""The list of files, which every playground has."""
_PACKED = (".whl", ".zip", ".png")  # compressing them again saves little
_LEVEL = 6
_LEAST = 500  # bytes that are worth compressing


class NotBuiltError(ValueError):
    """No directory holds a playground."""


def application(directory: str) -> Starlette:
    """The ASGI application that serves a directory to this machine."""
    headers = {
        "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
        "Cache-Control": "no-cache",  # a browser keeps files, and asks whether they have changed
    }
    return Starlette(
        routes=[Mount("/", _Compressed(directory=directory, html=True))],
        middleware=[Middleware(Guard, host=HOST, token=None, headers=headers)],
    )


def built(given: str | None, places: tuple[str, ...]) -> str:
    """The directory of the playground: the one that is given, or else the first that is built.

    Raises ``NotBuiltError``, with advice, if there is none.
    """
    for place in places if given is None else (given,):
        if os.path.isfile(os.path.join(place, FILES)):
            return place
    where = given if given is not None else places[0]
    raise NotBuiltError(
        f"{where}: there is no playground. 'make playground' in a checkout of lsmkv builds it, for"
        " which npm is needed; --directory names another place"
    )


class _Compressed(StaticFiles):
    """Static files, sent with gzip to clients that accept it.

    Each file is compressed once.  A compressed answer has its own ETag, and a request for a range
    gets the plain bytes: a range is one of the file.
    """

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The answer to a request for the file at ``path``."""
        answer = await super().get_response(path, scope)
        answer.headers.add_vary_header("Accept-Encoding")
        asked = Headers(scope=scope)
        if (
            not isinstance(answer, FileResponse)
            or answer.status_code != 200
            or "range" in asked
            or not accepts_gzip(asked.get("accept-encoding", ""))
        ):
            return answer
        path = os.fspath(answer.path)
        if int(answer.headers["content-length"]) < _LEAST or path.endswith(_PACKED):
            return answer
        kept = ("content-type", "last-modified", "vary")
        headers = Headers(
            {name: value for name, value in answer.headers.items() if name in kept}
            | {"etag": f'{answer.headers["etag"][:-1]}-gzip"', "content-encoding": "gzip"}
        )
        if self.is_not_modified(headers, asked):
            return NotModifiedResponse(headers)
        body = await run_in_threadpool(_compressed, path, headers["etag"])
        return Response(body, headers=headers)


def accepts_gzip(header: str) -> bool:
    """True if this ``Accept-Encoding`` allows gzip.

    >>> [accepts_gzip(one) for one in ("br, gzip", "*;q=0.5", "gzip;q=0, *", "", "identity")]
    [True, True, False, False, False]
    """
    weights: dict[str, float] = {}
    for part in header.lower().split(","):
        coding, *parameters = (one.strip() for one in part.split(";"))
        weights[coding] = 1.0
        for one in parameters:
            if one.startswith("q="):
                try:
                    weights[coding] = float(one[2:])
                except ValueError:
                    weights[coding] = 0.0
    return weights.get("gzip", weights.get("*", 0.0)) > 0


@functools.lru_cache(maxsize=256)
def _compressed(path: str, _tag: str) -> bytes:
    """The file's bytes with gzip; ``_tag`` changes with the file."""
    with open(path, "rb") as file:
        return gzip.compress(file.read(), _LEVEL, mtime=0)
