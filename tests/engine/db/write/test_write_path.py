"""What a handle writes through is called in one way, wherever the writer is."""

from __future__ import annotations

import pytest

from lsmkv.engine.db.write.write_path import WritePath
from lsmkv.engine.db.write.writer import Writer
from lsmkv.shared.writing import MemberWriter


@pytest.mark.parametrize("kind", [Writer, MemberWriter])
@pytest.mark.parametrize("name", ["write", "sync", "flush_memtable", "log_is_mapped"])
def test_each_writer_has_the_calls(kind: type[WritePath], name: str) -> None:
    assert issubclass(kind, WritePath)
    assert getattr(kind, name) is not getattr(WritePath, name)


def test_the_interface_itself_writes_nothing() -> None:
    path = WritePath()
    for call in (path.sync, path.flush_memtable, lambda: path.write([], False)):
        with pytest.raises(NotImplementedError):
            call()
    with pytest.raises(NotImplementedError):
        assert path.log_is_mapped
