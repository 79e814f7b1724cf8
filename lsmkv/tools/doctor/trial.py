"""Capabilities of a directory's file system, tried there with scratch files.

``lsmkv doctor`` asks.  Each thing is done as a store does it, by the same classes: what works here
works there.  The scratch files are in a separate directory, which is removed with them.

Left out: whether a lock keeps other *machines* out, which takes two of them.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from typing import NamedTuple

from lsmkv import Directory, LocalEnv
from lsmkv.engine.env.lock import LocalFileLock

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

PREFIX = "lsmkv-doctor-"
"""The prefix of the names of scratch directories."""
_HOUR = 3600
_CONTENT = b"tried by lsmkv doctor\n"


class Trials(NamedTuple):
    """Results of the trials: an empty text for success, or the system's reason for the failure."""

    files: str
    """Making, writing, syncing and reading a file."""
    renames: str
    """Renaming a file over another."""
    directory_sync: str
    """Making names durable."""
    links: str
    """Hard links."""
    lock: str
    is_ofd: bool
    """True if the lock was an OFD lock (``lock.py``)."""
    mapped_log: bool
    """True if a log was reserved and mapped (``local_log.py``)."""


def try_directory(path: str) -> Trials:
    """Try everything in a directory; ``OSError`` if no scratch directory can be made in it."""
    _sweep(path)
    with (
        tempfile.TemporaryDirectory(prefix=PREFIX, dir=path, ignore_cleanup_errors=True) as place,
        LocalEnv().open_directory(place) as directory,
    ):
        return Trials(
            files=_attempt(lambda: _try_files(directory)),
            renames=_attempt(lambda: _try_renames(directory)),
            directory_sync=_attempt(directory.sync),
            links=_attempt(lambda: _try_links(directory)),
            lock=_attempt(lambda: directory.lock("lock").close()),
            is_ofd=_lock_is_ofd(directory),
            mapped_log=_log_is_mapped(directory),
        )


def _sweep(path: str) -> None:
    """Remove what a trial that was killed an hour ago or more has left."""
    with os.scandir(path) as entries:
        left = [entry for entry in entries if entry.name.startswith(PREFIX)]
    for entry in left:
        if entry.is_dir(follow_symlinks=False) and time.time() - entry.stat().st_mtime > _HOUR:
            shutil.rmtree(entry.path, ignore_errors=True)


def beside(path: str) -> str | None:
    """The directory above a directory, if it is on the same file system."""
    above = os.path.dirname(os.path.realpath(path))
    try:
        same = os.stat(above).st_dev == os.stat(path).st_dev
    except OSError:
        return None
    return above if same and not os.path.samefile(above, path) else None


def free_bytes(path: str) -> int | None:
    """The disk space that this user may fill; None where it is unknown."""
    try:
        return shutil.disk_usage(path).free
    except OSError:
        return None


def open_file_limit() -> int | None:
    """The limit of open files of this process; None if there is none, or it is unknown."""
    if sys.platform == "win32" or resource is None:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def _attempt(call: Callable[[], None]) -> str:
    try:
        call()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _write(directory: Directory, name: str) -> None:
    with directory.create(name) as file:
        file.append(_CONTENT)
        file.sync()


def _read(directory: Directory, name: str) -> None:
    if directory.read_file(name, limit=len(_CONTENT)) != _CONTENT:
        raise OSError("what was written is not what is read")


def _try_files(directory: Directory) -> None:
    _write(directory, "file")
    _read(directory, "file")
    directory.remove("file")


def _try_renames(directory: Directory) -> None:
    _write(directory, "new")
    directory.create("old").close()
    directory.rename("new", "old")
    _read(directory, "old")


def _try_links(directory: Directory) -> None:
    _write(directory, "linked")
    os.mkdir(os.path.join(directory.path, "other"))
    with directory.subdirectory("other") as other:
        directory.link("linked", other)
        _read(other, "linked")


def _lock_is_ofd(directory: Directory) -> bool:
    try:
        with directory.lock("lock") as lock:
            return isinstance(lock, LocalFileLock) and lock.is_ofd
    except OSError:
        return False


def _log_is_mapped(directory: Directory) -> bool:
    try:
        with directory.create_log("log") as log:
            log.append(_CONTENT)
            return log.mapped
    except OSError:
        return False
