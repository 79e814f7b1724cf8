"""Stores that differ, and ``lsmkv diff`` in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import lsmkv
from lsmkv.tools.app import app

TINY: dict[str, Any] = {
    "write_buffer_size": 2048,
    "max_file_size": 2048,
    "block_size": 256,
    "compression": None,
}
KEYS = [b"%03d" % number for number in range(300)]


def lsm(*arguments: str | Path) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [*map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def fill(db: lsmkv.DB, keys: list[bytes], text: bytes) -> None:
    for key in keys:
        db.put(key, text * 10)


def scattered(path: Path, text: bytes = b"value") -> None:
    """A store of many tables with disjoint ranges, one or two levels below level 0."""
    with lsmkv.DB(path, create_if_missing=True, **TINY) as db:
        fill(db, KEYS, text)
        db.compact_range()
