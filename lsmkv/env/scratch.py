"""A temporary directory, in the system's place for them or inside another directory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def scratch_directory(prefix: str, inside: str | None = None) -> Iterator[str]:
    """Make a new directory, and remove it with everything in it at the end.

    It is made where the system has temporary files, or ``inside`` a directory.
    """
    with tempfile.TemporaryDirectory(prefix=prefix, dir=inside, ignore_cleanup_errors=True) as path:
        yield path
