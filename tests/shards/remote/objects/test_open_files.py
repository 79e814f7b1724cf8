"""Which files stay open, without a file system's say."""

from __future__ import annotations

from lsmkv.engine.env.base import RandomAccessFile
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.shards.remote.objects.open_files import OpenFiles


def a_file(name: str) -> RandomAccessFile:
    with MemoryEnv().open_directory("place", create=True) as directory:
        directory.create(name).close()
        return directory.open(name)


def hold(files: OpenFiles, name: str) -> RandomAccessFile:
    _, changes = files.find(name)
    file = a_file(name)
    files.add(name, file, changes)
    return file


def test_the_file_read_from_longest_ago_leaves_first() -> None:
    files = OpenFiles(most=2)
    first, second = hold(files, "1"), hold(files, "2")
    assert files.find("1")[0] is first
    third = hold(files, "3")
    assert [files.find(name)[0] for name in "123"] == [first, None, third]
    assert second.read(0, 1) == b""  # one that left is still open for its readers


def test_a_forgotten_name_is_looked_for_again() -> None:
    files = OpenFiles()
    hold(files, "1")
    files.forget("1")
    assert files.find("1")[0] is None


def test_a_file_opened_before_its_name_was_forgotten_is_not_held() -> None:
    files = OpenFiles()
    _, changes = files.find("1")
    files.forget("1")
    files.add("1", a_file("1"), changes)
    assert files.find("1")[0] is None


def test_nothing_is_held_after_close() -> None:
    files = OpenFiles()
    hold(files, "1")
    files.close()
    hold(files, "2")
    assert [files.find(name)[0] for name in "12"] == [None, None]
