"""Made under another name, read under its own."""

from __future__ import annotations

import pytest

from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.engine.env.renaming_directory import RenamingDirectory


def test_names() -> None:
    directory = MemoryEnv().open_directory("place", create=True)
    with directory.create("old") as file:
        file.append(b"old")
    synced: list[int] = []
    directory.sync = lambda: synced.append(1)  # type: ignore[method-assign]
    aliased = RenamingDirectory(directory, lambda name: f"{name}.new")
    with aliased.create("a") as file:
        file.append(b"1")
    assert sorted(aliased.names()) == ["a.new", "old"]
    assert aliased.path == directory.path
    assert aliased.exists("old")
    assert not aliased.exists("a")
    assert aliased.size("old") == 3
    assert aliased.read_file("old", 10) == b"old"
    with pytest.raises(FileNotFoundError):
        aliased.open("a")
    with aliased.append_to("a") as file:
        file.append(b"2")
    assert directory.read_file("a.new", 10) == b"12"
    aliased.rename("a", "b")
    assert sorted(directory.names()) == ["b.new", "old"]
    aliased.remove("b")
    with pytest.raises(FileNotFoundError):
        aliased.remove("old")
    aliased.sync()
    assert synced == []
    with aliased.subdirectory("sub", create=True) as sub:
        aliased.link("old", sub)
        assert sub.names() == ["old"]
    with aliased.lock("LOCK"):
        assert aliased.lock_holder("LOCK") is not None
    assert aliased.lock_holder("LOCK") is None
    aliased.close()
