"""By what this system shares stores; and the whole of that under macOS' rules."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from others import Other, new
from processes import IS_DARWIN, RULES, run_python

import lsmkv
from lsmkv import SharedDB, destroy_db
from lsmkv.shared.system import local as local_sharing
from lsmkv.shared.system import named_page, named_sockets, shared_page, sockets
from lsmkv.shared.system.local import SHARES, place_of

TESTS = Path(__file__).parents[2]
imitated = pytest.mark.skipif(
    IS_DARWIN or not sys.platform.startswith("linux"), reason="the rules are imitated on Linux"
)
shared = pytest.mark.skipif(not SHARES, reason="this system shares no store")


def test_what_this_system_has() -> None:
    linux = sockets, shared_page
    darwin = named_sockets, named_page
    assert (darwin if IS_DARWIN else linux) == (local_sharing.SOCKETS, local_sharing.PAGES)


# Under the rules


def run(*tests: str) -> int:
    """Run tests under the rules; returns how many have passed."""
    path = os.pathsep.join([str(RULES), str(Path(lsmkv.__file__).parents[1])])
    environ = {**os.environ, "PYTHONPATH": path}
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "long or not long"]
    done = run_python("-m", "pytest", *options, *tests, cwd=TESTS.parent, env=environ)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    return int(passed[1])


@imitated
def test_its_calls_under_macos_rules() -> None:
    names = ("shared_file", "named_page", "named_sockets", "local")
    files = [f"tests/shared/system/test_{name}.py" for name in names]
    assert run("tests/engine/env/test_lock.py", *files) > 60


@imitated
def test_owners_and_members_under_macos_rules() -> None:
    assert run("tests/shared/test_joining.py") > 10


@imitated
@pytest.mark.skipif("LSMKV_MACOS_RULES" not in os.environ, reason="make test-macos-rules runs it")
def test_all_of_sharing_under_macos_rules() -> None:
    """Also what takes long: kills at each step, forks, limits, servers, an owner's process."""
    assert run("tests/shared", "tests/aio/test_shared.py") > 200


# What a kill leaves, and copies


def kill_an_owner(path: Path) -> None:
    owner = Other(path, create_if_missing=True)
    assert owner("db.put(b'k', b'v')") is None
    owner.kill()


def left(path: Path) -> list[bool]:
    """Whether the socket, and the page, of the last epoch have names."""
    directory: Any = lsmkv.LocalEnv().open_directory(str(path))
    with directory:
        file = place_of(directory).shared_file("SHARED", False)
        head = file.read_head()
        file.close()
    names = (named_sockets.address_of(head.token, head.epoch).decode(), f"/dev/shm{_name(head)}")
    return [os.path.exists(name) for name in names]


def _name(head: Any) -> str:
    return named_page._name(head.token)


@shared
@pytest.mark.parametrize("end", [destroy_db, lambda path: new(path).close()])
def test_what_a_killed_owner_leaves_is_removed(tmp_path: Path, end: Callable[[Path], None]) -> None:
    kill_an_owner(tmp_path / "db")
    assert left(tmp_path / "db") == [IS_DARWIN, IS_DARWIN]
    content = (tmp_path / "db" / "SHARED").read_bytes()
    epoch, token = (int.from_bytes(content[at : at + 8], "little") for at in (8, 16))
    end(tmp_path / "db")
    assert not os.path.exists(named_sockets.address_of(token, epoch))
    assert not os.path.exists(f"/dev/shm{named_page._name(token)}")


@shared
def test_a_copy_has_nothing_to_do_with_the_processes_of_the_store(tmp_path: Path) -> None:
    """Their page stays theirs, though the copied file tells of it."""
    other = Other(tmp_path / "db", create_if_missing=True)
    with SharedDB(tmp_path / "db") as member:
        other("db.put(b'k', b'v')")
        shutil.copytree(tmp_path / "db", tmp_path / "copy")
        assert (tmp_path / "copy" / "SHARED").exists()
        with new(tmp_path / "copy") as copy:
            assert copy.role == "owner"
            assert copy.get(b"k") == b"v"
            part: Any = member._part
            assert not part.page.superseded
            member.put(b"k", b"w")
            assert other("db.get(b'k')") == b"w"
            assert copy.get(b"k") == b"v"
    other.kill()
