"""The warnings of stores that are damaged on purpose are turned off."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from lsmkv import RecoveryWarning


@contextmanager
def quiet() -> Iterator[None]:
    """Thousands of warnings that a log is torn or damaged are no help to anybody."""
    logger = logging.getLogger("lsmkv")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecoveryWarning)
        yield
    logger.setLevel(before)
