"""lsmkv.env.unix_sockets: a socket at a path, its mode, and what was there before."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from lsmkv.env.unix_sockets import bind_unix_socket

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs Unix sockets")


def test_the_mode_of_a_socket(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with bind_unix_socket(str(path), 0o700) as made:
        assert made.getsockname() == str(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    with bind_unix_socket(str(path)):  # in the place of the first one
        umask = os.umask(0)
        os.umask(umask)
        assert stat.S_IMODE(path.stat().st_mode) == 0o777 & ~umask


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("notes")
    with pytest.raises(OSError, match="in use") as raised:
        bind_unix_socket(str(path))
    assert raised.value.filename == str(path)
    assert path.read_text() == "notes"


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        bind_unix_socket(str(tmp_path / "none" / "s"))
