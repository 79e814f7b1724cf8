"""A door for readers and type checkers: at run time ``lsmkv.programs`` is
``lsmkv.files.programs`` itself.
"""

from __future__ import annotations

from lsmkv.files.programs import *
