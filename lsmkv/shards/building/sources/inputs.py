"""The input files of a bulk build.

They are not files of a store: they may be symbolic links, and are read from end to end.  Errors are
``OSError``, with ``errno`` and the file's path.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

from lsmkv.engine.env.local_file import naming

_BUFFER = 1024 * 1024


class InputFile(NamedTuple):
    """A regular file."""

    path: str
    """Absolute, so that a process in another working directory finds it."""
    size: int
    """Bytes."""


def find_inputs(path: str) -> list[InputFile]:
    """The file at ``path``, or the files of a directory, by name.

    Names that begin with ``.`` or ``_`` are left out, because writers of data sets mark other files
    so (``_SUCCESS``).  A directory inside raises ``IsADirectoryError``, so that nothing in it is
    missed. What is not a regular file cannot be read twice: ``OSError`` with ``EINVAL``.
    """
    path = os.path.abspath(path)
    with naming(path):
        if not os.path.isdir(path):
            return [_input_file(path)]
        names = sorted(name for name in os.listdir(path) if not name.startswith((".", "_")))
    return [_input_file(os.path.join(path, name)) for name in names]


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """Open a file for buffered reading of bytes; an ``OSError`` inside the block names the file."""
    with naming(path), open(path, "rb", _BUFFER) as file:
        yield file


def _input_file(path: str) -> InputFile:
    with naming(path):
        status = os.stat(path)
    if stat.S_ISDIR(status.st_mode):
        why = "a directory inside an input directory: pass the paths of its files"
        raise IsADirectoryError(errno.EISDIR, why, path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file: it could not be read again", path)
    return InputFile(path, status.st_size)
