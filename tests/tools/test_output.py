"""The file that ``lsmkv export`` writes: whole, or not at all."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import lsm_bytes as lsm
from exported import CONTENT, fails, make
from started import ENVIRONMENT, ended_by
from stores import put_numbered

import lsmkv
from lsmkv.tools import exchange


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make(tmp_path / "store", CONTENT)


def test_export_replaces_a_file_only_with_force(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"precious")
    fails(lsm("export", store, "-o", file), str(file), "--force")
    assert file.read_bytes() == b"precious"
    assert lsm("export", store, "-o", file, "--force").status == 0
    assert file.read_bytes() == lsm("export", store).out
    assert sorted(os.listdir(tmp_path)) == ["file", "store"]


def test_export_follows_a_symbolic_link(store: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "file").write_bytes(b"")
    assert lsm("export", store, "-o", tmp_path / "link", "--force").status == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == lsm("export", store).out


def test_export_replaces_only_regular_files(store: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name in ("fifo", "store"):
        fails(lsm("export", store, "-o", tmp_path / name, "--force"), "not a regular file")
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)
    fails(lsm("export", store, "-o", tmp_path / "no" / "file"), f"{tmp_path / 'no'}: No such file")


def test_a_failed_export_leaves_no_file(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with lsmkv.DB(store, create_if_missing=True, compression=None) as db:
        put_numbered(db, b"%04d", range(1000), bytes(100))
        db.flush()
    (table,) = store.glob("*.ldb")
    content = bytearray(table.read_bytes())
    content[50_000] ^= 3
    table.write_bytes(content)
    (tmp_path / "file").write_bytes(b"precious")
    fails(lsm("export", store, "-o", tmp_path / "file", "--force"), table.name)
    assert sorted(os.listdir(tmp_path)) == ["file", "store"]
    assert (tmp_path / "file").read_bytes() == b"precious"


def test_an_interrupted_export_leaves_no_file(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> Any:
        yield b"a beginning"
        raise KeyboardInterrupt

    monkeypatch.setattr(exchange, "write_raw", interrupted)
    done = lsm("export", store, "-o", tmp_path / "file", "--format", "raw")
    assert (done.status, done.err) == (130, "lsmkv: interrupted\n")
    assert os.listdir(tmp_path) == ["store"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_an_export_leaves_no_file(
    store: Path, tmp_path: Path, number: signal.Signals
) -> None:
    patch = (
        "from lsmkv.tools import exchange\n"
        "def begin(*_):\n"
        "    yield b'a beginning'\n"
        "    print('ready', flush=True)\n"
        "    signal.pause()\n"
        "exchange.write_raw = begin\n"
    )

    def ready() -> None:
        assert len(os.listdir(tmp_path)) == 2  # the store, and a temporary file

    arguments = ("export", store, "-o", tmp_path / "file", "--format", "raw")
    export = ended_by([number], patch, *arguments, ready=ready)
    assert (export.status, export.err) == (128 + number, b"")
    assert os.listdir(tmp_path) == ["store"]


def test_a_full_disk_under_the_output_file_is_an_error_that_names_it(
    store: Path, tmp_path: Path
) -> None:
    program = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "from lsmkv.tools.cli import main\n"
        "sys.exit(main())"
    )
    for name, content in (("small", b"v"), ("large", bytes(100_000))):
        make(tmp_path / name, [(b"k", content)])
        file = tmp_path / f"{name}.out"
        done = subprocess.run(
            [sys.executable, "-c", program, "export", tmp_path / name, "-o", file],
            capture_output=True,
            env=ENVIRONMENT | {"PYTHONDONTWRITEBYTECODE": "1"},
            check=False,
        )
        if name == "small":
            assert done.returncode == 0
            continue
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr == f"lsmkv: {file}: File too large\n".encode()
    assert sorted(os.listdir(tmp_path)) == ["large", "small", "small.out", "store"]
