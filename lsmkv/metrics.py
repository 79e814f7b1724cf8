"""A door for readers and type checkers: at run time ``lsmkv.metrics`` is
``lsmkv.engine.metrics`` itself.
"""

from __future__ import annotations

from lsmkv.engine.metrics import metrics_text as metrics_text
