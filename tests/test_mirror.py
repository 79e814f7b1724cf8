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
    "files/batches.py": "files/test_logs.py",
    "files/blocks.py": "files/test_tables.py",
    "files/filters.py": "files/test_tables.py",
    "files/keys.py": "files/test_names.py",
    "files/manifests.py": "files/test_logs.py",
    "files/orders.py": "files/test_names.py",
    "files/parts.py": "files/test_surface.py",
    "files/readable.py": "files/test_names.py",
    "files/stores.py": "files/test_names.py",
    # Parts of one class that users see, tested through it.
    "bulk/place.py": "bulk/test_sorting.py",
    "bulk/stored.py": "bulk/test_build.py",
    "env/scratch.py": "scale/test_same_bytes.py",
    "shards/explanation.py": "shards/test_shards.py",
    "shards/fetched.py": "shards/test_verify.py",
    "shards/open_shards.py": "shards/test_iterator.py",
    "shards/stats.py": "shards/test_shards.py",
    "env/breath.py": "db/read/test_deletions.py",
    "env/local_file.py": "env/test_local.py",
    "env/windows_lock.py": "env/test_windows.py",
    "shards/remote/streams.py": "shards/remote/test_fetch_ahead.py",
    "db/handle.py": "db/test_closing.py",
    "db/tree/checkpoint_source.py": "db/admin/test_checkpoint.py",
    "db/tree/store_stats.py": "test_stats.py",
    "db/admin/maintenance.py": "db/test_db.py",
    "db/handles/readable.py": "db/handles/test_snapshot.py",
    "db/handles/scannable.py": "db/read/test_iterator.py",
    "db/handles/steps.py": "db/handles/test_explanation.py",
    # Parts of one mechanism, tested as a whole.
    "options/filters.py": "test_options.py",
    "options/option.py": "options/test_arguments.py",
    "options/settings.py": "test_options.py",
    "db/compact/background_jobs.py": "db/compact/test_background.py",
    "db/write/log_rotation.py": "db/write/test_commit.py",
    "db/tree/store_lock.py": "db/test_nested_calls.py",
    "db/opening/manifest_tail.py": "db/opening/test_refresh.py",
    "db/opening/store_tail.py": "db/opening/test_refresh.py",
    "db/read/internal_iterator.py": "db/read/test_merging_iterator.py",
    "db/read/level_reader.py": "db/read/test_level_iterator.py",
    "db/read/window.py": "db/read/test_iterator.py",
    "db/compact/picking.py": "db/compact/test_compaction.py",
    "db/tree/write_buffer.py": "db/tree/test_memtable.py",
    "table/metadata.py": "table/test_reader.py",
    "shards/entry.py": "shards/test_version.py",
    "util/cache_entry.py": "util/test_block_cache.py",
    "util/copying.py": "test_pickling.py",
    "util/entry_type.py": "test_typing.py",
    "util/record.py": "test_pickling.py",
    "server/command.py": "server/test_registry.py",
    "server/engine.py": "server/test_crashes.py",
    "server/raw_keyspace.py": "server/commands/test_raw.py",
    "server/scanning.py": "server/commands/test_keys.py",
    "server/session.py": "server/test_connection.py",
    "server/thread.py": "test_testing.py",
    "pytest_plugin.py": "test_testing.py",
    # A type, and functions whose doctests are their tests.
    "util/json_fields.py": "test_exchange.py",
    "util/pair_diff.py": "tools/test_diff.py",
    "util/progress.py": "db/admin/test_compact_range.py",
    "util/text.py": "db/handles/test_explanation.py",
    # The commands, tested as a user starts them.
    "tools/doctor/report.py": "tools/doctor/test_command.py",
    "tools/bulk/executors.py": "tools/bulk/test_build.py",
    "tools/inspect/saving.py": "tools/inspect/test_filters.py",
    "tools/lab/reads.py": "tools/lab/test_replay.py",
    "tools/lab/trial.py": "tools/lab/test_replay.py",
    # A course: what its labs share.
    "course/labs/asked_tables.py": "course/labs/test_reading.py",
    "course/labs/reading_store.py": "course/labs/test_reading.py",
    "course/labs/scratch.py": "course/labs/test_keys.py",
    "course/worker.py": "course/test_grading.py",
    # One engine like the other: each test takes them in turn.
    "tools/bench/engines/base.py": "tools/bench/test_workloads.py",
    "tools/bench/engines/dbm.py": "tools/bench/test_workloads.py",
    "tools/bench/engines/leveldb.py": "tools/bench/test_workloads.py",
    "tools/bench/engines/lmdb.py": "tools/bench/test_workloads.py",
    "tools/bench/engines/registry.py": "tools/bench/test_workloads.py",
    "tools/bench/engines/rocksdb.py": "tools/bench/test_workloads.py",
    "tools/bench/engines/sqlite.py": "tools/bench/test_workloads.py",
    "tools/bench/memory.py": "tools/bench/test_command.py",
    "tools/bench/report.py": "tools/bench/test_command.py",
    "tools/bench/settings.py": "tools/bench/test_command.py",
    # One pipeline, held as a whole: every byte of a file is told, once.
    "tools/dump/annotated_logs.py": "tools/dump/test_command.py",
    "tools/dump/annotated_tables.py": "tools/dump/test_command.py",
    "tools/dump/jsonlines.py": "tools/dump/test_command.py",
    "tools/dump/logs.py": "tools/dump/test_command.py",
    "tools/dump/records.py": "tools/dump/test_command.py",
    "tools/dump/sources.py": "tools/dump/test_command.py",
    "tools/dump/spans.py": "tools/dump/test_command.py",
    "tools/dump/tables.py": "tools/dump/test_command.py",
    "tools/dump/text.py": "tools/dump/test_command.py",
}
"""Modules, and test files, below ``lsmkv/`` and ``tests/``."""


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
