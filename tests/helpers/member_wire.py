"""Connections to the owner of a shared store that speak frame by frame."""

from __future__ import annotations

import os
import socket

from lsmkv import SharedDB
from lsmkv.engine.format.batch import encode_batch
from lsmkv.shared.frames import (
    DONE,
    GREETING,
    HEADER,
    HELLO,
    PROTOCOL,
    READY,
    WRITE,
    frame,
    json_frame,
)


def address(db: SharedDB) -> bytes:
    """Where an owner listens."""
    head = db._part.publishing.head  # type: ignore[union-attr]
    found: bytes = db._entrance._system.sockets.address_of(head.token, head.epoch)
    return found


def connected(db: SharedDB) -> socket.socket:
    """A new connection, not greeted."""
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(20)
    made.connect(address(db))
    return made


def received(connection: socket.socket) -> tuple[int, int, bytes]:
    """Kind, request and content of the next frame."""
    data = b""
    while len(data) < HEADER.size:
        some = connection.recv(1 << 16)
        assert some, "the connection was closed"
        data += some
    size, kind, request = HEADER.unpack_from(data)
    while len(data) < HEADER.size + size:
        data += connection.recv(1 << 16)
    return kind, request, data[HEADER.size :]


def hello(db: SharedDB) -> bytes:
    """What a process says that has the owner's options."""
    return json_frame(HELLO, 0, {"protocol": PROTOCOL, "names": db._entrance._names})


def greeted(db: SharedDB) -> socket.socket:
    """A connection of a process that holds the page under descriptor 0."""
    made = connected(db)
    made.sendall(hello(db))
    content, fds, _, _ = socket.recv_fds(made, 1 << 16, 1)
    for fd in fds:
        os.close(fd)
    assert HEADER.unpack_from(content)[1] == GREETING, content
    made.sendall(json_frame(READY, 1, {"descriptor": 0}))
    assert received(made)[0] == DONE
    return made


def write(request: int, key: bytes = b"k", value: bytes = b"v", sync: bool = False) -> bytes:
    """The frame of a put."""
    flag = b"\1" if sync else b"\0"
    return frame(WRITE, request, flag + encode_batch(0, [(key, value)]))
