"""What is said of stores that are damaged on purpose is turned off."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from lsmkv import RecoveryWarning


@contextmanager
def quiet_log() -> Iterator[None]:
    """Thousands of warnings that a log is torn or damaged are no help to anybody."""
    logger = logging.getLogger("lsmkv")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def quiet() -> Iterator[None]:
    """Neither logged nor warned of, outside of pytest."""
    with quiet_log(), warnings.catch_warnings():
        warnings.simplefilter("ignore", RecoveryWarning)
        yield
