"""Two calls on local paths for the making of a store by ``lsmkv.open``."""

from __future__ import annotations

import os


def resolve(path: str) -> str:
    """The path with symbolic links followed, so that the directory behind them can be replaced."""
    return os.path.realpath(path)


def make_directory(path: str, mode: int) -> bool:
    """Make a directory for files of ``mode``; returns whether it was made.

    A directory is entered by its ``x`` bits, so each is set where ``r`` is.  The owner gets all
    three bits, which making files in it needs.  The umask is subtracted.  A failure raises nothing:
    the call that opens the directory next raises.
    """
    try:
        os.mkdir(path, mode | (mode & 0o444) >> 2 | 0o700)
    except OSError:
        return False
    return True
