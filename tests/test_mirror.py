"""``tests/`` mirrors ``lsmkv/``: ``tests/engine/db/write/test_wal.py`` is for
``lsmkv/engine/db/write/wal.py``.

Tests of several modules together have names of their own.  The modules that have no mirror are
listed here, each with the file that tests it.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pytest
from parsed import is_hook

from lsmkv.engine.former_paths import present_path

TESTS = Path(__file__).parent
SOURCES = TESTS.parent / "lsmkv"

BY_ANOTHER_FILE: dict[str, str] = {
    # Types alone, without any code: type checkers go over what uses them.
    "engine/util/entry_type.py": "test_typing.py",
    "engine/util/progress.py": "engine/db/admin/test_compact_range.py",
    # Named tuples alone: what readers return, and what forms print.
    "files/parts.py": "files/test_surface.py",
    "tools/dump/records.py": "tools/dump/test_jsonlines.py",
    # An interface: its implementations are tested.
    "engine/db/read/internal_iterator.py": "engine/db/read/test_merging_iterator.py",
    # An empty function: that it lets signals in shows in the compiled loops that call it.
    "engine/env/interrupts.py": "engine/db/read/test_deletions.py",
    # Its cases (env/windows_cases.py) run in a process under an imitation of Windows' rules.
    "engine/env/windows_lock.py": "engine/env/test_windows.py",
    # Parts of one object, which its tests take as a whole: what one of them does shows there.
    "engine/db/tree/checkpoint_source.py": "engine/db/admin/test_checkpoint.py",
    "engine/db/read/level_reader.py": "engine/db/read/test_level_iterator.py",
    "engine/db/read/own_writes.py": "engine/db/read/test_transaction_iterator.py",
    "engine/db/read/window.py": "engine/db/read/test_iterator.py",
    # Parts of the simulation, which runs in a process of its own and is tested as a whole.
    "testing/child.py": "testing/test_simulation.py",
    "testing/plans.py": "testing/test_simulation.py",
    "testing/primitives.py": "testing/test_simulation.py",
    "testing/scheduler.py": "testing/test_simulation.py",
    "testing/world.py": "testing/test_simulation.py",
    # A course: what its labs share, and the processes that run and judge them.
    "course/labs/asked_tables.py": "course/labs/test_reading.py",
    "course/labs/reading_store.py": "course/labs/test_reading.py",
    "course/labs/temporary_stores.py": "course/labs/test_keys.py",
    "course/worker.py": "course/test_grading.py",
}
"""Modules, and test files, below ``lsmkv/`` and ``tests/``."""
MOST_LISTED = 20


def mirror_of(module: str) -> str:
    """The test file of a module, below ``tests/``; a course's starter is tested with its lab."""
    path = PurePosixPath(re.sub(r"/starters/lab\d+_", "/labs/", module))
    return str(path.with_name(f"test_{path.name}"))


def is_door(path: Path) -> bool:
    """Whether a module is the door to another one: ``lsmkv/errors.py``."""
    return present_path(".".join(("lsmkv", *path.with_suffix("").parts))) is not None


def file_of_tests(module: str) -> str:
    """The file with the tests of a module, below ``tests/``, also if that is no mirror."""
    return BY_ANOTHER_FILE.get(module) or mirror_of(module)


def modules(sources: Path) -> list[str]:
    """All modules but ``__init__`` and ``__main__``, below ``sources``."""
    return sorted(
        path.relative_to(sources).as_posix()
        for path in sources.rglob("*.py")
        if not (path.name.startswith("__") or is_door(path.relative_to(sources)) or is_hook(path))
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
        (sources / "cache" / room).mkdir(parents=True)
        (tests / "cache" / room).mkdir(parents=True)
    for name in (
        "__init__.py",
        "plyvel.py",
        "cache/__init__.py",
        "cache/write/wal.py",
        "cache/read/scan.py",
    ):
        (sources / name).touch()
    for name in ("test_plyvel.py", "cache/test_scan.py", "cache/read/test_scan.py"):
        (tests / name).touch()
    assert mirror_of("cache/read/scan.py") == "cache/read/test_scan.py"
    assert mirror_of("course/starters/lab2_log.py") == "course/labs/test_log.py"
    assert without_mirror(sources, tests) == {"cache/write/wal.py"}
