"""Refuses to be imported in a subinterpreter: ``import lsmkv`` imports this module first.

Compiled modules have one state for the whole process.  A second interpreter would share their
classes and constants, which end with the interpreter that made them: ``except lsmkv.Error`` misses
what they raise, and the interpreter that stays crashes.  So only the main interpreter of a process
may import lsmkv, compiled or not, whichever asks first.  ``docs/platforms.md`` says what programs
do that run in subinterpreters, as those of mod_wsgi do.

CPython has no public function that says which interpreter runs.  3.12.1 and later have
``_is_main_interpreter`` in ``_thread``; earlier ones have ``_xxsubinterpreters``, which takes a
quarter of a millisecond to import.
A Python with neither (PyPy, Pyodide) has no subinterpreters that run Python code.
"""

from __future__ import annotations

import sys

IN_MAIN: bool = True
"""True if this is the interpreter that the process began with."""

try:
    from _thread import _is_main_interpreter  # type: ignore[attr-defined]
except ImportError:
    try:
        from _xxsubinterpreters import get_current, get_main  # type: ignore[import-not-found]
    except ImportError:
        pass
    else:
        IN_MAIN = get_current() == get_main()
else:
    IN_MAIN = _is_main_interpreter()

if not IN_MAIN:
    for _name in [name for name in sys.modules if name.startswith("lsmkv.")]:
        del sys.modules[_name]  # an import of a module in one of these would not ask again
    raise ImportError(
        "lsmkv cannot be imported in a subinterpreter, only in the main interpreter of a process"
        " (with mod_wsgi: WSGIApplicationGroup %{GLOBAL})",
        name="lsmkv",
    )
