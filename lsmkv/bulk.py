"""A door for readers and type checkers: at run time ``lsmkv.bulk`` is ``lsmkv.shards.building``
itself.
"""

from __future__ import annotations

from lsmkv.shards.building import *
