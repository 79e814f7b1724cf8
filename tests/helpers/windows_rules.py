"""Windows' rules for files on top of Linux, for a process that has not imported lsmkv yet.

:func:`install` makes ``sys.platform`` "win32", takes away what Python lacks on Windows, and has the
calls that Windows knows fail as they do there.  As a pytest plugin (``-p windows_rules``) it does
so before test files are imported.  What is imitated:

* A file that any process under these rules has open or mapped cannot be removed, renamed or
  replaced, nor can a directory with such a file in it be renamed; a mapped file cannot be cut.
* Names differ by more than case.
* ``os.open`` without ``O_BINARY`` would change line ends: it fails.  A directory cannot be opened,
  a file that is open for reading cannot be synced, and there is no ``dir_fd``.
* ``msvcrt.locking`` locks a range for one open file; others can neither read nor write it.
* ``os.kill(pid, 0)`` would be a Ctrl-C: it fails.

Left out: text of the errors, delete-pending names, devices and streams, ACLs, 260 characters.
"""

from __future__ import annotations

import asyncio
import ctypes  # noqa: F401 - what is imported before the rules hold works as it does on Linux
import errno
import fcntl
import functools
import logging
import mmap
import multiprocessing.connection
import multiprocessing.util
import os
import pathlib
import select
import shutil
import signal
import stat
import struct
import subprocess
import sys
import sysconfig
import tempfile
import types
import uuid
from collections.abc import Callable
from concurrent import futures
from typing import Any

import hypothesis.stateful
import pytest

sysconfig.get_config_vars()  # which looks for a file of the platform's name, once

USED = (asyncio, futures, hypothesis, logging, mmap, multiprocessing, pathlib, subprocess, uuid)

