"""``tests/`` mirrors ``lsmkv/``: ``tests/db/write/test_wal.py`` is for ``lsmkv/db/write/wal.py``.

Tests of several modules together have names of their own.  The modules that have no mirror are
listed here, each with the file that tests it.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pytest

TESTS = Path(__file__).parent
SOURCES = TESTS.parent / "lsmkv"

BY_ANOTHER_FILE: dict[str, str] = {
    # Types alone, without any code: type checkers go over what uses them.
    "util/entry_type.py": "test_typing.py",
    "util/progress.py": "db/admin/test_compact_range.py",
    # Named tuples alone: what readers return, and what forms print.
    "files/parts.py": "files/test_surface.py",
    "tools/dump/records.py": "tools/dump/test_jsonlines.py",
    # An interface: its implementations are tested.
    "db/read/internal_iterator.py": "db/read/test_merging_iterator.py",
    # An empty function: that it lets signals in shows in the compiled loops that call it.
    "env/breath.py": "db/read/test_deletions.py",
    # Its cases (env/windows_cases.py) run in a process under an imitation of Windows' rules.
    "env/windows_lock.py": "env/test_windows.py",
    # Parts of one object, which its tests take as a whole: what one of them does shows there.
    "db/tree/checkpoint_source.py": "db/admin/test_checkpoint.py",
    "db/read/level_reader.py": "db/read/test_level_iterator.py",
    "db/read/own_writes.py": "db/read/test_transaction_iterator.py",
    "db/read/window.py": "db/read/test_iterator.py",
    # Parts of the simulation, which runs in a process of its own and is tested as a whole.
    "testing/child.py": "testing/test_simulation.py",
    "testing/plans.py": "testing/test_simulation.py",
    "testing/primitives.py": "testing/test_simulation.py",
    "testing/scheduler.py": "testing/test_simulation.py",
    "testing/world.py": "testing/test_simulation.py",
    # A course: what its labs share, and the processes that run and judge them.
    "course/labs/asked_tables.py": "course/labs/test_reading.py",
    "course/labs/reading_store.py": "course/labs/test_reading.py",
    "course/labs/scratch.py": "course/labs/test_keys.py",
    "course/worker.py": "course/test_grading.py",
}
"""Modules, and test files, below ``lsmkv/`` and ``tests/``."""
MOST_LISTED = 20


def mirror_of(module: str) -> str:
    """The test file of a module, below ``tests/``; a course's starter is tested with its lab."""
    path = PurePosixPath(re.sub(r"/starters/lab\d+_", "/labs/", module))
    return str(path.with_name(f"test_{path.name}"))


def modules(sources: Path) -> list[str]:
    """All modules but ``__init__`` and ``__main__``, below ``sources``."""
    return sorted(
        path.relative_to(sources).as_posix()
        for path in sources.rglob("*.py")
        if not path.name.startswith("__")
    )


def without_mirror(sources: Path, tests: Path) -> set[str]:
    return {module for module in modules(sources) if not (tests / mirror_of(module)).is_file()}


@pytest.mark.skipif(not SOURCES.is_dir(), reason="the tests are not beside the source")
def test_every_module_has_a_mirror_or_is_listed() -> None:
    assert len(modules(SOURCES)) > 100
    assert without_mirror(SOURCES, TESTS) == set(BY_ANOTHER_FILE)
    assert len(BY_ANOTHER_FILE) <= MOST_LISTED


def test_the_files_of_the_list_are_there() -> None:
    for module, test in BY_ANOTHER_FILE.items():
        assert (TESTS / test).is_file(), f"{module} is said to be tested by {test}, which is gone"


def test_a_module_without_a_mirror_is_noticed(tmp_path: Path) -> None:
    sources, tests = tmp_path / "package", tmp_path / "tests"
    for room in ("read", "write"):
        (sources / "db" / room).mkdir(parents=True)
        (tests / "db" / room).mkdir(parents=True)
    for name in (
        "__init__.py",
        "errors.py",
        "db/__init__.py",
        "db/write/wal.py",
        "db/read/scan.py",
    ):
        (sources / name).touch()
    for name in ("test_errors.py", "db/test_scan.py", "db/read/test_scan.py"):
        (tests / name).touch()
    assert mirror_of("db/read/scan.py") == "db/read/test_scan.py"
    assert mirror_of("course/starters/lab2_log.py") == "course/labs/test_log.py"
    assert without_mirror(sources, tests) == {"db/write/wal.py"}
