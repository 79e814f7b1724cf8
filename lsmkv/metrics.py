"""A door for readers and type checkers: when it runs, ``lsmkv.metrics`` is
``lsmkv.engine.metrics``.
"""

from __future__ import annotations

from lsmkv.engine.metrics import metrics_text

__all__ = ["metrics_text"]
