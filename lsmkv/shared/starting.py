"""Starts the process that owns a store for others: ``owner="process"``.

:mod:`lsmkv.shared.owner_process` is what runs there.  Request and answer are pickled: both ends are
this program's, and no other process can write into the pipes.
"""

from __future__ import annotations

import pickle
import platform
from collections.abc import Callable
from typing import Any, Final

from lsmkv.engine.env.place import absolute
from lsmkv.engine.errors import Error
from lsmkv.engine.options import OptionArguments
from lsmkv.engine.util.call_site import call_site
from lsmkv.engine.util.signals import deferred
from lsmkv.shared.system.detached import Detached

OWNS: Final = "owns"
OWNED: Final = "owned"
"""Another process was faster."""
FAILED: Final = "failed"
_ATTEMPTS: Final = 5
_LOOK_EVERY: Final = 0.1
"""Seconds after which a starter checks whether its handle was closed."""
_OF_ONE_PROCESS: Final = ("block_cache", "trace")


def for_others(arguments: OptionArguments) -> dict[str, Any]:
    """The options that another process gets: all but those that belong to this one."""
    return {name: value for name, value in arguments.items() if name not in _OF_ONE_PROCESS}


def start_owner(
    path: str, arguments: OptionArguments, python: str, go_on: Callable[[], None]
) -> bool:
    """Let a new process open the store.  False if another one owns it already.

    ``python`` is the path of its interpreter, or empty.  Raises what opening raises there, and
    ``ValueError`` for an option that cannot be sent to another process, and for a Python of another
    version.  ``go_on`` is called now and then, and raises to give up.
    """
    try:
        request = pickle.dumps((absolute(path), for_others(arguments)))
    except Exception as error:
        raise ValueError(
            f"owner='process': an option cannot be sent to another process: {error}"
        ) from error
    for _ in range(_ATTEMPTS):
        program, answer = _start(path, request, python, go_on)
        if answer:
            return _owns(answer)
    raise Error(f"{path}: {program} was started to own the store, but ended immediately")


def _start(path: str, request: bytes, python: str, go_on: Callable[[], None]) -> tuple[str, bytes]:
    """Start a process; returns its program, and its answer, which is empty if it has ended
    without one."""
    process = Detached("lsmkv.shared.owner_process", "lsmkv-owner", absolute(path), request, python)
    try:
        while (answer := process.receive(_LOOK_EVERY)) is None:
            deferred.deliver()
            go_on()
    finally:
        process.close()
    if process.is_other:
        raise ValueError(
            f"{process.program} is not the Python {platform.python_version()} of this program:"
            " pass its path as python="
        )
    return process.program, answer


def _owns(answer: bytes) -> bool:
    outcome, error, warned = pickle.loads(answer)
    for warning in warned:
        call_site().warn(warning, type(warning))
    if outcome == FAILED:
        raise error
    return bool(outcome == OWNS)
