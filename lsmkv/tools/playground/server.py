"""The playground over HTTP: static files, with the headers that its pages are made for."""

from __future__ import annotations

import os

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

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


class NotBuiltError(ValueError):
    """No directory holds a playground."""


def application(directory: str) -> Starlette:
    """The ASGI application that serves a directory to this machine."""
    headers = {
        "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
        "Cache-Control": "no-cache",  # a browser keeps files, and asks whether they have changed
    }
    return Starlette(
        routes=[Mount("/", StaticFiles(directory=directory, html=True))],
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
