"""A temporary directory, where the system keeps temporary files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def scratch_directory(prefix: str) -> Iterator[str]:
    """Make a new directory, and remove it with everything in it at the end.

    It is made where the system has temporary files.
    """
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as path:
        yield path
