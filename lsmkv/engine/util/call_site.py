"""The line that has called lsmkv, which a warning should show.

A warning is about what the user wrote, however many of lsmkv's functions lie between.  Where lsmkv
calls itself in another thread, that line is not among the callers: it is noted before.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")


class CallSite:
    """A line that calls lsmkv."""

    def __init__(self, frame: FrameType) -> None:
        names: dict[str, Any] = frame.f_globals
        self._filename: str = frame.f_code.co_filename
        self._line: int = frame.f_lineno
        self._module: str = names.get("__name__") or "<string>"
        self._registry: dict[Any, Any] = names.setdefault("__warningregistry__", {})

    def warn(self, message: str | Warning, category: type[Warning]) -> None:
        """Issue a warning that shows this line; ``category`` is that of a message as text."""
        warnings.warn_explicit(
            message, category, self._filename, self._line, self._module, self._registry
        )


_noted: ContextVar[CallSite | None] = ContextVar("lsmkv's call site", default=None)


def call_site() -> CallSite:
    """The innermost line that is not lsmkv's, or the one that :func:`called_at` has noted."""
    noted = _noted.get()
    if noted is not None:
        return noted
    # Compiled functions have no frame, so that this one may be the user's already.
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("lsmkv."):
        frame = frame.f_back
    return CallSite(frame)


def called_at(site: CallSite | None, function: Callable[[], T]) -> T:
    """Call a function of lsmkv's in this thread, whose warnings show that line."""
    before = _noted.set(site)
    try:
        return function()
    finally:
        _noted.reset(before)
