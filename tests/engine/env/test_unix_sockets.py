"""Unix sockets at a path."""

from __future__ import annotations

import socket
import stat
import sys
from pathlib import Path

import pytest

from lsmkv.engine.env.unix_sockets import bind_unix_socket

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such sockets")


@pytest.mark.parametrize("mode", [0o600, 0o660, 0o777])
def test_the_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "socket"
    with bind_unix_socket(str(path), mode):
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_nobody_connects_before_it_listens(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with bind_unix_socket(path) as bound, socket.socket(socket.AF_UNIX) as client:
        with pytest.raises(ConnectionRefusedError):
            client.connect(path)
        bound.listen()
        client.connect(path)


def test_what_a_killed_server_has_left_is_replaced(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    bind_unix_socket(path).close()
    bind_unix_socket(path).close()


def test_a_file_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("kept")
    with pytest.raises(OSError, match="file"):
        bind_unix_socket(str(path))
    assert path.read_text() == "kept"