PROCESSES = "LSMKV_WINDOWS_PROCESSES"
"""Environment: a directory with a file for each process under the rules, by its id."""
O_BINARY, O_NOINHERIT = 0x8000_0000, 0x4000_0000
GONE_MODULES = ("fcntl", "resource", "grp", "pwd", "termios", "tty", "pty", "syslog", "spwd", "nis")
GONE_FROM_OS = (
    *("O_ASYNC", "O_CLOEXEC", "O_DIRECT", "O_DIRECTORY", "O_DSYNC", "O_NDELAY"),
    *("O_NOATIME", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "O_PATH", "O_RSYNC", "O_SYNC"),
    *("O_TMPFILE", "POSIX_FADV_DONTNEED", "chown", "chroot", "fchdir", "fchmod", "fchown"),
    *("fdatasync", "fork", "forkpty", "getegid", "geteuid", "getgid", "getpgid"),
    *("getpriority", "getuid", "killpg", "lchown", "lockf", "major", "makedev", "minor"),
    *("mkfifo", "mknod", "nice", "pathconf", "posix_fadvise", "posix_fallocate"),
    *("pread", "preadv", "pwrite", "pwritev", "readv", "register_at_fork"),
    *("sched_getaffinity", "sched_yield", "sendfile", "set_blocking", "setsid", "statvfs"),
    *("sync", "uname", "wait", "wait3", "wait4", "waitid", "writev"),
)
GONE_FROM_SIGNAL = (
    *("SIGALRM", "SIGBUS", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT"),
    *("SIGSTOP", "SIGUSR1", "SIGUSR2", "SIG_BLOCK", "SIG_SETMASK", "SIG_UNBLOCK", "alarm"),
    *("pthread_kill", "pthread_sigmask", "setitimer", "sigwait", "siginterrupt"),
)
GONE_FROM_SELECT = ("poll", "epoll", "POLLIN", "POLLOUT")
_OFD_GETLK, _OFD_SETLK = 36, 37

real = types.SimpleNamespace(
    **{
        name: getattr(os, name)
        for name in (
            *("open", "close", "read", "write", "stat", "lstat", "listdir", "unlink", "rename"),
            *("replace", "rmdir", "mkdir", "link", "ftruncate", "fsync", "fstat", "readlink"),
            *("kill", "utime", "access"),
        )
    }
)


class SharingError(PermissionError):
    """``PermissionError`` with the number that Windows gives it."""

    winerror = 32

    @classmethod
    def of(cls, winerror: int, *names: str) -> SharingError:
        text = "The process cannot access the file because it is being used by another process"
        error = cls(errno.EACCES, text, *names[:1])
        error.winerror = winerror
        return error


# Who has what open


def _processes() -> list[str]:
    return real.listdir(os.environ[PROCESSES])


def _open_files() -> list[tuple[tuple[int, int], str]]:
    """Every file that is open or mapped: its identity and path."""
    found = []
    for pid in _processes():
        for folder in ("fd", "map_files"):
            try:
                entries = real.listdir(f"/proc/{pid}/{folder}")
            except OSError:
                continue  # it has ended, or map_files may not be read
            for entry in entries:
                try:
                    status = real.stat(f"/proc/{pid}/{folder}/{entry}")
                    path = real.readlink(f"/proc/{pid}/{folder}/{entry}")
                except OSError:
                    continue  # closed meanwhile
                if stat.S_ISREG(status.st_mode):
                    found.append(((status.st_dev, status.st_ino), path))
    return found


def _mapped(status: os.stat_result) -> bool:
    for pid in _processes():
        try:
            with _builtin_open(f"/proc/{pid}/maps") as maps:
                if any(line.split()[4] == str(status.st_ino) for line in maps):
                    return True
        except OSError:
            continue
    return False


def is_used(path: str) -> bool:
    """Whether a process under these rules has the file, or one in the directory, open."""
    status = real.lstat(path)
    if stat.S_ISDIR(status.st_mode):
        inside = os.path.realpath(path) + "/"
        return any(name.startswith(inside) for _, name in _open_files())
    if not stat.S_ISREG(status.st_mode):
        return False
    identity = status.st_dev, status.st_ino
    return _mapped(status) or any(identity == other for other, _ in _open_files())


# The calls


def _spelled(path: Any) -> Any:
    """The path whose last part is spelled as on the disk."""
    if not isinstance(path, (str, os.PathLike)):
        return path
    path = os.fspath(path)
    if not isinstance(path, str):
        return path
    folder, name = os.path.split(path)
    try:
        real.lstat(path)
    except FileNotFoundError:
        try:
            for other in real.listdir(folder or "."):
                if other.casefold() == name.casefold():
                    return os.path.join(folder, other)
        except OSError:
            pass
    except OSError:
        pass
    return path


def _open(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    _refuse_dir_fd(dir_fd)
    path = _spelled(path)
    own = sys._getframe(1).f_globals.get("__name__", "").startswith("lsmkv.")
    assert flags & O_BINARY or not own, f"{path} is opened without O_BINARY: line ends change"
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", path)
    return real.open(path, flags & ~(O_BINARY | O_NOINHERIT) | 0o2000000, mode)


def _unlink(path: Any, *, dir_fd: int | None = None) -> None:
    _refuse_dir_fd(dir_fd)
    path = _spelled(path)
    if os.path.isdir(path) and not os.path.islink(path):
        raise PermissionError(errno.EACCES, "Access is denied", path)
    if os.path.lexists(path) and is_used(path):
        raise SharingError.of(32, path)
    real.unlink(path)


def _rename(old: Any, new: Any, **dir_fds: int | None) -> None:
    for dir_fd in dir_fds.values():
        _refuse_dir_fd(dir_fd)
    old, new = _spelled(old), _spelled(new)
    real.lstat(old)
    if os.path.lexists(new) and os.path.realpath(old) != os.path.realpath(new):
        raise FileExistsError(errno.EEXIST, "The file exists", new)
    if is_used(old):
        raise SharingError.of(5 if os.path.isdir(old) else 32, old)
    real.rename(old, new)


def _replace(old: Any, new: Any, **dir_fds: int | None) -> None:
    for dir_fd in dir_fds.values():
        _refuse_dir_fd(dir_fd)
    old, new = _spelled(old), _spelled(new)
    real.lstat(old)
    if is_used(old):
        raise SharingError.of(32, old)
    if os.path.isdir(new) or (os.path.lexists(new) and is_used(new)):
        raise SharingError.of(5, old)
    real.replace(old, new)


def _link(old: Any, new: Any, **keywords: Any) -> None:
    if keywords:
        raise NotImplementedError("link: dir_fd and follow_symlinks")
    if os.path.lexists(_spelled(new)):
        raise FileExistsError(errno.EEXIST, "The file exists", new)
    real.link(_spelled(old), new)


def _ftruncate(fd: int, length: int) -> None:
    if _mapped(real.fstat(fd)):
        raise PermissionError(errno.EACCES, "Permission denied")
    real.ftruncate(fd, length)


def _fsync(fd: int) -> None:
    if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE_ == os.O_RDONLY:  # type: ignore[attr-defined]
        raise OSError(errno.EBADF, "Bad file descriptor")
    real.fsync(fd)


def _read(fd: int, length: int) -> bytes:
    _refuse_locked(fd, length, fcntl.F_RDLCK)
    return real.read(fd, length)


def _write(fd: int, data: Any) -> int:
    _refuse_locked(fd, len(data), fcntl.F_WRLCK)
    return real.write(fd, data)


def _kill(pid: int, number: int) -> None:
    assert number != 0, "signal 0 is CTRL_C_EVENT"
    real.kill(pid, number)


def _refuse_locked(fd: int, length: int, kind: int) -> None:
    try:
        position = os.lseek(fd, 0, os.SEEK_CUR)
    except OSError:
        return  # a pipe
    flock = struct.pack("@hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, position, max(1, length), 0)
    try:
        answer = fcntl.fcntl(fd, _OFD_GETLK, flock)
    except OSError:
        return
    if struct.unpack("@hhqqi0q", answer)[0] != fcntl.F_UNLCK:
        raise PermissionError(errno.EACCES, "Permission denied")


def _refuse_dir_fd(dir_fd: int | None) -> None:
    if dir_fd is not None:
        raise NotImplementedError("dir_fd unavailable on this platform")


def _by_path(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def wrapped(path: Any = ".", *arguments: Any, **keywords: Any) -> Any:
        _refuse_dir_fd(keywords.pop("dir_fd", None))
        return call(_spelled(path), *arguments, **keywords)

    return wrapped


def _paths_only(call: Callable[..., Any]) -> Callable[..., Any]:
    by_path = _by_path(call)

    @functools.wraps(call)
    def wrapped(path: Any = ".", *arguments: Any, **keywords: Any) -> Any:
        if isinstance(path, int):
            raise TypeError(f"{call.__name__}: path should be string, bytes or os.PathLike")
        return by_path(path, *arguments, **keywords)

    return wrapped


# msvcrt


def locking(fd: int, mode: int, length: int) -> None:
    """``msvcrt.locking``: from the present position; Windows' locks belong to an open file."""
    kind = {0: fcntl.F_UNLCK, 2: fcntl.F_WRLCK}[mode]
    position = os.lseek(fd, 0, os.SEEK_CUR)
    flock = struct.pack("@hhqqi0q", kind, os.SEEK_SET, position, length, 0)
    try:
        fcntl.fcntl(fd, _OFD_SETLK, flock)
    except BlockingIOError:
        raise PermissionError(errno.EACCES, "Permission denied") from None


_builtin_open = open


def install() -> None:
    """Have the rules hold in this process from now on."""
    if PROCESSES not in os.environ:
        os.environ[PROCESSES] = tempfile.mkdtemp(prefix="windows-")
    real.close(real.open(f"{os.environ[PROCESSES]}/{os.getpid()}", os.O_CREAT | os.O_WRONLY))
    assert not any(name.partition(".")[0] == "lsmkv" for name in sys.modules)
    os.O_ACCMODE_ = os.O_ACCMODE  # type: ignore[attr-defined]
    for name in GONE_MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    gone = ((os, GONE_FROM_OS), (signal, GONE_FROM_SIGNAL), (select, GONE_FROM_SELECT))
    for module, names in gone:
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    msvcrt = types.ModuleType("msvcrt")
    msvcrt.__dict__.update(locking=locking, LK_UNLCK=0, LK_LOCK=1, LK_NBLCK=2)
    sys.modules["msvcrt"] = msvcrt
    calls: dict[str, Any] = {
        **{"O_BINARY": O_BINARY, "O_NOINHERIT": O_NOINHERIT},
        **{"open": _open, "unlink": _unlink, "remove": _unlink, "rename": _rename},
        **{"replace": _replace, "link": _link, "ftruncate": _ftruncate, "fsync": _fsync},
        **{"read": _read, "write": _write, "kill": _kill},
        **{name: _by_path(getattr(real, name)) for name in ("stat", "lstat", "rmdir", "mkdir")},
        **{name: _paths_only(getattr(real, name)) for name in ("listdir", "utime")},
        **{"supports_dir_fd": set(), "supports_fd": set(), "supports_follow_symlinks": {os.stat}},
    }
    for name, call in calls.items():
        setattr(os, name, call)
    shutil._use_fd_functions = False  # type: ignore[attr-defined]
    shutil._USE_CP_SENDFILE = False  # type: ignore[attr-defined]
    tempfile._bin_openflags = os.O_RDWR | os.O_CREAT | os.O_EXCL | O_BINARY  # type: ignore[attr-defined]
    sys.platform = "win32"


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Called by pytest, once its own modules are imported and before a conftest is."""
    install()
