"""Formulas of labs 4, 11 and 12, with which the report of a student's store predicts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lsmkv.course.store.seams import Using

KEPT: dict[str, Using] = {}
"""The parts with formulas that are installed, by name."""


def keep(using: Using) -> None:
    """Keep the formulas, which replace nothing in the engine."""
    KEPT[using.part] = using


def false_positive_rate(bits: int, probes: int) -> float:
    """The share of absent keys for which a filter says maybe: (1 - e^(-k / bits))^k."""
    right = (1.0 - math.exp(-probes / bits)) ** probes
    return _formula("false positives", "predicted_rate", (bits, probes), right)


def blocks_read(tables: int, rate: float) -> float:
    """The blocks that a Get of an absent key reads: one for each table whose filter errs.

    Lab 12's formula is for a key that one more table holds.
    """
    return _formula("blocks read", "predict", (tables, rate), tables * rate + 1) - 1


def write_amplification(user: int, flushed: int, compacted: int) -> float:
    """The bytes of tables that were written for each byte that was put."""
    right = (flushed + compacted) / user if user else 0.0
    arguments = (user, flushed, compacted)
    return _formula("write amplification", "write_amplification", arguments, right)


def _formula(part: str, name: str, arguments: tuple[Any, ...], right: float) -> float:
    using = KEPT.get(part)
    if using is None or not using.in_use():
        return right
    function: Callable[..., Any] = getattr(using.mine, name)
    found = using.guard.tried(part, function, arguments)
    if using.guard.failed(found):
        return right
    if not isinstance(found, (int, float)) or not math.isclose(found, right, rel_tol=1e-6):
        what = f"{name}{arguments} is {found!r}, not {right:g}"
        using.guard.fail(part, name, what)
        return right
    using.guard.calls[part] += 1
    return float(found)
