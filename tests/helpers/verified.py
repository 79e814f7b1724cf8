"""A shard set that is verified, and may be changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lsmkv
import lsmkv.bulk
import lsmkv.shards
from lsmkv.engine.options import KIB
from lsmkv.shards import ShardEntry, VersionDocument
from lsmkv.shards.verify import VersionSurvey
from lsmkv.shards.version import version_name

PAIRS = [(b"%06d" % n, b"value %d" % n * 10) for n in range(3000)]


def make_set(path: Path) -> Path:
    lsmkv.bulk.build(
        PAIRS, path, shards=2, table_bytes=64 * KIB, block_size=4 * KIB, compression="none"
    )
    return path


def verify(url: Path) -> VersionSurvey:
    with lsmkv.shards.open(url) as s:
        return s.verify()


def files_of(url: Path, shard: int, pattern: str) -> list[Path]:
    with lsmkv.shards.open(url) as s:
        return sorted((url / s.document.shards[shard].path).glob(pattern))


def reasons_of(found: VersionSurvey, shard: int) -> dict[str, list[str]]:
    """The problems and remarks of a shard's files."""
    return {
        file.name: [problem.reason for problem in file.problems] + file.remarks
        for file in found.shards[shard].files
        if file.problems or file.remarks
    }


def restate(url: Path, change: Callable[[ShardEntry], ShardEntry]) -> None:
    """Have the version say something else of its second shard."""
    with lsmkv.shards.open(url) as s:
        document: VersionDocument = s.document
    shards = (document.shards[0], change(document.shards[1]))
    name = version_name(document.number)
    (url / name).write_bytes(document._replace(shards=shards).encode())
