"""A file that a command writes: it appears whole, or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from typing import Protocol, Self

from lsmkv import LocalEnv
from lsmkv.engine.env.local_file import sync_descriptor


class Output(Protocol):
    """The destination of a command's output."""

    def write(self, data: bytes, /) -> object:
        """Append ``data``."""


@contextlib.contextmanager
def open_output(path: str, force: bool, mode: int | None = None) -> Iterator[Output]:
    """Open a file for writing, or stdout if ``path`` is ``-``.

    The file takes its name once it is complete and durable, and replaces another one only with
    ``force``.  ``mode`` is its mode, if the umask is not to decide.  If the block is left by an
    exception, nothing stays of it.  An ``OSError`` that writing raises names ``path``.
    """
    if path == "-":
        yield sys.stdout.buffer
        return
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    os.stat(folder)  # so that an error names it, and not the temporary file
    _require_free(target, force)
    temporary = f"{target}.{secrets.token_hex(4)}.tmp"
    try:
        with _NewFile(temporary, path) as output:
            if mode is not None:
                os.chmod(temporary, mode)
            yield output
        _require_free(target, force)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    with LocalEnv().open_directory(folder) as directory:
        directory.sync()


class _NewFile:
    """A new file, durable once it is left without an exception; its errors name ``path``."""

    def __init__(self, temporary: str, path: str) -> None:
        self._file = open(temporary, "xb")  # noqa: SIM115 - see __exit__
        self._path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._file.flush()
                sync_descriptor(self._file.fileno(), os.fsync)
            self._file.close()
        except OSError as error:
            if kind is None:
                raise self._named(error) from None

    def write(self, data: bytes, /) -> None:
        """Append ``data``."""
        try:
            self._file.write(data)
        except OSError as error:
            raise self._named(error) from None

    def _named(self, error: OSError) -> OSError:
        return OSError(error.errno, error.strerror, self._path)


def _require_free(path: str, force: bool) -> None:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    if not force:
        raise FileExistsError(errno.EEXIST, "it exists already (--force replaces it)", path)
