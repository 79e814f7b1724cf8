"""Unix sockets at a path, with a mode."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat


def new_unix_socket() -> socket.socket:
    """A socket that has no path yet.  ``OSError`` where the system has none."""
    family = getattr(socket, "AF_UNIX", None)
    if family is None:
        raise OSError(errno.EAFNOSUPPORT, "this system has no Unix sockets")
    return socket.socket(family, socket.SOCK_STREAM)


def bind_unix_socket(path: str, mode: int | None = None) -> socket.socket:
    """A socket at a path, on which no process listens yet.  ``OSError``.

    A socket that is there already is replaced: it is what a killed server left.  The mode is set
    before anyone can connect; without one, the umask of the process decides.
    """
    made = new_unix_socket()
    try:
        with contextlib.suppress(FileNotFoundError):
            if not path.startswith("\0") and stat.S_ISSOCK(os.stat(path).st_mode):
                os.remove(path)
        made.bind(path)
        if mode is not None:
            os.chmod(path, mode)
    except BaseException as error:
        made.close()
        if isinstance(error, OSError) and error.filename is None and error.errno is not None:
            raise OSError(error.errno, os.strerror(error.errno), path) from None
        raise
    return made
