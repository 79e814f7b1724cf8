"""A store whose files have known content."""

from __future__ import annotations

from pathlib import Path

import pytest
from dumped import LOG, MANIFEST, TABLE, make_table

from lsmkv.engine.format.keys import pack


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The directory of a store, written file by file."""
    path = tmp_path / "store"
    path.mkdir()
    (path / "CURRENT").write_bytes(b"MANIFEST-000002\n")
    (path / "MANIFEST-000002").write_bytes(MANIFEST)
    (path / "000009.log").write_bytes(LOG)
    (path / "000007.ldb").write_bytes(TABLE)
    (path / "000010.sst").write_bytes(make_table([(pack(b"k", 5, 1), b"v")], bits=0))
    for name in ("LOCK", "LOG", "LOG.old", "000001.dbtmp", "notes.txt", "my.log"):
        (path / name).write_bytes(b"no file to dump")
    return path
