"""Checks that every request passes before the server answers it.

A page of another site must not reach anything: neither through a name that it resolves to this
machine (the ``Host`` header shows that), nor through a form or a script (``Origin`` shows that),
nor through a frame or an image (``Sec-Fetch-Site`` shows that, and a browser that does not send it
gets no further than the browser's own rules). It may link to the page ``/``, as a whole document.

A token, if there is one, comes once in the URL and is then kept in a cookie that scripts cannot
read.  Browsers send a cookie to every port of a host, so its name has the port, and its value is a
hash of token, host and port: another server that sees it neither learns the token, nor can use it
at another port.
"""

from __future__ import annotations

import hmac
import html
import ipaddress
from collections.abc import Mapping
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "lsmkv-token"
"""The cookie's name, which a hyphen and the port follow."""
PAGE = "/"
"""The only address to which a page of another site may link."""
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""The Content-Security-Policy of every answer: only the server's own files."""

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def is_loopback(host: str) -> bool:
    """True if a host to bind is only reachable from this machine.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def require_token(host: str, token: str | None) -> None:
    """Raise ``ValueError`` if others could reach the host and no token protects it."""
    if token is None and not is_loopback(host):
        raise ValueError(f"{host} is not loopback: give --token, which the page then requires")


class Guard:
    """Refuses requests that do not come from the page itself, and adds security headers."""

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        token: str | None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """``host`` is where the server listens; see :func:`require_token`.

        ``headers`` are added to the security headers, or replace those of the same name.
        """
        require_token(host, token)
        self._app = app
        self._headers = {**_HEADERS, **(headers or {})}
        self._token = token
        self._hosts = {host, "127.0.0.1", "::1", "localhost"}
        self._any_host = not is_loopback(host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers[name] = value
            await send(message)

        answer = self._app if refusal is None else refusal
        await answer(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._any_host and _without_port(host) not in self._hosts:
            return PlainTextResponse("this host is not served here\n", 403)
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("only GET and POST\n", 405)
        if not _is_own(headers, host, scope["method"], scope["path"]):
            return PlainTextResponse("a request from another page\n", 403)
        return self._without_token(scope, headers)

    def _without_token(self, scope: Scope, headers: Headers) -> Response | None:
        if self._token is None:
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        name, value = _cookie_for(self._token, headers.get("host", ""), scope.get("server"))
        if scope["path"] == PAGE and _same(given, self._token):
            answer = HTMLResponse(moved_to(PAGE))
            answer.set_cookie(name, value, path="/", httponly=True, samesite="strict")
            return answer
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        if _same(_cookie(headers, name), value) or _same(bearer, self._token):
            return None
        return PlainTextResponse("open the URL that 'lsmkv inspect' printed: it has a token\n", 401)


def moved_to(url: str) -> str:
    """A document that leads on to a URL, and is replaced by it in the history.

    The browser sends a strict cookie there if the document came from the same site, which it does
    not after a redirect whose first link was on another site, or in a file.
    """
    refresh = f'<meta http-equiv="refresh" content="0;url={html.escape(url)}">'
    quiet = '<meta name="referrer" content="no-referrer">'
    return f'<!doctype html><meta charset="utf-8">{quiet}{refresh}<title>lsmkv</title>\n'


def _is_own(headers: Headers, host: str, method: str, path: str) -> bool:
    """True if a request comes from a page of this server, from the user, or from no browser."""
    origin = headers.get("origin")
    if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
        return False
    site = headers.get("sec-fetch-site")
    if site is None or site == "same-origin":
        return True
    is_document = (
        method != "POST"
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )
    # "none" is the address bar or a bookmark.  A link of another page leads to the page alone: that
    # page sees nothing of it, and no answer has to be found.
    return is_document and (site == "none" or path == PAGE)


def _cookie_for(token: str, host: str, server: tuple[str, int | None] | None) -> tuple[str, str]:
    """Name and value of the cookie for a host, with its port, as the browser knows it.

    The value is bound to the port on which the server listens as well, since the ``Host`` header
    says what its sender likes.
    """
    port = host.rpartition(":")[2]
    listening = None if server is None else server[1]
    value = hmac.new(token.encode(), f"{listening} {host}".encode(), "sha256").hexdigest()
    return (f"{COOKIE}-{port}" if port.isascii() and port.isdigit() else COOKIE), value


def _cookie(headers: Headers, name: str) -> str:
    for part in headers.get("cookie", "").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return ""


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())


def _without_port(host: str) -> str:
    """The name in a Host header.

    >>> [_without_port(host) for host in ("localhost:80", "[::1]:80", "127.0.0.1")]
    ['localhost', '::1', '127.0.0.1']
    """
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
