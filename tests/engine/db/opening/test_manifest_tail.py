"""A read-only store reads on in the MANIFEST, unless another has taken its place."""

from __future__ import annotations

import pytest

import lsmkv
from lsmkv import DB, MemoryEnv


def test_a_store_destroyed_and_made_again_in_the_same_directory() -> None:
    """Its file numbers start again, so that a name is that of another file."""
    env = MemoryEnv()
    with env.open_directory("/db", create=True) as directory, directory.create("mine"):
        pass
    for value in (b"old", b"new"):
        lsmkv.destroy_db("/db", env=env)
        with DB("/db", create_if_missing=True, env=env) as db:
            db.put(b"k", value)
            db.put(b"k2" + value, value)
            db.flush()
        if value == b"old":
            view = DB("/db", read_only=True, env=env)
            assert view.get(b"k") == b"old"
    for _ in range(2):
        with pytest.raises(lsmkv.DirectoryReplacedError, match="destroyed"):
            view.refresh()
    assert view.get(b"k") == b"old"  # its block is in memory
    view.close()
    with DB("/db", read_only=True, env=env) as again:
        assert again.get(b"k") == b"new"
