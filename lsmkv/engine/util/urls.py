"""Distinguishes URLs from local paths."""

from __future__ import annotations

import re

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")


def scheme_of(text: str) -> str | None:
    """The scheme that a text begins with, in lower case; None for a local path.

    >>> scheme_of("S3://bucket/prefix"), scheme_of("/data/store"), scheme_of("C:/data")
    ('s3', None, None)
    """
    found = _SCHEME.match(text)
    return found[1].lower() if found else None


def is_url(text: str) -> bool:
    """Return True if a text begins with a scheme, as in ``s3://``; otherwise it is a local path."""
    return scheme_of(text) is not None
