"""The hook for PyInstaller, found by the entry point ``pyinstaller40``.

Nothing of this is imported by a program.  A compiled module does not show PyInstaller what it
imports, so ``hook-lsmkv.py`` lists it.  ``rthooks/lsmkv_owner.py`` runs before the program's own
script: so that a frozen program can start itself as the process that owns a store for others
(``owner="process"``).
"""

from __future__ import annotations

import os


def hook_directories() -> list[str]:
    """The directory of the hooks.

    >>> sorted(os.listdir(hook_directories()[0]))[:1]
    ['__init__.py']
    """
    return [os.path.dirname(__file__)]
