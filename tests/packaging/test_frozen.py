"""Programs that PyInstaller freezes: they take the compiled engine with them, and may start
themselves as the process that owns a store.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest

PROGRAM = """
import sys
import lsmkv
with lsmkv.DB(":memory:") as db:
    db.put(b"k", b"v")
    db.flush()
    assert db.get(b"k") == b"v"
with lsmkv.SharedDB(sys.argv[1], create_if_missing=True, owner="process") as db:
    db.put(b"k", b"v")
    print(sys.frozen, lsmkv.COMPILED, db.get(b"k"), db.role)
"""


@pytest.fixture(scope="module")
def pyinstaller(tmp_path_factory: pytest.TempPathFactory, distributions: Path) -> Path:
    folder = tmp_path_factory.mktemp("frozen")
    venv.create(folder / "env", with_pip=True)
    major, minor = sys.version_info[:2]
    (wheel,) = distributions.glob(f"lsmkv-*-cp{major}{minor}-*.whl")
    pip = [folder / "env/bin/python", "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--disable-pip-version-check", wheel, "pyinstaller>=6.9"], check=True)
    (folder / "program.py").write_text(PROGRAM)
    return folder / "env/bin/pyinstaller"


@pytest.mark.parametrize("kind", ["--onedir", "--onefile"])
def test_a_frozen_program_uses_a_store_and_owns_it_by_itself(
    pyinstaller: Path, kind: str, tmp_path: Path
) -> None:
    script = pyinstaller.parents[2] / "program.py"
    subprocess.run([pyinstaller, "--log-level", "ERROR", kind, script], check=True, cwd=tmp_path)
    program = tmp_path / "dist/program"
    if kind == "--onedir":
        program /= "program"
    store = tmp_path / "store"
    for _ in range(2):  # the second finds the owner that the first has started
        ran = subprocess.run(
            [program, store], capture_output=True, text=True, check=False, timeout=120
        )
        assert (ran.stdout, ran.stderr) == ("True True b'v' member\n", "")
    assert owners(store) > 0
    ended = time.monotonic() + 60
    while owners(store):
        assert time.monotonic() < ended
        time.sleep(0.1)


def owners(store: Path) -> int:
    """How many processes own the store, by their command lines."""
    found = 0
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            words = line.read_bytes().split(b"\0")
            found += b"--lsmkv-owner" in words and bytes(store) in words
    return found
