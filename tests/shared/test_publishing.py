"""Which tables an owner keeps for its members, and what it notes of their requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lsmkv.engine.env.local import LocalDirectory, LocalEnv
from lsmkv.engine.format.batch import HEADER_SIZE, encode_batch
from lsmkv.shared.publishing import Publishing
from lsmkv.shared.system.local import place_of
from lsmkv.shared.system.shared_file import VERSIONS_OF_EPOCH, SharedFile
from lsmkv.shared.system.shared_page import SEQUENCE, VERSIONS
from lsmkv.shared.system.system import LOCAL


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[LocalDirectory]:
    with LocalEnv().open_directory(str(tmp_path)) as opened:
        assert isinstance(opened, LocalDirectory)
        yield opened


@pytest.fixture
def publishing(directory: LocalDirectory) -> Iterator[Publishing]:
    file = place_of(directory).shared_file("SHARED", True)
    made = Publishing(LOCAL, directory, file, file.begin_epoch())
    made.attach(70, frozenset((1, 2)))
    yield made
    made.close()


@pytest.fixture
def member(directory: LocalDirectory, publishing: Publishing) -> Iterator[SharedFile]:
    file = place_of(directory).shared_file("SHARED", False)
    yield file
    file.close()


def test_the_page_says_what_was_recovered(publishing: Publishing) -> None:
    assert publishing.page.words[SEQUENCE] == 70
    assert publishing.page.words[VERSIONS] == VERSIONS_OF_EPOCH
    publishing.publish(71)
    assert publishing.page.words[SEQUENCE] == 71


def test_a_table_stays_as_long_as_a_version_with_it_is_leased(
    publishing: Publishing, member: SharedFile
) -> None:
    first: int = publishing.page.words[VERSIONS]
    member.lease(first)
    publishing.installed(frozenset((2, 3)))
    assert publishing.is_leased(1)
    publishing.installed(frozenset((3, 4)))
    assert publishing.is_leased(1)
    assert publishing.is_leased(2)
    member.release(first)
    assert not publishing.is_leased(1)
    assert not publishing.is_leased(2)


def test_a_member_may_have_read_the_edit_before_the_page_said_so(
    publishing: Publishing, member: SharedFile
) -> None:
    first: int = publishing.page.words[VERSIONS]
    member.lease(first)
    publishing.installed(frozenset((1, 2, 3)))
    publishing.installed(frozenset((1, 2)))
    assert publishing.is_leased(3)


def test_a_table_that_came_later_is_not_kept_for_an_old_lease(
    publishing: Publishing, member: SharedFile
) -> None:
    member.lease(publishing.page.words[VERSIONS])
    publishing.installed(frozenset((1, 2, 3)))
    publishing.installed(frozenset((1, 2, 3, 4)))
    publishing.installed(frozenset((1, 2, 3)))
    assert not publishing.is_leased(4)


def test_tables_of_the_last_epoch_stay_as_long_as_anything_of_it_is_leased(
    publishing: Publishing, member: SharedFile
) -> None:
    assert not publishing.is_leased(99)
    member.lease(VERSIONS_OF_EPOCH - 1)
    assert publishing.is_leased(99)


def test_the_same_version_twice_is_no_news(publishing: Publishing) -> None:
    before = publishing.page.words[VERSIONS]
    publishing.installed(frozenset((1, 2)))
    assert publishing.page.words[VERSIONS] == before


def test_requests_are_noted_and_withdrawn(publishing: Publishing) -> None:
    operations: list[tuple[bytes, bytes | None]] = [(b"k", b"v")] * 5
    record = encode_batch(71, operations)
    answered: list[int] = []
    encoded = [memoryview(record)[HEADER_SIZE:]]
    publishing.expect(operations, encoded, [(4, 11, 2), (9, 12, 3)], answered.append)
    other = publishing.begin(list(operations), 71)  # a batch that no member has sent
    assert other is None
    assert publishing.page.noted(4)[0] == 0
    assert publishing.begin(operations, 71) == record
    assert publishing.page.noted(4) == (11, 72)
    assert publishing.page.noted(9) == (12, 75)
    publishing.withdraw()
    assert publishing.page.noted(4)[0] == publishing.page.noted(9)[0] == 0
    publishing.expect(operations, encoded, [(4, 13, 5)], answered.append)
    publishing.begin(operations, 71)
    assert answered == []
    publishing.publish(75)
    publishing.publish(75)  # an interrupt came, and the batch is applied once more
    assert answered == [75]
    publishing.withdraw()  # of the next batch, which fails
    assert publishing.page.noted(4) == (13, 75)


def test_requests_are_noted_though_the_owner_writes_first(publishing: Publishing) -> None:
    operations: list[tuple[bytes, bytes | None]] = [(b"k", b"v")]
    record = encode_batch(72, operations)
    answered: list[int] = []
    publishing.expect(operations, [memoryview(record)[HEADER_SIZE:]], [(4, 11, 1)], answered.append)
    publishing.begin([(b"own", b"")], 71)
    publishing.publish(71)
    assert answered == []
    assert publishing.begin(operations, 72) == record
    assert publishing.page.noted(4) == (11, 72)


def test_shared_goes_with_the_last_process(
    directory: LocalDirectory, publishing: Publishing, member: SharedFile
) -> None:
    member.lease(publishing.page.words[VERSIONS])
    publishing.leave()
    publishing.close()
    assert directory.exists("SHARED")
    file = place_of(directory).shared_file("SHARED", True)
    again = Publishing(LOCAL, directory, file, file.begin_epoch())
    member.close()
    again.leave()
    again.close()
    assert again.page.words[SEQUENCE] != 0
    assert again.page.superseded
    assert not directory.exists("SHARED")
