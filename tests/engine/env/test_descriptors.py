"""lsmkv.engine.env.descriptors: open tables are few enough for the process, and fewer when it is
short.
"""

from __future__ import annotations

import errno
import os
import pathlib
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from processes import run_python

import lsmkv
from lsmkv import DB
from lsmkv.testing.faulty import FaultyEnv

pytest.importorskip("resource")

SMALL: dict[str, Any] = {"write_buffer_size": 4096, "max_file_size": 1024, "compression": None}
PAIRS = 2000
VALUE = bytes(400)


def key(n: int) -> bytes:
    return b"%06d" % n


def make(path: pathlib.Path) -> int:
    """A store of many tables; returns how many."""
    with DB(path, create_if_missing=True, **SMALL) as db:
        for n in range(PAIRS):
            db.put(key(n), VALUE)
        db.compact_range()
        return len(db.tables())


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Three stores, of 200 tables each at least."""
    root = tmp_path_factory.mktemp("stores")
    paths = [root / name for name in "abc"]
    for path in paths:
        assert make(path) >= 200
    return [str(path) for path in paths]


def run(program: str, *arguments: str, soft: int = 64, hard: int | None = None) -> str:
    """The output of a program whose process may have so many descriptors."""
    start = f"""
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {soft if hard is None else hard}))
    """
    done = run_python("-c", textwrap.dedent(start) + textwrap.dedent(program), *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("read_only", [False, True])
def test_several_stores_and_threads_at_a_low_limit(stores: list[str], read_only: bool) -> None:
    program = f"""
        import random, socket, sys, threading
        import lsmkv

        dbs = [lsmkv.DB(path, read_only={read_only}, block_cache=None) for path in sys.argv[1:]]
        failures = []

        def get(seed):
            rng = random.Random(seed)
            for _ in range(300):
                for db in dbs:
                    try:
                        assert db.get(b"%06d" % rng.randrange({PAIRS})) == bytes(400)
                    except Exception as error:
                        failures.append(repr(error))

        threads = [threading.Thread(target=get, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sockets = [socket.socket() for _ in range(20)]  # the program's own
        counts = [sum(1 for _ in db) for db in dbs]
        print(failures[:3], counts)
        for db in dbs:
            db.close()
    """
    assert run(program, *stores, soft=96) == f"[] {[PAIRS] * 3}\n"


def test_tables_give_way_to_what_the_program_opens(stores: list[str]) -> None:
    """The program takes every descriptor that is left; the stores go on, and a writer, too."""
    program = f"""
        import os, sys
        import lsmkv

        dbs = [lsmkv.DB(path, block_cache=None) for path in sys.argv[1:]]
        for db in dbs:
            for n in range(0, {PAIRS}, 7):
                db.get(b"%06d" % n)
        taken = []
        try:
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            pass
        for db in dbs:
            for n in range({PAIRS}):
                assert db.get(b"%06d" % n) == bytes(400)
            db.put(b"new", b"1")
            db.flush()
            db.checkpoint(f"{{db.path}}-copy")
        for path in sys.argv[1:]:
            with lsmkv.DB(f"{{path}}-copy", read_only=True) as copy:
                assert copy.get(b"new") == b"1"
            lsmkv.destroy_db(f"{{path}}-copy")
        for db in dbs:
            db.delete(b"new")
            db.close()
        print(len(taken) > 10)
    """
    assert run(program, *stores) == "True\n"


COMMANDS = [
    ["stats"],
    ["get", key(7).decode()],
    ["scan"],
    ["count"],
    ["explain", key(7).decode()],
    ["export"],
    ["verify"],
    ["approximate-sizes", "000100", "000200"],
]


def test_each_command_at_a_low_limit(stores: list[str]) -> None:
    pytest.importorskip("typer")
    program = f"""
        import contextlib, io, sys
        from lsmkv.tools.cli import main

        for name, *others in {COMMANDS!r}:
            sys.argv[1:] = [name, {stores[0]!r}, *others]
            with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):
                try:
                    status = main()
                except SystemExit as end:
                    status = end.code
            print(name, status or 0)
    """
    expected = [f"{name} 0" for name, *_ in COMMANDS]
    assert run(program, soft=48).splitlines() == expected


def test_the_command_raises_its_soft_limit() -> None:
    pytest.importorskip("typer")
    program = """
        import sys
        from lsmkv.tools.cli import main

        sys.argv[1:] = ["--version"]
        try:
            main()
        except SystemExit:
            pass
        print(resource.getrlimit(resource.RLIMIT_NOFILE))
    """
    assert run(program, soft=64, hard=128).endswith("(128, 128)\n")


# Calls that fail


def opened_store(env: FaultyEnv) -> DB:
    """A store with tables, some of which are open."""
    db = DB("/other", create_if_missing=True, env=env, **SMALL)
    for n in range(300):
        db.put(key(n), VALUE)
    db.compact_range()
    for n in range(0, 300, 10):
        assert db.get(key(n)) == VALUE
    return db


def use(env: FaultyEnv) -> None:
    """Everything that opens files."""
    with DB("/db", create_if_missing=True, env=env, **SMALL) as db:
        for n in range(60):
            db.put(key(n), VALUE)
        db.flush()
        assert db.get(key(5)) == VALUE
        with DB("/db", read_only=True, env=env) as view:
            assert view.get(key(6)) == VALUE
            view.refresh()
        db.checkpoint("/copy")
    lsmkv.destroy_db("/copy", env=env)


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE])
def test_a_call_that_finds_no_descriptor_is_made_again(code: int) -> None:
    """Whatever is opened: a table of any store is closed for it."""
    calls = ["open_directory", "open", "create", "append_to", "names", "lock", "subdirectory"]
    for call in calls:
        for n in range(1, 200, 3):
            env = FaultyEnv()
            with opened_store(env):
                env.fail_at(n, OSError(code, os.strerror(code)), calls=[call])
                use(env)
                struck = env.failures
                env.heal()
            if struck == 0:
                break


def test_without_an_open_table_the_error_is_raised() -> None:
    env = FaultyEnv()
    with DB("/db", create_if_missing=True, env=env) as db:
        db.put(b"k", b"v")
    env.fail_at(1, OSError(errno.EMFILE, "too many"), sticky=True, calls=["open"])
    with pytest.raises(lsmkv.IOError) as raised:
        DB("/db", env=env)
    assert raised.value.errno == errno.EMFILE


def test_max_open_files_bounds_each_store(stores: list[str]) -> None:
    proc = "/proc/self/fd"
    if not os.path.isdir(proc):
        pytest.skip("counts descriptors")

    def tables_open(path: str) -> int:
        links = [os.path.join(proc, fd) for fd in os.listdir(proc)]
        targets = [os.readlink(link) for link in links if os.path.lexists(link)]
        return sum(target.startswith(path + "/") and target.endswith(".ldb") for target in targets)

    opened: list[Callable[[], DB]] = [
        lambda: DB(stores[0], max_open_files=30),
        lambda: DB(stores[0], max_open_files=30, read_only=True),
    ]
    for make_db in opened:
        with make_db() as db:
            for n in range(PAIRS):
                assert db.get(key(n)) == VALUE
            assert 0 < tables_open(stores[0]) <= 20
        assert tables_open(stores[0]) == 0
