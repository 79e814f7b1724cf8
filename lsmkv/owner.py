"""A door for readers and type checkers: at run time ``lsmkv.owner`` is ``lsmkv.shared.owner``
itself.
"""

from __future__ import annotations

from lsmkv.shared.owner import *
