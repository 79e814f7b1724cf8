"""Entry point of the ``lsmkv`` command, which also runs where its extra is not installed.

The commands themselves, in ``app.py``, need typer and rich.  ``--version`` and ``doctor`` do not.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

from lsmkv.engine.env.descriptors import raise_limit
from lsmkv.tools.console import INTERRUPTED
from lsmkv.tools.signals import exit_on_signals

_EXTRA = ("typer", "rich")


def main() -> int:
    """Run the command line.

    The exit status is 0, 1 for a miss, 2 for an error, and 128 + N if signal N ended it.
    """
    name = "app" if all(map(find_spec, _EXTRA)) else "alone"
    run: Callable[[], None] = getattr(import_module(f"lsmkv.tools.{name}"), name)
    exit_on_signals()
    raise_limit()  # a store may have more tables than a shell allows files
    try:
        run()
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0
