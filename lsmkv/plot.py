"""A door for readers and type checkers: at run time ``lsmkv.plot`` is ``lsmkv.tools.plot``
itself.
"""

from __future__ import annotations

from lsmkv.tools.plot import *
