"""Methods of :mod:`lsmkv.aio` that only pass their call on to a thread.

Such a method has the arguments, defaults and types of a method of the engine, which is the one
place where they are written.  Only its docstring is separate:

>>> from lsmkv.engine.db.db import DB
>>> class Flushing:
...     @forwarded(DB.flush)
...     def flush(self) -> None:
...         "Flush the memtable, in a thread."
>>> Flushing.flush.__doc__
'Flush the memtable, in a thread.'
"""

from __future__ import annotations

from collections.abc import Callable
from functools import WRAPPER_ASSIGNMENTS, update_wrapper
from types import CoroutineType
from typing import Any, Concatenate, ParamSpec, TypeVar

from lsmkv.engine.util.arguments import as_bytes

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


def forwarded(
    method: Callable[Concatenate[Any, P], R], *keys: str, long: bool = False
) -> Callable[[Callable[[S], None]], Callable[Concatenate[S, P], CoroutineType[Any, Any, R]]]:
    """A decorator: the method calls ``method`` of the object of the engine, in a thread.

    The class has ``_opened``, which returns the threads and that object.  The body of the decorated
    function is never run.  ``keys`` name the first arguments if they are bytes: a buffer is copied
    when the call is made, since the caller may change it before a thread has read it.  ``long`` is
    for calls that continue in their thread if they are cancelled.
    """
    name = method.__name__

    def decorate(function: Callable[[S], None]) -> Callable[..., Any]:
        async def call(self: Any, /, *args: Any, **kwargs: Any) -> R:
            threads, source = self._opened()
            if keys:
                args = (*map(as_bytes, args, keys), *args[len(keys) :])
            if kwargs:
                kwargs |= {key: as_bytes(kwargs[key], key) for key in keys if key in kwargs}
            run = threads.run_long if long else threads.run
            result: R = await run(getattr(source, name), *args, **kwargs)
            return result

        update_wrapper(call, function, (*WRAPPER_ASSIGNMENTS,), ())
        call.__wrapped__ = method  # type: ignore[attr-defined]  # whose signature is shown
        return call

    return decorate
