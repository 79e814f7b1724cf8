"""A door for readers and type checkers: when it runs, ``lsmkv.errors`` is
``lsmkv.engine.errors``.
"""

from __future__ import annotations

from lsmkv.engine.errors import (
    ClosedError,
    ComparatorMismatchError,
    ConflictError,
    CorruptionError,
    DeadlockError,
    DirectoryReplacedError,
    Error,
    ForeignFormatError,
    ForkedError,
    IOError,
    IteratorInvalidError,
    LockedError,
    NotFoundError,
    OutcomeUnknownError,
    PermissionDeniedError,
    ReadOnlyError,
    RecoveryWarning,
    SequenceTooOldError,
    StaleViewError,
    UnsupportedCompressionError,
    UnsupportedValueError,
)

__all__ = [
    "ClosedError",
    "ComparatorMismatchError",
    "ConflictError",
    "CorruptionError",
    "DeadlockError",
    "DirectoryReplacedError",
    "Error",
    "ForeignFormatError",
    "ForkedError",
    "IOError",
    "IteratorInvalidError",
    "LockedError",
    "NotFoundError",
    "OutcomeUnknownError",
    "PermissionDeniedError",
    "ReadOnlyError",
    "RecoveryWarning",
    "SequenceTooOldError",
    "StaleViewError",
    "UnsupportedCompressionError",
    "UnsupportedValueError",
]
