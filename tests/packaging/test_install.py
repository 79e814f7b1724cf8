"""How the package installs: with a compiler, with none, and with one that gives up half way.

Each test builds the source distribution again, in its own environment, which takes a while.  So
``make test-install`` runs these tests, and the suite does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import textwrap
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

USE = """
import pathlib, lsmkv
with lsmkv.DB(":memory:") as db:
    db.put(b"k", b"v")
    db.flush()
    assert db.get(b"k") == b"v"
package = pathlib.Path(lsmkv.__file__).parent
shared = [*package.rglob("*.so"), *package.rglob("*.pyd"), *package.parent.glob("lsmkv__mypyc*")]
print(lsmkv.COMPILED, len(shared), len(list(package.rglob("*.py"))))
"""


@pytest.fixture(scope="session")
def sdist(distributions: Path) -> Path:
    (found,) = distributions.glob("lsmkv-*.tar.gz")
    return found


def compiler(folder: Path, fail_from: int) -> tuple[Path, Path]:
    """A compiler that does not optimise and gives up at that call for lsmkv, and its diary.

    Other packages that are built on the way get what they ask for.
    """
    diary = folder / "calls"
    diary.touch()
    wrapper = folder / "cc"
    wrapper.write_text(
        textwrap.dedent(f"""\
        #!{sys.executable}
        import os, sys
        if "lsmkv" in " ".join(sys.argv[1:]):
            with open({str(diary)!r}, "a") as diary:
                diary.write(" ".join(sys.argv[1:]) + chr(10))
            with open({str(diary)!r}) as diary:
                if len(diary.readlines()) >= {fail_from}:
                    sys.exit("no more")
        arguments = [word for word in sys.argv[1:] if not word.startswith("-O")]
        os.execvp("cc", ["cc", "-O0", *arguments])
        """)
    )
    wrapper.chmod(0o755)
    return wrapper, diary


def install(
    folder: Path, what: Path, **settings: str
) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Install into a new environment; what pip said, and the environment's Python."""
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / "bin" / "python"
    environment = {**os.environ, **settings}
    said = subprocess.run(
        [python, "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check", what],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    return said, python


def use(python: Path) -> tuple[bool, int, int]:
    """``COMPILED``, how many extensions there are, and how many modules."""
    ran = subprocess.run(
        [python, "-c", USE], capture_output=True, text=True, check=False, cwd=python.parent
    )
    assert ran.returncode == 0, ran.stderr
    compiled, extensions, modules = ran.stdout.split()
    return compiled == "True", int(extensions), int(modules)


SOURCES = len(list((ROOT / "lsmkv").rglob("*.py")))


def test_without_a_compiler(tmp_path: Path, sdist: Path) -> None:
    said, python = install(tmp_path, sdist, CC="/bin/false", LSMKV_MYPYC="")
    assert said.returncode == 0, said.stderr
    assert use(python) == (False, 0, SOURCES)
    # The library alone: the command says so, and what a report of a bug needs is there.
    command = python.with_name("lsmkv")
    missing = subprocess.run([command, "demo"], capture_output=True, text=True, check=False)
    assert missing.returncode == 2
    assert "typer and rich" in missing.stderr
    for arguments, words in {
        ("--version",): "pure Python",
        ("doctor", tmp_path): "Stores work here.",
    }.items():
        done = subprocess.run([command, *arguments], capture_output=True, text=True, check=True)
        assert words in done.stdout
        assert done.stderr == ""


def test_a_compiler_that_gives_up_half_way_leaves_nothing_behind(
    tmp_path: Path, sdist: Path
) -> None:
    wrapper, diary = compiler(tmp_path, fail_from=6)
    said, python = install(tmp_path, sdist, CC=str(wrapper), LSMKV_MYPYC="")
    assert said.returncode == 0, said.stderr
    assert len(diary.read_text().splitlines()) >= 6
    assert use(python) == (False, 0, SOURCES)


def test_compiling_can_be_turned_off(tmp_path: Path, sdist: Path) -> None:
    wrapper, diary = compiler(tmp_path, fail_from=1)
    said, python = install(tmp_path, sdist, CC=str(wrapper), LSMKV_MYPYC="0")
    assert said.returncode == 0, said.stderr
    assert diary.read_text() == ""
    assert use(python) == (False, 0, SOURCES)


def test_a_failed_compilation_is_an_error_where_it_is_required(tmp_path: Path, sdist: Path) -> None:
    said, _ = install(tmp_path, sdist, CC="/bin/false", LSMKV_MYPYC="1")
    assert said.returncode != 0
    assert "/bin/false" in said.stdout + said.stderr


def test_the_wheel_is_compiled_and_whole(tmp_path: Path, distributions: Path) -> None:
    major, minor = sys.version_info[:2]
    (wheel,) = distributions.glob(f"lsmkv-*-cp{major}{minor}-*.whl")
    assert not wheel.name.endswith("-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        libraries = [archive.read(name) for name in names if name.endswith(".so")]
    assert "lsmkv/py.typed" in names
    assert not any(b".debug_info" in library for library in libraries)
    assert sum(name.endswith(".py") for name in names) == SOURCES
    said, python = install(tmp_path, wheel)
    assert said.returncode == 0, said.stderr
    compiled, extensions, modules = use(python)
    assert compiled
    assert extensions > 1
    assert modules == SOURCES


CHECKSUMS = """
import sys
sys.modules["google_crc32c"] = sys.modules["crc32c"] = None
from lsmkv.engine.util import checksum
assert checksum.crc32c(bytes(32)) == 0x8A9136AA
assert checksum.typed_crc32c(1, b"a") == checksum.masked_crc32c(b"\\1a")
print(checksum.CRC32C_IMPLEMENTATION)
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_crcmod_and_its_successor_in_one_environment(
    when: str, tmp_path: Path, distributions: Path
) -> None:
    """Both install the module ``crcmod``; a removal of either takes files of the other with it."""
    major, minor = sys.version_info[:2]
    (wheel,) = distributions.glob(f"lsmkv-*-cp{major}{minor}-*.whl")
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"

    def pip(*arguments: str | Path) -> None:
        command = [python, "-m", "pip", "--disable-pip-version-check", "-q", *arguments]
        subprocess.run(command, check=True, cwd=tmp_path)

    def used() -> str:
        command = [python, "-c", CHECKSUMS]
        ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
        return ran.stdout.strip()

    for what in ("crcmod==1.7", wheel) if when == "before" else (wheel, "crcmod==1.7"):
        pip("install", what)
    assert used() == "crcmod"
    pip("uninstall", "--yes", "crcmod")
    assert used() == "lsmkv"
    pip("install", "--force-reinstall", "crcmod-plus")
    assert used() == "crcmod"


def test_the_source_distribution_holds_the_tests(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "CHANGELOG.md", "setup.py", "tests/test_surface.py"} <= names
    assert {"Makefile", "mkdocs.yml", ".ci/run", "docs/tour.md"} <= names
    assert not any(name.endswith((".so", ".c", ".pyc")) for name in names)
