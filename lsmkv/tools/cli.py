"""Entry point of the ``lsmkv`` command, which also runs where its extra is not installed.

The commands themselves, in ``app.py``, need typer and rich.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import FrameType

from lsmkv.tools.text import version_line

_EXTRA = ("typer", "rich")
_DEADLY = [signal.SIGTERM]
if sys.platform != "win32":
    _DEADLY.append(signal.SIGHUP)

run: Callable[[], None] | None
try:
    from lsmkv.tools.app import app as run
except ImportError as error:
    if (error.name or "").partition(".")[0] not in _EXTRA:
        raise
    run = None


def main() -> int:
    """Run the command line.

    The exit status is 0, 1 for a miss, 2 for an error, and 128 + N if signal N ended it.
    """
    if run is None:
        if sys.argv[1:] in (["--version"], ["-V"]):
            print(version_line())
            return 0
        print(
            "lsmkv: the command line needs typer and rich:"
            " pip install '.[tools]' in lsmkv's checkout",
            file=sys.stderr,
        )
        return 2
    _exit_on_signals()
    try:
        run()
    except KeyboardInterrupt:
        return 130
    return 0


def _exit_on_signals() -> None:
    """Have SIGTERM and SIGHUP end the process by ``SystemExit``, so that ``finally`` blocks run."""
    for number in _DEADLY:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _exit)


def _exit(number: int, frame: FrameType | None) -> None:
    for one in _DEADLY:
        signal.signal(one, signal.SIG_IGN)  # a second one must not cut the cleaning up short
    sys.exit(128 + number)
