"""Full disks of several file systems: every error is typed, and nothing acknowledged is lost.

They are mounted for the occasion, which root may do, in a mount namespace of their own: a child
that ends leaves nothing behind.  A store into a page without room would end it by SIGBUS.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from processes import ENVIRON

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not hasattr(os, "posix_fallocate") or shutil.which("unshare") is None,
        reason="needs mount namespaces",
    ),
]


class Kind(NamedTuple):
    """A file system: how it is made, and whether its logs are mapped."""

    name: str
    mapped: bool
    make: tuple[str, ...] = ()
    """The command that takes an image; a tmpfs has none."""
    size: int = 0
    """MiB of the image, which has holes."""


KINDS = [
    Kind("tmpfs", True),
    Kind("ext4", True, ("mkfs.ext4", "-q"), 8),
    Kind("xfs", True, ("mkfs.xfs", "-q", "-m", "reflink=0"), 320),
    Kind("btrfs", False, ("mkfs.btrfs", "-q"), 128),
    Kind("xfs with reflinks", False, ("mkfs.xfs", "-q", "-m", "reflink=1"), 320),
    Kind("ext4 in small blocks", True, ("mkfs.ext4", "-q", "-b", "1024", "-m", "0"), 8),
]


def run(case: str, kind: Kind, tmp_path: Path) -> dict[str, Any]:
    """Run a case of ``full_disk_child.py`` on a file system that is mounted for it."""
    place = tmp_path / "place"
    place.mkdir()
    device = "-"
    mounting = f"mount -t tmpfs -o size=3m tmpfs {place}"
    if kind.make:
        if shutil.which(kind.make[0]) is None:
            pytest.skip(f"{kind.make[0]} is not installed")
        image = tmp_path / "image"
        image.touch()
        os.truncate(image, kind.size << 20)
        subprocess.run([*kind.make, str(image)], check=True, capture_output=True)
        device = str(image)
        mounting = f"mount -o loop {image} {place}"
    own = ["unshare", "-m", "sh", "-ec"]
    if subprocess.run([*own, mounting], check=False, capture_output=True).returncode:
        pytest.skip(f"{kind.name} cannot be mounted here")
    script = str(Path(__file__).with_name("full_disk_child.py"))
    child = subprocess.run(
        [*own, f'{mounting}; "$@"', "sh", sys.executable, "-P", script, case, str(place), device],
        check=False, capture_output=True, text=True, env=ENVIRON,
    )  # fmt: skip
    assert child.returncode == 0, f"ended with {child.returncode}: {child.stderr}"
    seen: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return seen


def on(*kinds: Kind) -> pytest.MarkDecorator:
    """Run a test on each of them."""
    return pytest.mark.parametrize("kind", kinds, ids=[kind.name for kind in kinds])


@on(*KINDS)
def test_reserved_room_can_be_written_on_a_full_disk(kind: Kind, tmp_path: Path) -> None:
    """The proof that a file system's logs may be mapped (``lsmkv/engine/env/mounts.py``)."""
    seen = run("reserved", kind, tmp_path)
    assert seen == {"mapped": kind.mapped, "refused": "ENOSPC"}


@on(*KINDS[:4])
def test_a_log_on_a_full_disk(kind: Kind, tmp_path: Path) -> None:
    seen = run("log", kind, tmp_path)
    assert seen["mapped"] == kind.mapped
    assert seen["refused"] > 0


def test_a_written_log_on_a_full_disk(tmp_path: Path) -> None:
    seen = run("written log", KINDS[1], tmp_path)
    assert not seen["mapped"]
    assert seen["refused"] > 0


@on(*KINDS[:2], KINDS[3])
@pytest.mark.parametrize("case", ["tables", "tables of workers"])
def test_tables_on_a_full_disk(case: str, kind: Kind, tmp_path: Path) -> None:
    seen = run(case, kind, tmp_path)
    assert seen["mapped"] == kind.mapped
    assert seen["refused"] > 0


@on(*KINDS[:4])
def test_a_process_that_is_killed_on_a_full_disk(kind: Kind, tmp_path: Path) -> None:
    seen = run("killed", kind, tmp_path)
    assert seen["mapped"] == kind.mapped
    assert seen["written"] > 0


@on(*KINDS[:2])
def test_a_limit_of_file_sizes(kind: Kind, tmp_path: Path) -> None:
    seen = run("limit", kind, tmp_path)
    assert seen["mapped"]
    assert seen["refused"] > 0
