"""A temporary directory, of the system's or inside another."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def scratch_directory(prefix: str, inside: str | None = None) -> Iterator[str]:
    """Make a directory that nobody else has, and remove it with all that is in it at the end.

    It is made where the system has temporary files, or ``inside`` a directory.
    """
    with tempfile.TemporaryDirectory(prefix=prefix, dir=inside, ignore_cleanup_errors=True) as path:
        yield path
