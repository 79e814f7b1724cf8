"""The file ``SHARED``: epochs, members and leases."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lsmkv.env.local import LocalDirectory, LocalEnv
from lsmkv.env.shared_file import VERSIONS_OF_EPOCH, SharedFile
from lsmkv.env.shared_page import HAS_PAGES

pytestmark = pytest.mark.skipif(not HAS_PAGES, reason="this system shares no store")


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[LocalDirectory]:
    with LocalEnv().open_directory(str(tmp_path)) as opened:
        assert isinstance(opened, LocalDirectory)
        yield opened


@pytest.fixture
def file(directory: LocalDirectory) -> Iterator[SharedFile]:
    opened = directory.shared_file("SHARED", True)
    yield opened
    opened.close()


def test_epochs_follow_each_other(directory: LocalDirectory, file: SharedFile) -> None:
    assert file.read_head() is None
    first = file.begin_epoch()
    assert (first.epoch, first.pid, first.ready) == (1, os.getpid(), False)
    file.announce(first, 70)
    again = directory.shared_file("SHARED", True)
    seen = again.read_head()
    assert seen is not None
    assert (seen.epoch, seen.token, seen.ready) == (1, first.token, True)
    assert seen.address == first.address
    second = again.begin_epoch()
    assert second.epoch == 2
    assert second.token != first.token
    assert second.address != first.address
    again.close()


def test_what_was_recovered_after_an_epoch(file: SharedFile) -> None:
    for recovered in (10, 20, 30):
        head = file.begin_epoch()
        file.announce(head, recovered)
    assert file.recovered_after(1) == 20
    assert file.recovered_after(2) == 30
    assert file.recovered_after(3) is None
    file.begin_epoch()  # whose owner is killed before it answers
    assert file.recovered_after(3) is None
    file.announce(file.begin_epoch(), 40)
    assert file.recovered_after(3) == 40
    for recovered in range(100):
        file.announce(file.begin_epoch(), 100 + recovered)
    assert file.recovered_after(3) is None
    assert file.recovered_after(100) == 195


def test_members_are_noted_by_slot(file: SharedFile) -> None:
    file.begin_epoch()
    assert file.members() == []
    file.note_member(3, 1000, 7)
    file.note_member(0, 2000, 8)
    assert file.members() == [(2000, 8), (1000, 7)]
    file.note_member(3, 0, 0)
    assert file.members() == [(2000, 8)]


def test_leases_are_seen_by_others_and_end_with_their_descriptor(
    directory: LocalDirectory, file: SharedFile
) -> None:
    other = directory.shared_file("SHARED", False)
    version = 5 * VERSIONS_OF_EPOCH + 3
    other.lease(version)
    assert file.is_leased(version, version)
    assert file.is_leased(0, version)
    assert not file.is_leased(0, version - 1)
    assert not file.is_leased(version + 1, version + 100)
    assert not other.is_leased(version, version)
    assert file.is_leased_in_epoch(5)
    assert not file.is_leased_in_epoch(4)
    assert file.is_leased_at_all()
    other.release(version)
    assert not file.is_leased_at_all()
    other.lease(version)
    other.close()
    assert not file.is_leased_at_all()


def test_content_that_is_none_is_begun_again(directory: LocalDirectory, file: SharedFile) -> None:
    with directory.append_to("SHARED") as raw:
        raw.append(b"anything" * 10)
    assert file.read_head() is None
    assert file.begin_epoch().epoch == 1
    assert file.members() == []


def test_inode(directory: LocalDirectory, file: SharedFile) -> None:
    assert directory.inode("SHARED") == file.inode()
    assert directory.inode("none") == 0
