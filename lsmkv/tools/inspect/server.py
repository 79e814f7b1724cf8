"""The page and its data over HTTP: Starlette's application, and uvicorn, which runs it."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import sys
from collections.abc import Callable, Iterator
from urllib.parse import quote

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from lsmkv.engine.errors import DirectoryReplacedError, Error
from lsmkv.tools.console import say, write_json
from lsmkv.tools.inspect.api import Api, Query
from lsmkv.tools.inspect.guard import Guard, require_token
from lsmkv.tools.inspect.opening import opened_page
from lsmkv.tools.inspect.plain import NotThereError, Plain

STATIC = os.path.join(os.path.dirname(__file__), "static")
"""The directory of the page's files."""
CHANGE = "Lsmkv-Change"
"""The header with the change of the store that an answer is as of: see ``Standing``."""
_LONGEST_BODY = 256 << 10


def application(api: Api, host: str = "127.0.0.1", token: str | None = None) -> Starlette:
    """The ASGI application for one store; it answers requests for ``host``.

    Raises ``ValueError`` for a host that is not loopback without a token.
    """

    require_token(host, token)  # Starlette makes the guard only with the first request

    async def view(request: Request) -> Response:
        name = request.path_params["name"]
        headers: dict[str, str] = {}

        def question() -> Plain:
            # Read before the answer, which is at least as new.
            headers[CHANGE] = str(api.source.standing().change)
            return api.answer(name, dict(request.query_params))

        answer = await _answered(question, api.reason)
        answer.headers.update(headers)
        return answer

    async def action(request: Request) -> Response:
        name = request.path_params["name"]
        try:
            body = _body(await _read(request))
        except ValueError as error:
            return _refused(400, str(error))
        return await _answered(lambda: api.act(name, body), api.reason)

    async def page(_: Request) -> Response:
        return FileResponse(os.path.join(STATIC, "index.html"))

    return Starlette(
        routes=[
            Route("/", page),
            Route("/api/{name:path}", view, methods=["GET"]),
            Route("/api/{name:path}", action, methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(Guard, host=host, token=token)],
    )


async def _answered(question: Callable[[], Plain], reason: Callable[[Exception], str]) -> Response:
    """The answer, made in a thread, because it may read files, or wait for the history.

    ``reason`` describes an error of the store.
    """
    try:
        return JSONResponse(await run_in_threadpool(question))
    except NotThereError as error:
        return _refused(404, str(error))
    except ValueError as error:
        return _refused(400, str(error))
    except DirectoryReplacedError as error:
        return _refused(410, str(error))
    except (Error, OSError) as error:
        return _refused(409, await run_in_threadpool(reason, error))


def _refused(status: int, reason: str) -> Response:
    return JSONResponse({"error": reason}, status)


async def _read(request: Request) -> bytes:
    """The body of a request; ``ValueError`` if it is too long, or not declared as JSON."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise ValueError("the body must be JSON")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LONGEST_BODY:
            raise ValueError(f"a body of more than {_LONGEST_BODY:,} bytes")
    return body


def _body(data: bytes) -> Query:
    found = json.loads(data)
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise ValueError("the body must be an object of strings")
    return found


def listen(host: str, port: int, token: str | None = None) -> socket.socket:
    """A socket that listens; port 0 takes a free one.

    Raises ``OSError`` if the port is taken, and ``ValueError`` for a host that is not loopback
    without a token.
    """
    require_token(host, token)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=128)


@contextlib.contextmanager
def announced(
    host: str,
    port: int,
    path: str,
    words: str,
    *,
    token: str | None = None,
    as_json: bool = False,
    open_page: bool = False,
) -> Iterator[socket.socket]:
    """A socket that listens, as :func:`listen` makes it, once its URL is printed.

    ``words`` stand between ``path`` and the URL.  With ``open_page``, the browser opens it.  An
    ``OSError`` says what is wrong with the address, or how to take another port.
    """
    try:
        listener = listen(host, port, token)
    except OSError as error:
        taken = f"port {port} is in use (--port 0 takes a free one)"
        reason = taken if error.errno == errno.EADDRINUSE else os.strerror(error.errno or 0)
        raise OSError(error.errno, reason, host) from None
    with contextlib.ExitStack() as stack:
        stack.enter_context(listener)
        url = address(host, listener.getsockname()[1], token)
        if as_json:
            write_json({"path": path, "url": url})
            sys.stdout.flush()
        else:
            say(f"{path} {words} {url} (Ctrl-C ends it)")
        if open_page:
            stack.enter_context(opened_page(url, has_token=token is not None))
        yield listener


def address(host: str, port: int, token: str | None) -> str:
    """The URL of the page.

    >>> address("::1", 80, None), address("127.0.0.1", 80, "a secret")
    ('http://[::1]:80/', 'http://127.0.0.1:80/?token=a%20secret')
    """
    where = f"[{host}]" if ":" in host else host
    return f"http://{where}:{port}/" + ("" if token is None else f"?token={quote(token, safe='')}")


def serve(api: Api, listener: socket.socket, host: str, token: str | None) -> None:
    """Answer requests until Ctrl-C, which is raised again as ``KeyboardInterrupt``."""
    run(application(api, host, token), listener)


def run(app: Starlette, listener: socket.socket) -> None:
    """Serve an application until Ctrl-C, which is raised again as ``KeyboardInterrupt``."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        lifespan="off",
        server_header=False,
        access_log=False,
        timeout_graceful_shutdown=1,
        ws="none",
    )
    uvicorn.Server(config).run(sockets=[listener])
