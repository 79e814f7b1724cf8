"""The file ``SHARED``: epochs, members and leases."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import IS_DARWIN

from lsmkv.engine.env.local import LocalDirectory, LocalEnv
from lsmkv.engine.errors import CorruptionError
from lsmkv.shared.system.local import SHARES, place_of
from lsmkv.shared.system.shared_file import VERSIONS_OF_EPOCH, SharedFile

pytestmark = pytest.mark.skipif(not SHARES, reason="this system shares no store")


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[LocalDirectory]:
    with LocalEnv().open_directory(str(tmp_path)) as opened:
        assert isinstance(opened, LocalDirectory)
        yield opened


@pytest.fixture
def file(directory: LocalDirectory) -> Iterator[SharedFile]:
    opened = place_of(directory).shared_file("SHARED", True)
    yield opened
    opened.close()


def test_epochs_follow_each_other(directory: LocalDirectory, file: SharedFile) -> None:
    assert file.read_head() is None
    first = file.begin_epoch()
    assert (first.epoch, first.pid, first.ready) == (1, os.getpid(), False)
    file.announce(first, 70)
    again = place_of(directory).shared_file("SHARED", True)
    seen = again.read_head()
    assert seen is not None
    assert (seen.epoch, seen.token, seen.ready) == (1, first.token, True)
    second = again.begin_epoch()
    assert second.epoch == 2
    assert second.token != first.token
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
    other = place_of(directory).shared_file("SHARED", False)
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


def test_a_forked_child_keeps_no_lease(directory: LocalDirectory, file: SharedFile) -> None:
    """A lock of an open file lasts as long as any process has it open."""
    other = place_of(directory).shared_file("SHARED", False)
    other.lease(7)
    said, say = os.pipe()
    asked, ask = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(say, b"x")
        os.read(asked, 1)
        os._exit(0)
    try:
        os.read(said, 1)
        assert file.is_leased_at_all()
        other.close()
        assert not file.is_leased_at_all()
    finally:
        os.write(ask, b"x")
        os.waitpid(child, 0)
        for fd in (said, say, asked, ask):
            os.close(fd)


@pytest.mark.parametrize("epoch", [1 << 29, (1 << 64) - 1])
def test_an_epoch_that_no_store_reaches_is_none(
    directory: LocalDirectory, file: SharedFile, epoch: int
) -> None:
    """In a directory of a stranger's: no offset is computed from it."""
    with directory.append_to("SHARED") as raw:
        raw.append(struct.pack("<8sQQQQQ", b"lsmkvsh1", epoch, 1, 1, 1, 0) + bytes(1000))
    assert file.read_head() is None
    assert file.begin_epoch().epoch == 1


def test_a_lease_of_a_closed_file_has_ended(directory: LocalDirectory) -> None:
    """The background thread of an owner that was a member may end it while the store is closed."""
    other = place_of(directory).shared_file("SHARED", True)
    other.lease(7)
    other.close()
    other.release(7)


def test_other_content_is_refused_and_stays(directory: LocalDirectory, file: SharedFile) -> None:
    with directory.append_to("SHARED") as raw:
        raw.append(b"anything" * 10)
    assert file.read_head() is None
    with pytest.raises(CorruptionError, match="SHARED: not the file of a shared store"):
        file.begin_epoch()
    assert directory.read_file("SHARED", 1000) == b"anything" * 10


def test_a_file_with_two_names_is_refused_and_stays(
    directory: LocalDirectory, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"data")
    other.chmod(0o644)
    os.link(other, tmp_path / "SHARED")
    for create in (False, True):
        with pytest.raises(OSError, match="2 names") as error:
            place_of(directory).shared_file("SHARED", create)
        assert (error.value.errno, error.value.filename) == (errno.EMLINK, str(tmp_path / "SHARED"))
    assert (other.read_bytes(), other.stat().st_mode & 0o777) == (b"data", 0o644)


def test_a_number_that_is_taken_is_drawn_again(file: SharedFile) -> None:
    """And the file has not said which it is while it is reserved."""
    drawn: list[tuple[int, int]] = []

    def reserve(token: int, epoch: int) -> None:
        assert file.read_head() is None
        drawn.append((token, epoch))
        if len(drawn) < 3:
            raise OSError(errno.EADDRINUSE, "taken")

    head = file.begin_epoch(reserve)
    assert len(set(drawn)) == 3
    assert drawn[-1] == (head.token, head.epoch)

    def fail(_token: int, _epoch: int) -> None:
        raise OSError(errno.EMFILE, "no more descriptors")

    with pytest.raises(OSError, match="no more descriptors"):
        file.begin_epoch(fail)
    assert (file.read_head() or head).token == head.token


def test_inode(directory: LocalDirectory, file: SharedFile) -> None:
    assert directory.inode("SHARED") == file.inode()
    assert directory.inode("none") == 0


def test_what_a_power_cut_has_left_of_it(directory: LocalDirectory, file: SharedFile) -> None:
    file.announce(file.begin_epoch(), 10)
    for slot in range(3):
        file.note_member(slot, 7, slot)
    path = Path(directory.path, "SHARED")
    content = path.read_bytes()
    for size in (1120, 1113, 1100, 1089, 1088, 80, 79, 65, 64, 48, 47, 0):
        path.write_bytes(content[:size])
        assert file.members() == [(7, slot) for slot in range(3)][: max(0, size - 1088) // 8]
        assert file.recovered_after(0) in (10, None)
    file.announce(file.begin_epoch(), 20)
    assert file.recovered_after(0) == 20
    for left in (content[:5], bytes(5), bytes(len(content))):
        path.write_bytes(left)
        assert file.begin_epoch().epoch == 1


def test_proofs_are_of_one_epoch(directory: LocalDirectory, file: SharedFile) -> None:
    assert file.proofs() is None
    seen = set()
    for _ in range(3):
        file.begin_epoch()
        proofs = place_of(directory).shared_file("SHARED", False).proofs()
        assert proofs is not None
        assert [len(proof) for proof in proofs] == [32, 32]
        seen |= set(proofs)
    assert len(seen) == 6
    path = Path(directory.path, "SHARED")
    content = path.read_bytes()
    for left in (content[:17472], content[:-1], content[:17472] + bytes(32)):
        path.write_bytes(left)
        assert file.proofs() is None, "an older release cuts the file; a full disk leaves zeros"


@pytest.mark.skipif(IS_DARWIN, reason="the system does not say what a process has open")
def test_who_has_the_file_open(directory: LocalDirectory, file: SharedFile) -> None:
    assert file.is_open_in(os.getpid())
    assert not file.is_open_in(os.getppid())
    assert not file.is_open_in(0)


def test_numbers_are_leased_apart_from_all_else(
    directory: LocalDirectory, file: SharedFile
) -> None:
    other = place_of(directory).shared_file("SHARED", False)
    for number in (0, 7, (1 << 96) - 1):
        other.lease_number(number)
        assert file.is_number_leased(number)
        assert not other.is_number_leased(number), "its own"
        assert not file.is_number_leased(number + 1)
        assert not file.is_leased_at_all()
        assert not file.is_any_name_leased()
        assert not directory.is_shared("SHARED")
        assert file.claim_start()
        file.end_start()
        other.release_number(number)
        assert not file.is_number_leased(number)
    other.lease_number(5)
    other.close()
    assert not file.is_number_leased(5)
