"""The page of a shared store in memory with a name, as on macOS."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from lsmkv.shared.system import named_page
from lsmkv.shared.system.named_page import (
    HAS_NAMED_PAGES,
    SharedPage,
    close_descriptor,
    end_page,
    make_page,
)
from lsmkv.shared.system.shared_page import EPOCH, SEQUENCE, SIZE, SUPERSEDED, TOKEN

pytestmark = pytest.mark.skipif(not HAS_NAMED_PAGES, reason="this system has no such memory")

FIRST = 1 << 62


@pytest.fixture
def token() -> Iterator[int]:
    made = FIRST + int.from_bytes(os.urandom(7), "little")
    yield made
    named_page._remove(made)


def exists(token: int) -> bool:
    try:
        os.close(named_page._open(token, os.O_RDONLY))
    except FileNotFoundError:
        return False
    return True


def test_what_the_owner_stores_a_member_reads(token: int) -> None:
    page, reading = make_page(3, token)
    member = SharedPage(reading, False)
    assert (member.words[EPOCH], member.words[TOKEN]) == (3, token)
    page.words[SEQUENCE] = 12345
    assert member.words[SEQUENCE] == 12345
    with pytest.raises(TypeError):
        member.words[SEQUENCE] = 1
    with pytest.raises(OSError, match="Invalid argument"):
        os.ftruncate(reading, 0)
    page.close()
    member.close()


def test_no_program_that_is_started_has_it(token: int) -> None:
    page, reading = make_page(1, token)
    assert not os.get_inheritable(page.fd)
    assert not os.get_inheritable(reading)
    page.close()
    close_descriptor(reading)


def test_a_name_is_short_enough_and_belongs_to_one_page(token: int) -> None:
    assert len(named_page._name((1 << 63) - 1)) <= 31
    page, reading = make_page(1, token)
    with pytest.raises(FileExistsError):
        os.close(named_page._open(token, os.O_RDWR | os.O_CREAT | os.O_EXCL))
    assert exists(token)
    page.close()
    close_descriptor(reading)


def test_the_next_owner_finds_it_by_its_name(token: int) -> None:
    """A killed owner leaves it, and members may have it."""
    page, reading = make_page(1, token)
    page.close()
    member = SharedPage(reading, False)
    assert not member.superseded
    assert end_page([], token)
    assert member.superseded
    assert not exists(token)
    assert end_page([], token), "and so it is over, as its members know"
    member.supersede()
    member.close()


def test_a_member_ends_the_epoch_of_a_dead_owner(token: int) -> None:
    page, reading = make_page(1, token)
    member = SharedPage(reading, False)
    member.supersede()
    assert page.words[SEQUENCE] == SUPERSEDED
    assert not exists(token)
    page.close()
    member.close()


def test_an_owner_that_closes_removes_the_name(token: int) -> None:
    page, reading = make_page(1, token)
    page.end()
    assert page.superseded
    assert not exists(token)
    page.close()
    close_descriptor(reading)


@pytest.mark.parametrize("size", [0, SIZE])
def test_one_that_was_not_finished_is_removed(token: int, size: int) -> None:
    fd = named_page._open(token, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    if size:
        os.ftruncate(fd, size)
    with pytest.raises(ValueError, match="not a page"):
        SharedPage(fd, False)
    os.close(fd)
    assert end_page([], token)
    assert not exists(token)


def test_without_access_an_epoch_goes_on(token: int, monkeypatch: pytest.MonkeyPatch) -> None:
    page, reading = make_page(1, token)

    def refuse(_token: int, _flags: int) -> int:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(named_page, "_open", refuse)
        assert not end_page([], token)
        with pytest.raises(PermissionError):
            page.supersede()
    assert not page.superseded
    page.close()
    close_descriptor(reading)


def test_what_could_not_be_made_leaves_no_name(token: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_fd: int, _size: int) -> None:
        raise OSError("no space")

    before = len(os.listdir("/dev/fd"))
    with monkeypatch.context() as patched:
        patched.setattr("lsmkv.shared.system.named_page.os.ftruncate", refuse)
        with pytest.raises(OSError, match="no space"):
            make_page(1, token)
    assert not exists(token)
    assert len(os.listdir("/dev/fd")) == before


def test_members_count_in_memory_without_a_name() -> None:
    names = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    own, fd = named_page.make_memory(100)
    if names:
        assert {one for one in os.listdir("/dev/shm") if "lsmkv" in one} <= names
    theirs = named_page.map_memory(fd, 100)
    assert named_page.map_memory(fd, 1 << 20) is None
    close_descriptor(fd)
    assert theirs is not None
    own.words[99] = 7
    assert theirs.words[99] == 7
    with pytest.raises(TypeError):
        theirs.words[0] = 1
