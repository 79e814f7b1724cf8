"""What macOS has in place of Linux's calls for sharing a store, imitated on Linux.

:func:`install` is called before lsmkv is imported, in ``macos/sitecustomize.py``: so it holds in
every process whose PYTHONPATH begins with that folder, and in those that it starts.  It imports
lsmkv as on macOS: ``sys.platform`` is "darwin" meanwhile, and again "linux" afterwards, for the
standard library's sake.  What is imitated:

* There are no memory files, no ``eventfd``, no ``epoll``, and no flags of sockets that Linux alone
  has.  Abstract names are refused.
* ``fcntl`` takes XNU's numbers of OFD locks, no others, and the ``struct flock`` of the BSDs.
* A socket knows its peer by ``LOCAL_PEERCRED`` and ``LOCAL_PEERPID``, and has ``SO_NOSIGPIPE``.
* The name of shared memory has at most 31 characters.  Its size is set once, and rounded up.

Left out: XNU's own limits and errors, its queue of connections, ``/dev/fd``, and all file systems.
"""

from __future__ import annotations

import asyncio
import concurrent.futures.process
import ctypes
import errno
import fcntl
import logging
import mmap
import multiprocessing.connection
import os
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import uuid
from typing import Any

USED = (asyncio, concurrent, ctypes, logging, mmap, multiprocessing, select, shutil, socket, uuid)
"""What is imported before works as it does on Linux."""
_ALSO = (subprocess, tempfile)

PAGE = 16384
_GETLK, _SETLK = 36, 37
_DARWIN_GETLK, _DARWIN_SETLK = 92, 90
_LINUX_FLOCK, _DARWIN_FLOCK = struct.Struct("@hhqqi0q"), struct.Struct("@qqihh0q")
_GONE = (
    *("memfd_create", "eventfd", "eventfd_read", "eventfd_write", "EFD_CLOEXEC", "EFD_NONBLOCK"),
    *("MFD_CLOEXEC", "MFD_ALLOW_SEALING"),
)
_GONE_FROM_SOCKET = ("SOCK_CLOEXEC", "SOCK_NONBLOCK", "SO_PEERCRED", "MSG_CMSG_CLOEXEC")
_SO_PEERCRED = 17
_PEER = struct.Struct("3i")

_BOOT = f"""
sys.path.insert(0, {os.path.dirname(__file__)!r})
import macos_rules
del sys.path[0]
macos_rules.install()
import lsmkv
"""

_fcntl = fcntl.fcntl
_ftruncate = os.ftruncate


def _fcntl_of_darwin(fd: Any, command: int, argument: Any = 0) -> Any:
    if command in (_GETLK, _SETLK):
        raise OSError(errno.EINVAL, "no such command on macOS")
    commands = {_DARWIN_GETLK: _GETLK, _DARWIN_SETLK: _SETLK, fcntl.F_GETLK: fcntl.F_GETLK}
    if command not in commands:
        return _fcntl(fd, command, argument)
    start, length, _, kind, whence = _DARWIN_FLOCK.unpack(argument)
    given = _LINUX_FLOCK.pack(kind, whence, start, length, 0)
    answer = _fcntl(fd, commands[command], given)
    kind, whence, start, length, pid = _LINUX_FLOCK.unpack(answer)
    return _DARWIN_FLOCK.pack(start, length, pid, kind, whence)


def _imitate_memory() -> None:
    import _posixshmem

    real = _posixshmem.shm_open

    def shm_open(name: str, flags: int, mode: int = 0o777) -> int:
        if len(name) > 31:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), name)
        fd: int = real(name, flags, mode)
        return fd

    def ftruncate(fd: int, size: int) -> None:
        if os.readlink(f"/proc/self/fd/{fd}").startswith("/dev/shm/"):
            if os.fstat(fd).st_size > 0:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
            size = -(-size // PAGE) * PAGE
        _ftruncate(fd, size)

    _posixshmem.shm_open = shm_open  # type: ignore[attr-defined]
    os.ftruncate = ftruncate  # type: ignore[assignment]


def methods_of_sockets(real: Any) -> dict[str, Any]:
    """What a socket does on macOS; ``real`` is the class that does it here."""

    def getsockopt(self: Any, level: int, option: int, size: int = 0) -> Any:
        if level != 0:
            return real.getsockopt(self, level, option, size)
        pid, user, group = _PEER.unpack(real.getsockopt(self, 1, _SO_PEERCRED, _PEER.size))
        if option == 2:
            return struct.pack("@i", pid)
        assert (option, size) == (1, 76)
        return struct.pack("@IIh2xI60x", 0, user, 1, group)

    def setsockopt(self: Any, level: int, option: int, value: Any) -> None:
        if option != 0x1022:
            real.setsockopt(self, level, option, value)

    def bind(self: Any, address: bytes) -> None:
        if address.startswith(b"\0") or len(address) >= 104:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        real.bind(self, address)

    return {"getsockopt": getsockopt, "setsockopt": setsockopt, "bind": bind}


def _imitate_sockets(sockets: Any) -> None:
    """In the module's own instance of ``_socket``."""
    for name, method in methods_of_sockets(sockets.module.socket).items():
        setattr(sockets.Socket, name, method)
    for name in _GONE_FROM_SOCKET:
        delattr(sockets.module, name)
    sockets.NO_SIGNAL = 0
    del sockets.polling.epoll


def install() -> None:
    """Import lsmkv as macOS has it."""
    assert "lsmkv" not in sys.modules
    for name in _GONE:
        delattr(os, name)
    fcntl.fcntl = _fcntl_of_darwin  # type: ignore[assignment]
    _imitate_memory()
    sys.platform = "darwin"
    try:
        import lsmkv.shared.system.detached
        import lsmkv.shared.system.local
    finally:
        sys.platform = "linux"
    _imitate_sockets(lsmkv.shared.system.sockets)
    assert lsmkv.shared.system.local.SHARES
    boot = lsmkv.shared.system.detached._BOOT  # which reads no PYTHONPATH
    lsmkv.shared.system.detached._BOOT = boot.replace("import lsmkv\n", _BOOT)
