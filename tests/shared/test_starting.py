"""What is sent to the process that owns a store for others, and what cannot be."""

from __future__ import annotations

import os
import pickle
import sys
import threading
from pathlib import Path

import pytest
from processes import run_python

import lsmkv
from lsmkv import SharedDB, aio


class Local:
    """An order that cannot be sent to another process."""

    name = "test.Local"

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def compare(self, a: bytes, b: bytes) -> int:
        return (a > b) - (a < b)


def test_an_option_that_no_other_process_can_have(path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be sent to another process"):
        SharedDB(path, owner="process", create_if_missing=True, comparator=Local())
    with pytest.raises(ValueError, match="owner must be"):
        SharedDB(path, owner="thread")  # type: ignore[arg-type]


def test_an_option_of_the_program_that_starts_it(tmp_path: Path, path: Path) -> None:
    done = run_python(
        "-c",
        "import sys, lsmkv\n"
        "class Order:\n"
        "    name = 'order'\n"
        "    def compare(self, a, b): return (a > b) - (a < b)\n"
        "try:\n"
        "    lsmkv.SharedDB(sys.argv[1], owner='process', create_if_missing=True,\n"
        "                   comparator=Order(), bloom_filter_bits=0)\n"
        "except ValueError as error:\n"
        "    print(error)\n",
        str(path),
    )
    assert "cannot be loaded in another process" in done.stdout, done.stderr


def program_of(db: SharedDB) -> str:
    """The interpreter that the owner was started with, as it was named."""
    return Path(f"/proc/{db.owner}/cmdline").read_bytes().split(b"\0")[0].decode()


@pytest.fixture
def python(tmp_path: Path) -> str:
    """Another name of this Python, which no search would find."""
    link = tmp_path / "interpreter"
    link.symlink_to(sys.executable)
    return str(link)


def test_the_python_of_an_owner_can_be_named(path: Path, python: str) -> None:
    with SharedDB(path, owner="process", python=Path(python), create_if_missing=True) as db:
        assert program_of(db) == python
        os.kill(db.owner, 9)
        db.put(b"k", b"v")
        assert program_of(db) == python
        again = pickle.loads(pickle.dumps(db))
    with again:
        os.kill(again.owner, 9)
        assert again.get(b"k") == b"v"
        again.put(b"k", b"w")
        assert program_of(again) == python


async def test_the_python_of_an_owner_can_be_named_by_all_that_share(
    tmp_path: Path, python: str
) -> None:
    options = {"owner": "process", "python": python}
    async with aio.SharedDB(tmp_path / "aio", create_if_missing=True, **options) as db:
        assert program_of(db._shared_db()) == python
    with lsmkv.open(tmp_path / "mapping", "c", shared=True, **options) as mapping:
        assert program_of(mapping.db) == python
    with lsmkv.Cache(tmp_path / "cache", **options) as cache:
        assert program_of(cache._db) == python


def test_a_relative_python_is_this_process_s(
    path: Path, python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with SharedDB(path, owner="process", python="interpreter", create_if_missing=True) as db:
        monkeypatch.chdir("/")
        os.kill(db.owner, 9)
        db.put(b"k", b"v")
        assert program_of(db) == python


def test_a_python_that_cannot_own(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="python= requires owner='process'"):
        SharedDB(path, python=sys.executable)
    options = {"owner": "process", "create_if_missing": True}
    with pytest.raises(lsmkv.IOError, match="/no/such/python"):
        SharedDB(path, python="/no/such/python", **options)
    another = tmp_path / "python3.5"
    another.write_text(
        f'#!/bin/sh\nfor one; do last=$code; code=$one; [ "$last" = -c ] && break; done\n'
        f'shift 4\nexec {sys.executable} -I -S -c "import sys\n'
        f'sys.implementation.cache_tag = \'cpython-35\'\n$code" "$@"\n'
    )
    another.chmod(0o755)
    with pytest.raises(ValueError, match=r"python3\.5 is not the Python 3\..* of this program"):
        SharedDB(path, python=str(another), **options)
    with pytest.raises(lsmkv.Error, match=r"/bin/true was started .* ended immediately"):
        SharedDB(path, python="/bin/true", **options)


def in_another_program(setup: str, path: Path, **settings: object) -> str:
    """What a program says of a store that a process owns, after ``setup``."""
    script = (
        "import os, sys\n"
        "import lsmkv\n"
        f"{setup}\n"
        "with lsmkv.SharedDB(sys.argv[1], owner='process', create_if_missing=True) as db:\n"
        "    db.put(b'k', b'v')\n"
        "    command = open(f'/proc/{db.owner}/cmdline').read().split(chr(0))\n"
        "    print(db.role, command[0] == sys._base_executable)\n"
    )
    done = run_python("-c", script, path, **settings)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


@pytest.mark.parametrize("name", ["'/usr/bin/uwsgi'", "''", "None", "'/no/such/python3'"])
def test_a_program_without_an_executable_of_its_own(path: Path, name: str) -> None:
    assert in_another_program(f"sys.executable = {name}", path) == "member True\n"


def test_a_program_whose_working_directory_was_removed(path: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    assert in_another_program("os.rmdir(os.getcwd())", path, cwd=gone).startswith("member ")


def test_a_program_that_has_no_python(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(NotImplementedError, match="the path of one as python="):
        SharedDB(path, owner="process", create_if_missing=True)
