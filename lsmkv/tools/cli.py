"""Entry point of the ``lsmkv`` command, which also runs where its extra is not installed.

The commands themselves, in ``app.py``, need typer and rich.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from lsmkv.env.descriptors import raise_limit
from lsmkv.tools.doctor.engine import version_text
from lsmkv.tools.signals import exit_on_signals

_EXTRA = ("typer", "rich")

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
            print(version_text())
            return 0
        print(
            "lsmkv: the command line needs typer and rich:"
            " pip install '.[tools]' in lsmkv's checkout",
            file=sys.stderr,
        )
        return 2
    exit_on_signals()
    raise_limit()  # a store may have more tables than a shell allows files
    try:
        run()
    except KeyboardInterrupt:
        return 130
    return 0
