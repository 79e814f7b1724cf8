"""Signals that end a command in good order."""

from __future__ import annotations

import signal
import sys
from types import FrameType

_DEADLY = [signal.SIGTERM]
if sys.platform != "win32":
    _DEADLY.append(signal.SIGHUP)


class Terminated(SystemExit):
    """A signal ends the command.  Handlers of errors of foreign code must not catch this one."""


def exit_on_signals() -> None:
    """Have SIGTERM and SIGHUP raise :class:`Terminated`, so that ``finally`` blocks run."""
    for number in _DEADLY:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _exit)


def _exit(number: int, frame: FrameType | None) -> None:
    for one in _DEADLY:
        signal.signal(one, signal.SIG_IGN)  # a second one must not cut the cleaning up short
    raise Terminated(128 + number)
