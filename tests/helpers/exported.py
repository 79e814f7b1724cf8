"""Stores to export, and errors behind a progress bar."""

from __future__ import annotations

from pathlib import Path

from commands import Done

import lsmkv

Records = list[tuple[bytes, bytes]]

CONTENT: Records = [
    (b"", b""),
    (b"\x00", bytes(range(256))),
    (b"a", b"line\nline\r\n"),
    ("ключ".encode(), "значение".encode()),
    (b"\xff", b"\xff" * 10_000),
]


def fails(done: Done[bytes], *words: str) -> None:
    """Check for an error, which may stand behind the bar that shows progress."""
    assert (done.status, done.out) == (2, b"")
    assert done.err.startswith("lsmkv: ")
    for word in words:
        assert word in done.err.splitlines()[-1]


def make(path: Path, content: Records) -> Path:
    with lsmkv.DB(path, create_if_missing=True) as db:
        for key, value in content:
            db.put(key, value)
    return path
