"""Why an object can be neither copied nor pickled, said where it is tried."""

from __future__ import annotations

from typing import Never


def refuse_copy(what: str, why: str) -> Never:
    """Raise the ``TypeError`` of an object that is one of a kind: the ``__reduce__`` of its class
    calls this, which ``copy`` and ``pickle`` both ask.

    >>> refuse_copy("a cursor", "it holds an open store")
    Traceback (most recent call last):
    TypeError: a cursor can be neither copied nor pickled: it holds an open store
    """
    raise TypeError(f"{what} can be neither copied nor pickled: {why}")
