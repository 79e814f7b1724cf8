"""Keys and values as callers give them, made ``bytes`` before the engine sees them.

Every public method that takes a key or a value calls :func:`as_bytes`, or first checks
``type(key) is bytes``.  A subclass of ``bytes`` may define its own hash, equality or order, with
which a memtable would lose keys.  So inside the engine a key is exactly ``bytes``, and no method of
a caller's class runs.
"""

from __future__ import annotations

from typing import Protocol


class BytesLike(Protocol):
    """The types in which keys and values may be given: those that ``memoryview`` takes.

    ``bytes``, ``bytearray``, ``memoryview``, ``array.array``, ``mmap.mmap``, ``numpy.ndarray`` and
    others; see :func:`as_bytes`.
    """

    def __buffer__(self, flags: int, /) -> memoryview:
        """For type checkers only: Python 3.11 has no such method."""
        ...


def as_bytes(value: object, what: str) -> bytes:
    """``value`` as exactly ``bytes``: itself, or a copy of any other buffer's bytes.

    An array's bytes are copied element by element in C order, as ``memoryview.tobytes`` does,
    whatever its number of dimensions, and whether or not it is contiguous.  Any other object, or a
    buffer of references to Python objects, raises ``TypeError``.

    >>> as_bytes(memoryview(b"abcd")[::2], "value")
    b'ac'
    >>> as_bytes("text", "key")
    Traceback (most recent call last):
    TypeError: a key must be bytes, not str: encode it first, str.encode()
    """
    if type(value) is bytes:
        return value
    if isinstance(value, bytes):
        # Uses the method of ``bytes``: the class may override it.
        return bytes.__getitem__(value, slice(None))
    try:
        view = memoryview(value)  # type: ignore[arg-type]
    except TypeError:
        hint = ": encode it first, str.encode()" if isinstance(value, str) else ""
        raise TypeError(f"a {what} must be bytes, not {type(value).__name__}{hint}") from None
    if "O" in view.format:
        raise TypeError(f"a {what} must be bytes, not references to Python objects")
    return view.tobytes()
