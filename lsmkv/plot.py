"""A door for readers and type checkers: when it runs, ``lsmkv.plot`` is ``lsmkv.tools.plot``."""

from __future__ import annotations

from lsmkv.tools.plot import blocks_per_get, false_positive_rates, fill, to_svg

__all__ = ["blocks_per_get", "false_positive_rates", "fill", "to_svg"]
