"""A client of Redis that sends requests and waits for their replies."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

import hiredis

from lsmkv.engine.env.unix_sockets import new_unix_socket
from lsmkv.engine.errors import errno_of

_SECONDS = 60.0
_CHUNK = 1 << 16
_SCHEMES = ("redis", "rediss", "unix")
_MEANT = "give redis://[user:password@]host:port[/database], rediss:// for TLS, or unix://path"


class RedisError(ValueError):
    """An error that the server has answered."""


class Address(NamedTuple):
    """A server, as its URL names it."""

    scheme: str
    place: str
    """A host, or the path of a Unix socket."""
    port: int
    user: str
    password: str
    database: int | None
    """None if the URL names none."""

    @property
    def shown(self) -> str:
        """The address without its password."""
        if self.scheme == "unix":
            return f"unix://{self.place}"
        return f"{self.scheme}://{self.place}:{self.port}"


def parse_url(url: str) -> Address:
    """The address that a URL names.  Raises ``ValueError`` if it names none.

    >>> parse_url("redis://localhost/2")[:3], parse_url("redis://localhost/2").database
    (('redis', 'localhost', 6379), 2)
    """
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES:
        raise ValueError(f"not a Redis URL: {url!r}; {_MEANT}")
    try:
        port = parts.port or 6379
    except ValueError:
        raise ValueError(f"the port of {url!r} is invalid; {_MEANT}") from None
    place = parts.path if parts.scheme == "unix" else parts.hostname or "localhost"
    named = parse_qs(parts.query).get("db", [""])[-1]
    if parts.scheme != "unix":
        named = parts.path.strip("/") or named
    if named and not (named.isascii() and named.isdecimal()):
        raise ValueError(f"the database of {url!r} is invalid; {_MEANT}")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Address(parts.scheme, place, port, user, password, int(named) if named else None)


class Client:
    """A connection.  ``OSError`` if it cannot be made, or is lost; :class:`RedisError`."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._reader = hiredis.Reader(notEnoughData=self)
        try:
            self._socket = self._connect()
        except OSError as error:
            reason = error.strerror or str(error)
            raise OSError(_errno(error), reason, address.shown) from None
        if address.password:
            user = [address.user.encode()] if address.user else []
            try:
                self.ask(b"AUTH", *user, address.password.encode())
            except BaseException:
                self.close()
                raise

    def _connect(self) -> socket.socket:
        address = self._address
        if address.scheme == "unix":
            made = new_unix_socket()
            made.settimeout(_SECONDS)
        else:
            made = socket.create_connection((address.place, address.port), _SECONDS)
        try:
            if address.scheme == "unix":
                made.connect(address.place)
            elif address.scheme == "rediss":
                context = ssl.create_default_context()
                return context.wrap_socket(made, server_hostname=address.place)
        except BaseException:
            made.close()
            raise
        return made

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def ask(self, *words: bytes) -> Any:
        """The reply to a request."""
        reply = self.ask_all([words])[0]
        if isinstance(reply, RedisError):
            raise reply
        return reply

    def ask_all(self, requests: Sequence[Sequence[bytes]]) -> list[Any]:
        """The replies to several requests, among them errors as :class:`RedisError`."""
        try:
            self._socket.sendall(b"".join(map(encoded, requests)))
            return [self._receive() for _ in requests]
        except OSError as error:
            reason = "no reply within a minute" if isinstance(error, TimeoutError) else str(error)
            raise OSError(_errno(error), reason, self._address.shown) from None

    def _receive(self) -> Any:
        while (reply := self._reader.gets()) is self:
            data = self._socket.recv(_CHUNK)
            if not data:
                raise ConnectionError("the server has closed the connection")
            self._reader.feed(data)
        if isinstance(reply, hiredis.ReplyError):
            return RedisError(f"{self._address.shown} answers: {reply}")
        return reply


def encoded(words: Sequence[bytes]) -> bytes:
    """A request as Redis reads it.

    >>> encoded([b"GET", b"k"])
    b'*2\\r\\n$3\\r\\nGET\\r\\n$1\\r\\nk\\r\\n'
    """
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"".join(parts)


def _errno(error: OSError) -> int:
    """The system's number of an error; 0 for errors of TLS and of name resolution."""
    if isinstance(error, ssl.SSLError | socket.gaierror):
        return 0
    return errno_of(error) or 0
