"""Small files next to a store, such as settings: read and replaced as a whole."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile


def read_whole(path: str) -> bytes:
    """The content of a file.  ``OSError``."""
    with open(path, "rb") as file:
        return file.read()


def replace_whole(path: str, content: bytes) -> None:
    """Replace the content of a file, all of it or nothing, and make that durable.  ``OSError``.

    The file keeps its mode; a new one is readable for its user alone.  A link stays.
    """
    path = os.path.realpath(path)
    directory, name = os.path.split(path)
    descriptor, made = tempfile.mkstemp(prefix=f"{name}.tmp-", dir=directory)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        with contextlib.suppress(FileNotFoundError):
            os.chmod(made, stat.S_IMODE(os.stat(path).st_mode))
        os.replace(made, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(made)
        raise
    if os.name == "posix":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
