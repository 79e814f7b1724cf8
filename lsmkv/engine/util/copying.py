"""The error for an object that can be neither copied nor pickled."""

from __future__ import annotations

from typing import Never


def refuse_copy(what: str, why: str) -> Never:
    """Raise the ``TypeError`` of an object that cannot be duplicated.  The ``__reduce__`` of its
    class calls this; ``copy`` and ``pickle`` both use that.

    >>> refuse_copy("a cursor", "it holds an open store")
    Traceback (most recent call last):
    TypeError: a cursor can be neither copied nor pickled: it holds an open store
    """
    raise TypeError(f"{what} can be neither copied nor pickled: {why}")
