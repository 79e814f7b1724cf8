"""A file that a command writes: there whole, or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from typing import BinaryIO


@contextlib.contextmanager
def open_output(path: str, force: bool) -> Iterator[BinaryIO]:
    """stdout, or a file that takes its name once it is whole and durable."""
    if path == "-":
        yield sys.stdout.buffer
        return
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    os.stat(folder)  # so that an error names it, and not the temporary file
    _require_free(target, force)
    temporary = f"{target}.{secrets.token_hex(4)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o666)
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _require_free(target, force)
        os.rename(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _require_free(path: str, force: bool) -> None:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    if not force:
        raise FileExistsError(errno.EEXIST, "it is there already (--force replaces it)", path)
