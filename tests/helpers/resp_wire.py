"""A client that shows RESP as it stands on the wire: every value keeps the mark of its type.

Client libraries make one of the two nulls of RESP2, and one of a set and an array.  What compares
two servers has to see the difference.
"""

from __future__ import annotations

import re
import select
import socket
from typing import BinaryIO, NamedTuple

Parts = tuple["Reply", ...]


class Reply(NamedTuple):
    """A value: ``$`` and bytes, ``*`` and replies, ...  Null is None; a map is keys and values."""

    mark: str
    value: bytes | int | Parts | None

    @property
    def parts(self) -> Parts:
        """The elements of an aggregate; empty for anything else."""
        return self.value if isinstance(self.value, tuple) else ()

    def __str__(self) -> str:
        if isinstance(self.value, tuple):
            return f"{self.mark}[{', '.join(map(str, self.value))}]"
        return f"{self.mark}{self.value!r}"


def encode(words: list[bytes]) -> bytes:
    """A request as clients send it."""
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"".join(parts)


def read_reply(file: BinaryIO) -> Reply:
    """The next reply.  ``ValueError`` if a client could refuse it: an integer has 64 bits, and
    every line and string ends as it must."""
    line = file.readline()
    if not line.endswith(b"\r\n"):
        raise ConnectionError(f"the connection was closed after {line!r}")
    mark, rest = chr(line[0]), line[1:-2]
    form = _FORMS.get(mark)
    if form is None or not form.fullmatch(rest):
        raise ValueError(f"no RESP: {line!r}")
    if mark in "+-,(":
        return Reply(mark, rest)
    if mark == ":":
        number = int(rest)
        if not -(1 << 63) <= number < 1 << 63:
            raise ValueError(f"an integer of more than 64 bits: {line!r}")
        return Reply(mark, number)
    if mark == "_":
        return Reply(mark, None)
    if mark == "#":
        return Reply(mark, int(rest == b"t"))
    size = int(rest)
    if size < 0:
        return Reply(mark, None)
    if mark in "$=":
        text = file.read(size + 2)
        if text[size:] != b"\r\n":
            raise ValueError(f"a string of another length than {size}: {text[-10:]!r}")
        return Reply(mark, text[:-2])
    count = 2 * size if mark == "%" else size
    return Reply(mark, tuple(read_reply(file) for _ in range(count)))


_TEXT = re.compile(rb"[^\r\n]*")
_NULLABLE = re.compile(rb"-1|0|[1-9][0-9]*")
_SIZE = re.compile(rb"0|[1-9][0-9]*")
_FORMS = {
    "+": _TEXT,
    "-": _TEXT,
    ",": re.compile(rb"-?inf|nan|-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?"),
    "(": re.compile(rb"-?[0-9]+"),
    ":": re.compile(rb"0|-?[1-9][0-9]*"),
    "_": re.compile(rb""),
    "#": re.compile(rb"[tf]"),
    "$": _NULLABLE,
    "*": _NULLABLE,
    "=": _SIZE,
    "~": _SIZE,
    ">": _SIZE,
    "%": _SIZE,
}
"""What stands in the first line of each type, after its mark."""


class Client:
    """A connection, over TCP or a Unix socket; requests go out as bytes, one by one or many."""

    def __init__(self, address: str | int) -> None:
        if isinstance(address, str):
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(address)
        else:
            self._socket = socket.create_connection(("127.0.0.1", address))
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.settimeout(60)
        self._file = self._socket.makefile("rb")

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def send(self, *requests: list[bytes]) -> None:
        """Send requests; as many replies are to be received."""
        self._socket.sendall(b"".join(map(encode, requests)))

    def has_reply(self) -> bool:
        """Whether there is something to receive, or will be in a millisecond."""
        return bool(select.select([self._socket], [], [], 0.001)[0])

    def receive(self) -> Reply:
        """The next reply."""
        return read_reply(self._file)

    def ask(self, *words: bytes | str | int) -> Reply:
        """The reply to a request."""
        self.send([word if isinstance(word, bytes) else str(word).encode() for word in words])
        return self.receive()
