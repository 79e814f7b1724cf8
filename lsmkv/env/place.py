"""Where a new store goes on the local disk."""

from __future__ import annotations

import os


def resolve(path: str) -> str:
    """The path with symbolic links followed, so that what they lead to can be made anew."""
    return os.path.realpath(path)


def make_directory(path: str, mode: int) -> bool:
    """Make a directory for files of ``mode``; False if it was not made, for whatever reason.

    A directory is entered by its ``x`` bits: each is set where ``r`` is.  The owner gets all
    three, or could make no file in it.  The umask is taken off.  A failure is not told: whoever
    opens the directory next is.
    """
    try:
        os.mkdir(path, mode | (mode & 0o444) >> 2 | 0o700)
    except OSError:
        return False
    return True
