"""Which file systems keep the room that was reserved."""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

import pytest

from lsmkv.engine.env import mounts
from lsmkv.engine.env.mounts import file_system_of, keeps_reservations

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts are known on Linux alone")


@pytest.fixture
def directory(tmp_path: Path) -> int:
    return os.open(tmp_path, os.O_RDONLY)


def mount_as(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str) -> None:
    device = os.stat(tmp_path).st_dev
    lines = [
        "22 26 0:21 / /proc rw,nosuid shared:12 - proc proc rw",
        f"36 35 {os.major(device)}:{os.minor(device)} / /a\\040b rw,noatime shared:1 master:2"
        f" - {kind} /dev/sda rw",
        "37 35 251:9 / /other rw - ext4 /dev/sdb rw",
    ]
    table = tmp_path / "mountinfo"
    table.write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(mounts, "MOUNTS", str(table))


@pytest.mark.parametrize(
    ("kind", "keeps"),
    [
        ("ext4", True),
        ("tmpfs", True),
        ("btrfs", False),
        ("zfs", False),
        ("nfs4", False),
        ("fuse.sshfs", False),
        ("overlay", False),
        ("ext4x", False),
    ],
)
def test_by_type(
    directory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, keeps: bool
) -> None:
    mount_as(monkeypatch, tmp_path, kind)
    assert keeps_reservations(directory) is keeps


@pytest.mark.parametrize("reflinks", [True, False])
def test_xfs_says_whether_it_has_reflinks(
    directory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reflinks: bool
) -> None:
    mount_as(monkeypatch, tmp_path, "xfs")
    assert not keeps_reservations(directory)  # this is no XFS, and cannot be asked

    def geometry(fd: int, request: int, buffer: bytes) -> bytes:
        assert (fd, request, len(buffer)) == (directory, 0x80705864, 112)
        return bytes(92) + struct.pack("=I", reflinks << 20 | 0x3FF) + bytes(16)

    monkeypatch.setattr(mounts.fcntl, "ioctl", geometry)
    assert keeps_reservations(directory) is not reflinks


def test_a_device_that_no_mount_has(
    directory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").touch()
    monkeypatch.setattr(mounts, "MOUNTS", str(tmp_path / "empty"))
    assert not keeps_reservations(directory)
    monkeypatch.setattr(mounts, "MOUNTS", str(tmp_path / "missing"))
    assert not keeps_reservations(directory)


def test_a_closed_descriptor() -> None:
    assert not keeps_reservations(-1)


def test_the_file_system_of_a_path_is_that_of_its_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount_as(monkeypatch, tmp_path, "bcachefs")
    assert file_system_of(str(tmp_path)) == "bcachefs"


def test_a_path_on_a_device_without_a_mount_is_on_the_deepest_one_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A subvolume of btrfs has a device number that no mount has."""
    place = tmp_path / "a b"
    (place / "below").mkdir(parents=True)
    (tmp_path / "a bc").mkdir()
    escaped = str(place).replace(" ", "\\040")
    table = tmp_path / "mountinfo"
    table.write_text(
        "21 1 0:1000001 / / rw - ext4 /dev/sda rw\n"
        f"22 21 0:1000002 / {escaped} rw shared:1 - xfs /dev/sdb rw\n"
        f"23 21 0:1000003 / {escaped} rw - btrfs /dev/sdc rw\n"
        "24 21 0:1000004 / /other rw - nfs4 host:/ rw\n"
        "a line of another kind\n"
    )
    monkeypatch.setattr(mounts, "MOUNTS", str(table))
    assert file_system_of(str(place)) == "btrfs"
    assert file_system_of(str(place / "below")) == "btrfs"
    assert file_system_of(str(tmp_path / "a bc")) == "ext4"


def test_a_path_of_an_unknown_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert file_system_of(str(tmp_path / "missing")) == ""
    monkeypatch.setattr(mounts, "MOUNTS", str(tmp_path / "missing"))
    assert file_system_of(str(tmp_path)) == ""
