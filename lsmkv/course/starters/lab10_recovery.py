"""Lab 10: recovery.  ``lsmkv course show 10`` is the text, ``lsmkv course check 10`` checks.

Write the five functions.  Each can be checked as soon as it is written.  Batches, checksums and
names are the engine's.  CURRENT is changed by your own function of lab 9:
``from lab9_manifest import set_current``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from lsmkv.course.given import (  # noqa: F401 - for you to use
    Directory,
    decode_batch,
    typed_crc32c,
)
from lsmkv.files import parse_name  # noqa: F401 - for you to use

BLOCK_SIZE = 32768
HEADER_SIZE = 7
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4


def logs_to_replay(names: Sequence[str], log_number: int, prev_log_number: int) -> list[str]:
    """The logs whose writes no table holds, from a directory's names, in the order to replay."""
    raise NotImplementedError


def is_torn_tail(log: bytes, offset: int) -> bool:
    """Return True if no record begins after ``offset``, where the bad bytes of a log begin."""
    raise NotImplementedError


def replay(
    logs: Sequence[Sequence[bytes | None]], last_sequence: int
) -> tuple[dict[bytes, bytes | None], int]:
    """The newest value of each key in some logs, None if it was deleted, and the last sequence.

    A log is a list of its batches, with None where bytes are bad.  ``ValueError`` if acknowledged
    writes may be missing.
    """
    raise NotImplementedError


def obsolete_files(
    names: Sequence[str],
    tables: Collection[int],
    log_number: int,
    prev_log_number: int,
    manifest_number: int,
) -> list[str]:
    """The names that a store in this state no longer needs, and may remove."""
    raise NotImplementedError


def commit(
    directory: Directory, files: Mapping[str, bytes], manifest_number: int, obsolete: Sequence[str]
) -> None:
    """Durably write the new files, make CURRENT name the new MANIFEST, and then remove the obsolete
    files.
    """
    raise NotImplementedError
