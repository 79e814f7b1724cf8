"""The rules of the house (docs/tour.md), held by reading every module's source.

A room imports from its neighbors what ``tests/rooms.txt`` lists; there are no circles of rooms or
modules, and no imports inside functions to dodge one.  Only ``engine/env/`` and ``shared/system/``
touch the files of stores; only ``tools/`` and ``course/`` print, or read ``argv`` or the
environment.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from parsed import is_hook, parsed
from rooms import (
    LARGE,
    LISTED,
    arrows_in,
    circle_of,
    code_lines,
    differences,
    read_listed,
)

import lsmkv
from lsmkv.engine.former_paths import present_path

ROOT = Path(lsmkv.__path__[0])

HOUSE = read_listed(LISTED.read_text(encoding="utf-8"))
"""The rooms, what each may import of the others, and how long each may be."""

LATE_IMPORTS = {
    ("lsmkv.cache.leased", "asyncio"),
    ("lsmkv.engine.util.checksum", "crc32c"),
    ("lsmkv.engine.util.checksum", "crcmod._crcfunext"),
    ("lsmkv.engine.util.checksum", "crcmod.predefined"),
    ("lsmkv.engine.util.checksum", "google_crc32c"),
    ("lsmkv.engine.env.place", "tempfile"),
    ("lsmkv.engine.env.process", "signal"),
    ("lsmkv.engine.env.process", "subprocess"),
    ("lsmkv.engine.env.local", "lsmkv.engine.env.windows"),
    ("lsmkv.shards.remote.objects.open", "lsmkv.shards.remote.objects.fsspec_objects.open_fsspec"),
    (
        "lsmkv.shards.remote.objects.open",
        "lsmkv.shards.remote.objects.obstore_objects.open_obstore",
    ),
    ("lsmkv.tools.serve", "lsmkv.tools.config_file.ConfigFile"),
    ("lsmkv.engine.options.arguments", "difflib"),
    ("lsmkv.engine.options.shown", "inspect"),
    ("lsmkv.engine.options.shown", "inspect.cleandoc"),
    ("lsmkv.engine.options.shown", "lsmkv.engine.util.source.field_docs"),
    ("lsmkv.engine.db.tree.info_log", "logging"),
    ("lsmkv.engine.db.opening.lost", "json"),
    ("lsmkv.engine.db.compact.messages", "json"),
    ("lsmkv.engine.db.tree.store_stats", "lsmkv.engine.stats.LevelStats"),
    ("lsmkv.engine.db.tree.store_stats", "lsmkv.engine.stats.Stats"),
    ("lsmkv.engine.db.opening.open", "json"),
    ("lsmkv.engine.db.opening.open", "logging"),
    ("lsmkv.engine.db.opening.open", "lsmkv.engine.db.observe.observation"),
    ("lsmkv.engine.db.admin.maintenance", "lsmkv.engine.db.observe.openmetrics"),
    ("lsmkv.engine.db.db", "lsmkv.engine.db.handles.explain"),
    ("lsmkv.engine.db.db", "lsmkv.engine.db.read.batches"),
    ("lsmkv.engine.db.db", "lsmkv.engine.db.handles.explain.Explainer"),
    ("lsmkv.engine.db.db", "lsmkv.engine.db.read.batches.Batches"),
    ("lsmkv.engine.db.opening.open", "lsmkv.engine.env.memory.MemoryEnv"),
    ("lsmkv.engine.db.admin.maintenance", "lsmkv.engine.db.observe.openmetrics.Measured"),
    ("lsmkv.engine.db.admin.maintenance", "lsmkv.engine.db.observe.openmetrics.exposition"),
    ("lsmkv.engine.db.opening.open", "lsmkv.engine.db.observe.observation.Observation"),
    ("lsmkv.mapping", "lsmkv.shared.destroying.destroy_db"),
    ("lsmkv.mapping", "lsmkv.shared.shared_db.SharedDB"),
    ("lsmkv.plyvel", "lsmkv.shared.destroying"),
    ("lsmkv.server.scripts.sandbox", "lupa.lua51.LuaRuntime"),
    ("lsmkv.engine.options.settings", "lsmkv.engine.indexeddb.IndexedDBComparator"),
    ("lsmkv.tools.app", "lsmkv.tools.doctor.engine.version_text"),
    ("lsmkv.tools.arguments", "lsmkv.tools.shard_sets.open_shards"),
    ("lsmkv.tools.top.command", "lsmkv.tools.top.app.TopApp"),
    ("lsmkv.engine.util.introspection", "lsmkv.engine.util.source.class_facts"),
    ("lsmkv.tools.inspect.command", "lsmkv.tools.inspect.server.announced"),
    ("lsmkv.tools.inspect.command", "lsmkv.tools.inspect.server.serve"),
    ("lsmkv.tools.playground.command", "lsmkv.tools.playground.server.HOST"),
    ("lsmkv.tools.playground.command", "lsmkv.tools.playground.server.built"),
    ("lsmkv.tools.playground.command", "lsmkv.tools.playground.server.application"),
    ("lsmkv.tools.playground.command", "lsmkv.tools.inspect.server.announced"),
    ("lsmkv.course.see", "lsmkv.course.see_page.HOST"),
    ("lsmkv.course.see", "lsmkv.course.see_page.application"),
    ("lsmkv.course.see", "lsmkv.tools.inspect.server.announced"),
    ("lsmkv.course.see", "lsmkv.tools.inspect.server.run"),
    ("lsmkv.tools.playground.command", "lsmkv.tools.inspect.server.run"),
    ("lsmkv.course.command", "lsmkv.course.plots.PLOTS"),
    ("lsmkv.course.command", "lsmkv.course.plots.Plot"),
    ("lsmkv.tools.serve", "lsmkv.server.Server"),
    ("lsmkv.tools.exchange", "lsmkv.server"),
    ("lsmkv.tools.exchange", "lsmkv.tools.diskcache"),
    ("lsmkv.tools.serve", "uvloop"),
    ("lsmkv.testing.servers", "lsmkv.server.server.Server"),
    ("lsmkv.testing.servers", "lsmkv.server.thread.server_in_thread"),
}
"""An optional dependency, asked for once; and what most who import lsmkv have no use for."""

# What of ``os`` has nothing to do with files.
HARMLESS_OS = {
    "PathLike",
    "cpu_count",
    "fsdecode",
    "fsencode",
    "fspath",
    "getpid",
    "path",
    "register_at_fork",
    "strerror",
    "times",
    "urandom",
}
HARMLESS_IO = {"BytesIO", "RawIOBase"}
HARMLESS_PATH = {"basename", "dirname", "isabs", "join", "normpath", "split"}
FILE_MODULES = {
    "fcntl",
    "fileinput",
    "glob",
    "mmap",
    "msvcrt",
    "pathlib",
    "posix",
    "shelve",
    "shutil",
    "stat",
    "tempfile",
}
WITH_FILES = (
    *("engine.env", "shared.system", "tools", "course", "shards.remote"),
    *("shards.building.sources.inputs", "shards.building.scratch_directory", "testing.interpreted"),
)
"""Who may touch files: the env of stores, and what processes share them by; programs; object stores
that are directories, and the pages that are kept of others; and what bulk builds read."""
WITH_ANNOTATIONS_AS_DATA = {"lsmkv.engine.options.arguments", "lsmkv.engine.options.settings"}
"""Modules whose annotations are evaluated, where all others have them as text."""
FILE_BUILTINS = {"open"}
CONSOLE_BUILTINS = {"print", "input", "breakpoint"}
CONSOLE_MODULES = {"argparse", "click", "getpass", "rich", "typer"}
CONSOLE_SYS = {"argv", "stderr", "stdin", "stdout", "exit"}
ENVIRONMENT_OS = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}
PASS_THE_ENVIRONMENT_ON = {"lsmkv.shared.system.detached", "lsmkv.testing.interpreted"}
"""Modules that start a process with this one's environment, and perhaps a variable more."""
UNTRUSTED = {"eval", "exec", "compile", "__import__"}
UNTRUSTED_MODULES = {"marshal", "pickle"}
TALKS_TO_ITS_OWN_PROCESS = {
    *("lsmkv.shared.starting", "lsmkv.shared.owner_process"),
    *("lsmkv.server.scripts.process", "lsmkv.server.scripts.process_main"),
}
"""The two ends of a pipe between a process and the one that it has started.  The server reads
nothing of what its scripts' process sends as a pickle."""
ASKED_TO_UNPICKLE = {"lsmkv.cache.codecs", "lsmkv.tools.diskcache"}
"""Unpickle if their user asks for it, and do not by themselves."""


def module_name(path: Path) -> str:
    parts = ["lsmkv", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def module_source(module: str) -> str:
    """The text of a module."""
    path = ROOT.joinpath(*module.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return path.read_text(encoding="utf-8")


SOURCES = {
    module_name(path): parsed(path)
    for path in sorted(ROOT.rglob("*.py"))
    if present_path(module_name(path)) is None and not is_hook(path)
}


def every_module(rule: Callable[[str], None]) -> Callable[[Iterable[str]], None]:
    """A test of a rule for all modules: one test, since thousands of them take long to report."""

    def test(modules: Iterable[str] = SOURCES) -> None:
        faults = []
        for module in modules:
            try:
                rule(module)
            except AssertionError as error:
                faults.append(f"{module}: {error}")
        assert not faults, "\n".join(faults)

    test.__name__, test.__doc__ = rule.__name__, rule.__doc__
    return test


def in_room(module: str, room: str) -> bool:
    return module == f"lsmkv.{room}" or module.startswith(f"lsmkv.{room}.")


def is_a_program(module: str) -> bool:
    """Whether a module belongs to a command: the tools, and the course."""
    return in_room(module, "tools") or in_room(module, "course")


def imports(node: ast.AST) -> Iterator[str]:
    """The full names that an import statement binds or runs: modules, or names inside them."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "a relative import"
        for alias in node.names:
            yield f"{node.module}.{alias.name}"


def is_for_types_alone(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )


def imported_by(module: str) -> set[str]:
    """The modules of lsmkv that a module imports, those for annotations alone included."""
    found: set[str] = set()
    for name in imported_names(SOURCES[module]):
        while name not in SOURCES:  # a name inside a module
            assert "." in name, f"{module} imports what there is not"
            name = name.rpartition(".")[0]
        found.add(name)
    return found


@cache
def imported_names(tree: ast.Module) -> frozenset[str]:
    """The full names inside lsmkv that a module's import statements have."""
    names = {name for node in ast.walk(tree) for name in imports(node)}
    return frozenset(name for name in names if name.split(".")[0] == "lsmkv")


def names_used(module: str, owner: str) -> set[str]:
    """Attributes of a standard module that are used, however it was imported."""
    aliases = {owner}
    used: set[str] = set()
    for node in ast.walk(SOURCES[module]):
        if isinstance(node, ast.Import):
            aliases |= {a.asname for a in node.names if a.name == owner and a.asname is not None}
        elif isinstance(node, ast.ImportFrom) and node.module == owner:
            used |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):  # from os import path
            whole = [alias for alias in node.names if f"{node.module}.{alias.name}" == owner]
            aliases |= {alias.asname or alias.name for alias in whole}
    for node in ast.walk(SOURCES[module]):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, (ast.Name, ast.Attribute))
            and ast.unparse(node.value) in aliases
        ):
            used.add(node.attr)
    return used


def names_called(module: str) -> set[str]:
    """Plain names that are called or passed on."""
    return {node.id for node in ast.walk(SOURCES[module]) if isinstance(node, ast.Name)}


def modules_imported(module: str) -> set[str]:
    """Top-level packages, of any origin."""
    return {name.split(".")[0] for node in ast.walk(SOURCES[module]) for name in imports(node)}


# The rules


def test_there_are_modules() -> None:
    assert len(SOURCES) > 30
    assert {
        "lsmkv",
        "lsmkv.engine.db.db",
        "lsmkv.engine.table.reader",
        "lsmkv.engine.env.local",
    } <= set(SOURCES)
    assert sum(len(imported_by(module)) for module in SOURCES) > 100


LINES = {module: code_lines(module_source(module), tree) for module, tree in SOURCES.items()}


def size_of(place: str) -> int:
    """Lines of code of a folder."""
    return sum(LINES[one] for one in LINES if one == place or one.startswith(f"{place}."))


def arrows_of(place: str) -> dict[str, set[str]]:
    return arrows_in(place, {module: imported_by(module) for module in SOURCES})


@pytest.mark.parametrize("place", HOUSE)
def test_rooms_import_what_is_listed(place: str) -> None:
    assert differences(place, HOUSE[place], arrows_of(place)) == []


@pytest.mark.parametrize("place", HOUSE)
def test_there_is_no_circle_of_rooms(place: str) -> None:
    assert circle_of(HOUSE[place].arrows) == []


@pytest.mark.parametrize("place", HOUSE)
def test_a_place_has_no_more_lines_than_it_states(place: str) -> None:
    lines = size_of(place)
    ceiling = HOUSE[place].ceiling
    assert lines <= ceiling, f"{place}: make it shorter, or state more in tests/rooms.txt"
    assert lines > ceiling - 150, f"{place} has {lines} lines: state less in tests/rooms.txt"


def drawn_house() -> dict[str, set[str]]:
    """What CONTRIBUTING.md draws in each folder: the names of folders and modules."""
    text = (ROOT.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    drawing = text.partition("```\nlsmkv/\n")[2].partition("```")[0]
    found: dict[str, set[str]] = {}
    above = ["lsmkv"]
    for line in drawing.splitlines():
        names = re.match(r" *((?:[\w./]+ )+|[\w./]+/?)(?:  |$)", f"{line}  ")
        assert names is not None, line
        depth = (len(line) - len(line.lstrip())) // 2
        for name in names[1].split():
            found.setdefault(".".join(above[:depth]), set()).add(
                name.removesuffix(".py").strip("/")
            )
            above[depth:] = [name.strip("/")]
    return found


def test_contributing_draws_every_room() -> None:
    drawn = drawn_house()
    assert set(drawn) == {"lsmkv", "lsmkv.engine", "lsmkv.engine.db"}
    for place in ("lsmkv", "lsmkv.engine"):
        assert drawn[place] == {room for room in HOUSE[place].arrows if "__" not in room}
    db = {module.split(".")[3] for module in SOURCES if module.startswith("lsmkv.engine.db.")}
    assert drawn["lsmkv.engine.db"] == db - {"db", "handle"}


def test_the_tour_has_a_row_for_every_room() -> None:
    tour = (ROOT.parent / "docs" / "tour.md").read_text(encoding="utf-8")
    named = {name.removesuffix(".py") for name in re.findall(r"`lsmkv/([\w/]+(?:\.py)?)`", tour)}
    rooms = {name for name in HOUSE["lsmkv"].arrows if "__" not in name} - {"engine"}
    rooms |= {f"engine/{name}" for name in HOUSE["lsmkv.engine"].arrows if "__" not in name}
    assert rooms - named == {"engine/former_paths"}  # which the engine needs for no store


def test_contributing_names_the_rooms_that_are_compiled() -> None:
    text = (ROOT.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    sentence = text.partition("\nmypyc compiles ")[2].partition(" where a compiler")[0]
    settings = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))
    compiled = settings["tool"]["lsmkv"]["compiled"]
    expected = {name for name in compiled if not name.startswith("cache/")} | {"cache"}
    assert set(re.findall(r"`([\w/.]+)`", sentence)) == expected


def test_every_large_folder_is_listed() -> None:
    folders = {module.rpartition(".")[0] for module in SOURCES} - {""}
    large = {folder for folder in folders if size_of(folder) > LARGE}
    assert large == set(HOUSE)


def test_there_are_no_cycles() -> None:
    done: set[str] = set()
    path: list[str] = []

    def visit(module: str) -> None:
        assert module not in path, " -> ".join([*path[path.index(module) :], module])
        if module in done:
            return
        path.append(module)
        for imported in sorted(imported_by(module)):
            visit(imported)
        path.pop()
        done.add(module)

    for module in SOURCES:
        visit(module)
    assert done == set(SOURCES)


@every_module
def test_no_imports_inside_functions(module: str) -> None:
    late: set[tuple[str, str]] = set()
    for function in ast.walk(SOURCES[module]):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            for node in ast.walk(function):
                late |= {(module, name) for name in imports(node)}
    assert late <= LATE_IMPORTS


def test_the_exceptions_are_needed() -> None:
    for module, name in LATE_IMPORTS:
        assert any(name in imports(node) for node in ast.walk(SOURCES[module]))


@every_module
def test_imports_stand_at_the_top(module: str) -> None:
    """Or under TYPE_CHECKING, or in a ``try`` for what may be missing."""
    for node in SOURCES[module].body:
        inner: list[ast.stmt] = []
        if isinstance(node, (ast.If, ast.With, ast.For)) and not is_for_types_alone(node):
            inner = [child for child in ast.walk(node) if isinstance(child, ast.stmt)]
        assert not any(list(imports(child)) for child in inner)


@every_module
def test_only_env_touches_the_file_system(module: str) -> None:
    if any(in_room(module, room) for room in WITH_FILES):
        return
    assert not modules_imported(module) & FILE_MODULES
    assert not names_called(module) & FILE_BUILTINS
    assert names_used(module, "os") <= HARMLESS_OS | ENVIRONMENT_OS
    assert names_used(module, "os.path") <= HARMLESS_PATH
    assert names_used(module, "io") <= HARMLESS_IO


@every_module
def test_only_tools_talk_to_the_console_and_the_environment(module: str) -> None:
    if is_a_program(module):
        return
    assert not names_called(module) & CONSOLE_BUILTINS
    assert not modules_imported(module) & CONSOLE_MODULES
    if module not in PASS_THE_ENVIRONMENT_ON:
        assert not names_used(module, "os") & ENVIRONMENT_OS
    allowed = {"exit"} if module == "lsmkv.__main__" else set()
    assert not names_used(module, "sys") & CONSOLE_SYS - allowed


@every_module
def test_nothing_read_from_disk_is_run(module: str) -> None:
    if is_a_program(module):
        return
    assert not names_called(module) & UNTRUSTED
    allowed = {"pickle"} if module in TALKS_TO_ITS_OWN_PROCESS | ASKED_TO_UNPICKLE else set()
    assert not modules_imported(module) & UNTRUSTED_MODULES - allowed


def test_the_engine_needs_no_extras() -> None:
    """What ``import lsmkv`` may need beside the standard library."""
    needed: set[str] = set()
    for module in SOURCES:
        apart = ("lsmkv.__main__", "lsmkv.tools.plot", "lsmkv.testing.pytest_plugin")
        if not (is_a_program(module) or in_room(module, "server") or module in apart):
            needed |= modules_imported(module)
    third_party = {
        "cramjam",
        "crc32c",
        "crcmod",
        "google_crc32c",
        "mypy_extensions",
        "sortedcontainers",
    }
    assert {"cramjam", "sortedcontainers"} <= needed
    extras = {"hypothesis", "matplotlib", "numpy", "plyvel", "pytest", "rich", "typer", "hiredis"}
    assert not needed & extras
    assert needed & third_party == third_party


@every_module
def test_every_module_says_what_it_is(module: str) -> None:
    tree = SOURCES[module]
    if not tree.body:  # an empty __init__.py
        return
    assert ast.get_docstring(tree)
    if module == "lsmkv":
        return
    if module in WITH_ANNOTATIONS_AS_DATA:
        kinds = ("Annotated", "NamedTuple")
        assert any(kind in ast.unparse(node) for node in tree.body for kind in kinds)
        return
    has_code = any(not isinstance(node, ast.Expr) for node in tree.body)
    futures = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert not has_code or (futures and futures[0].module == "__future__")


# What programs take from the engine

PUBLIC_MODULES = {
    *("lsmkv", "lsmkv.aio", "lsmkv.engine.errors", "lsmkv.engine.indexeddb", "lsmkv.files"),
    *("lsmkv.files.programs", "lsmkv.files.repair", "lsmkv.mapping", "lsmkv.plyvel"),
    *("lsmkv.server", "lsmkv.shards", "lsmkv.shards.building", "lsmkv.shared.owner"),
    *("lsmkv.testing", "lsmkv.tools.filter_lab", "lsmkv.tools.plot"),
}
"""What any program may import."""
HELPERS = {
    # Text, JSON and URLs.
    *(f"lsmkv.engine.util.{name}" for name in ("text", "markup", "outline", "progress")),
    *("lsmkv.engine.util.json_fields", "lsmkv.engine.util.urls", "lsmkv.files.exchange"),
    "lsmkv.engine.util.pair_diff",  # how two sequences of pairs differ
    *("lsmkv.engine.util.checksum", "lsmkv.engine.util.coding"),  # CRC-32C, varints
    *("lsmkv.engine.env.installed", "lsmkv.engine.env.mounts"),  # packages, file systems
    "lsmkv.testing.interpreted",  # a process that runs the sources
}
"""Modules that know nothing of the engine."""
TAKEN: dict[str, set[str]] = {
    "tools": {
        "lsmkv.engine.counters.ReadCounters",
        "lsmkv.engine.db.db.DB",
        "lsmkv.engine.db.handles.steps.KeyVersion",
        "lsmkv.engine.db.handles.steps.TableStep",
        "lsmkv.engine.db.opening.directory.NO_DATABASE",
        "lsmkv.engine.db.opening.directory.open_database_directory",
        "lsmkv.engine.db.opening.directory.open_remains",
        "lsmkv.engine.db.read.level_iterator.FIRST_CHUNK",
        "lsmkv.engine.db.read.level_iterator.LevelIterator",
        "lsmkv.engine.db.read.level_reader.LevelReader",
        "lsmkv.engine.db.read.scan.Bounds",
        "lsmkv.engine.db.read.scan.bounds_of",
        "lsmkv.engine.db.read.scan.shared_prefix_hash",
        "lsmkv.engine.db.tree.store.ReadView",
        "lsmkv.engine.db.tree.store.Store",
        "lsmkv.engine.db.tree.store.View",
        "lsmkv.engine.db.tree.version.PLACE_BITS",
        "lsmkv.engine.db.tree.version.max_bytes_for_level",
        "lsmkv.engine.env.descriptors.raise_limit",
        "lsmkv.engine.env.local_file.sync_descriptor",
        "lsmkv.engine.env.lock.LocalFileLock",
        "lsmkv.engine.env.process.processors",
        "lsmkv.engine.filter.bloom.BloomFilterPolicy",
        "lsmkv.engine.filter.bloom.MIN_BITS",
        "lsmkv.engine.filter.bloom.predicted_rate",
        "lsmkv.engine.filter.bloom64.Bloom64Policy",
        "lsmkv.engine.filter.fuse.BinaryFusePolicy",
        "lsmkv.engine.filter.key_hashes.KeyHashes",
        "lsmkv.engine.filter.known.policy_from_text",
        "lsmkv.engine.filter.levels.FEWEST_BITS",
        "lsmkv.engine.filter.levels.LevelBits",
        "lsmkv.engine.filter.levels.MOST_BITS",
        "lsmkv.engine.filter.policy.FilterPolicy",
        "lsmkv.engine.filter.rates.expected_fill",
        "lsmkv.engine.filter.rates.expected_rate",
        "lsmkv.engine.format.keys.KIND_VALUE",
        "lsmkv.engine.format.keys.MAX_SEQUENCE",
        "lsmkv.engine.format.keys.user_key_of",
        "lsmkv.engine.format.version_edit.FileMetaData",
        "lsmkv.engine.former_paths.keep_paths",
        "lsmkv.engine.options.FilterLayout",
        "lsmkv.engine.options.L0_COMPACTION_TRIGGER",
        "lsmkv.engine.options.MAX_MEM_COMPACT_LEVEL",
        "lsmkv.engine.table.block_iterator.WITH_DELETIONS",
        "lsmkv.engine.table.filter_block.FilterBlockBuilder",
        "lsmkv.engine.table.filter_block.FilterBlockReader",
        "lsmkv.engine.table.filter_block.FilterReader",
        "lsmkv.engine.table.filter_block.TableFilterBuilder",
        "lsmkv.engine.table.filter_block.TableFilterReader",
        "lsmkv.engine.table.filter_block.TableFilters",
        "lsmkv.engine.table.reader.Table",
        "lsmkv.engine.util.comparator.equal_means_identical",
        "lsmkv.engine.util.compression.codec_named",
        "lsmkv.engine.util.compression.compress",
        "lsmkv.engine.util.compression.decompress",
        "lsmkv.server.config_text.parse_config",
        "lsmkv.server.config_text.rewrite_config",
        "lsmkv.server.resp.CommandError",
        "lsmkv.server.settings.ALIASES",
        "lsmkv.server.settings.Settings",
        "lsmkv.shards.building.manage.versions_to_compare",
        "lsmkv.shards.building.sources.inputs.find_inputs",
        "lsmkv.shards.building.tables.TABLE_BYTES",
        "lsmkv.shards.remote.objects.open.open_objects",
        "lsmkv.shards.remote.remote_env.Expected",
        "lsmkv.shards.remote.remote_env.RemoteEnv",
        "lsmkv.shards.versions.newest_version",
        "lsmkv.shared.visiting.OwnerStatus",
        "lsmkv.shared.visiting.hand_over",
        "lsmkv.shared.visiting.owner_status",
    },
    "course": {
        "lsmkv.engine.db.compact.picking.pick_compaction",
        "lsmkv.engine.db.tree.merge.live_entries",
        "lsmkv.engine.db.tree.merge.merge",
        "lsmkv.engine.db.tree.version.Version",
        "lsmkv.engine.format.key_order.KeyOrder",
        "lsmkv.engine.format.keys.InternalKeyComparator",
        "lsmkv.engine.format.log.frame",
        "lsmkv.engine.format.version_edit.FileMetaData",
        "lsmkv.engine.table.block.Block",
        "lsmkv.engine.table.block_builder.BlockBuilder",
        "lsmkv.engine.table.builder.TableBuilder",
        "lsmkv.engine.table.filter_block.FilterBlockBuilder",
    },
}
"""The names of the engine and of ``shared`` that the modules of a program import."""


def taken_from_the_engine(program: str) -> set[str]:
    """The names that are neither public nor those of helpers, as ``module.name``."""
    taken = (engine_names_in(module) for module in SOURCES if in_room(module, program))
    return set().union(*taken)


def engine_names_in(module: str) -> set[str]:
    """The names that a program's module imports, and that are neither public nor a program's."""
    found: set[str] = set()
    for node in ast.walk(SOURCES[module]):
        for name in imports(node):
            owner = name.rpartition(".")[0]
            if is_a_program(name) or is_a_program(owner):
                continue
            if isinstance(node, ast.Import):
                owner = name
            elif name in SOURCES:
                continue  # a module, of which other names are counted
            if owner.startswith("lsmkv.") and owner not in PUBLIC_MODULES | HELPERS:
                found.add(name)
    return found


@pytest.mark.parametrize("program", TAKEN)
def test_programs_take_these_names_from_the_engine(program: str) -> None:
    taken = taken_from_the_engine(program)
    assert taken - TAKEN[program] == set(), "new: move it to a public module, or add it to TAKEN"
    assert TAKEN[program] - taken == set(), "not taken any more: remove it from TAKEN"


@pytest.mark.parametrize("module", sorted(HELPERS))
def test_helpers_know_nothing_of_the_engine(module: str) -> None:
    assert imported_by(module) <= HELPERS | {"lsmkv.engine.errors"}


# The rules can be broken


def judge(monkeypatch: pytest.MonkeyPatch, module: str, source: str) -> None:
    monkeypatch.setitem(SOURCES, module, ast.parse(source))


@pytest.mark.parametrize(
    ("module", "source", "rule"),
    [
        ("lsmkv.engine.util.coding", "import lsmkv.engine.util.compression", "cycle"),
        ("lsmkv.engine.db.new", "def f():\n    import json", "late"),
        (
            "lsmkv.engine.db.new",
            "class C:\n    def f(self):\n        from json import loads",
            "late",
        ),
        ("lsmkv.engine.db.new", "if True:\n    import json", "top"),
        ("lsmkv.engine.db.new", "import os\nos.listdir('.')", "files"),
        ("lsmkv.engine.db.new", "import os as system\nsystem.open('.', 0)", "files"),
        ("lsmkv.engine.db.new", "from os import remove", "files"),
        ("lsmkv.engine.db.new", "import os\nos.path.exists('.')", "files"),
        ("lsmkv.engine.db.new", "from os.path import getsize", "files"),
        ("lsmkv.engine.db.new", "from os import path\npath.exists('.')", "files"),
        ("lsmkv.engine.db.new", "import os.path as p\np.realpath('.')", "files"),
        ("lsmkv.engine.db.new", "open('x')", "files"),
        ("lsmkv.engine.db.new", "import io\nio.open('x')", "files"),
        ("lsmkv.engine.db.new", "from io import FileIO", "files"),
        ("lsmkv.engine.table.new", "from pathlib import Path", "files"),
        ("lsmkv.engine.table.new", "import mmap", "files"),
        ("lsmkv.engine.db.new", "print('x')", "console"),
        ("lsmkv.engine.db.new", "import sys\nsys.argv", "console"),
        ("lsmkv.engine.db.new", "from sys import stdout", "console"),
        ("lsmkv.engine.env.new", "import os\nos.environ['X']", "console"),
        ("lsmkv.engine.db.new", "from os import getenv", "console"),
        ("lsmkv.engine.db.new", "import pickle", "disk"),
        ("lsmkv.engine.db.new", "eval('1')", "disk"),
    ],
)
def test_a_broken_rule_is_noticed(
    monkeypatch: pytest.MonkeyPatch, module: str, source: str, rule: str
) -> None:
    judge(monkeypatch, module, source)
    checks = {
        "late": test_no_imports_inside_functions,
        "top": test_imports_stand_at_the_top,
        "files": test_only_env_touches_the_file_system,
        "console": test_only_tools_talk_to_the_console_and_the_environment,
        "disk": test_nothing_read_from_disk_is_run,
    }
    if rule == "cycle":
        with pytest.raises(AssertionError, match="->"):
            test_there_are_no_cycles()
    else:
        with pytest.raises(AssertionError):
            checks[rule]([module])


@pytest.mark.parametrize(
    ("module", "source", "advice"),
    [
        ("lsmkv.engine.util.new", "import lsmkv.engine.db.db", "lsmkv.engine: util -> db is new"),
        ("lsmkv.engine.db.new", "from lsmkv import cache", "lsmkv: engine -> cache is new"),
        ("lsmkv.engine.db.new", "", "lsmkv.engine.db: new is a new room"),
        ("lsmkv.cache.keyed", "", "lsmkv.cache: keyed -> atomic_steps is not there any more"),
    ],
)
def test_another_arrow_than_those_listed_is_noticed(
    monkeypatch: pytest.MonkeyPatch, module: str, source: str, advice: str
) -> None:
    judge(monkeypatch, module, source)
    place = advice.partition(":")[0]
    assert advice in "\n".join(differences(place, HOUSE[place], arrows_of(place)))
    with pytest.raises(AssertionError):
        test_rooms_import_what_is_listed(place)


def test_a_circle_is_noticed() -> None:
    assert circle_of({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert circle_of({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["a", "b", "c"]


def test_a_name_of_the_engine_more_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    judge(monkeypatch, "lsmkv.tools.new", "from lsmkv import DB\nfrom lsmkv.files import Table")
    test_programs_take_these_names_from_the_engine("tools")
    judge(
        monkeypatch, "lsmkv.tools.new", "from lsmkv.engine.table.block_builder import BlockBuilder"
    )
    with pytest.raises(AssertionError, match="new: move it"):
        test_programs_take_these_names_from_the_engine("tools")


def unpacked_iterators(tree: ast.Module) -> list[int]:
    """The lines that unpack what ``map`` or ``filter`` returns: compiled, an exception in it is
    lost (``ValueError``, not enough values, comes instead).
    """
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) in ("map", "filter")
    ]


def test_no_iterator_is_unpacked_whose_exception_compiled_code_loses() -> None:
    """Programs are interpreted in any wheel."""
    found = {
        module: lines
        for module, tree in SOURCES.items()
        if not is_a_program(module) and (lines := unpacked_iterators(tree))
    }
    assert found == {}
    assert unpacked_iterators(ast.parse("a = 1\nx, y = map(int, '1 b'.split())")) == [2]


def nested_functions(tree: ast.Module) -> list[int]:
    """The lines of functions inside methods of classes that are not native."""
    return [
        inner.lineno
        for made in ast.walk(tree)
        if isinstance(made, ast.ClassDef)
        and any("native_class=False" in ast.unparse(one) for one in made.decorator_list)
        for method in made.body
        for inner in ast.walk(method)
        if isinstance(inner, ast.Lambda | ast.FunctionDef) and inner is not method
    ]


def test_no_function_stands_where_the_compiler_fails_at_one() -> None:
    """mypyc 2.4 ends with an internal error."""
    found = {module: lines for module, tree in SOURCES.items() if (lines := nested_functions(tree))}
    assert found == {}
    source = "@mypyc_attr(native_class=False)\nclass A:\n    def f(self):\n        return lambda: 1"
    assert nested_functions(ast.parse(source)) == [4]


def attributes_that_c_reserves(tree: ast.Module) -> list[int]:
    """The lines of attributes whose names, behind an underscore more, are words of gcc's."""
    reserved = {"_thread", "_inline", "_asm", "_const", "_signed", "_typeof", "_volatile"}
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in reserved
    ]


def test_no_attribute_is_a_word_of_the_c_compiler() -> None:
    """mypyc puts an underscore before it: ``self._thread`` is ``__thread`` in C."""
    found = {
        module: lines
        for module, tree in SOURCES.items()
        if module.startswith(("lsmkv.engine.", "lsmkv.shared.", "lsmkv.files.", "lsmkv.server."))
        and (lines := attributes_that_c_reserves(tree))
    }
    assert found == {}
    assert attributes_that_c_reserves(ast.parse("self._thread = 1")) == [1]


def writes_in_slices(tree: ast.Module) -> list[int]:
    """The lines where the bound of a slice is a call that sends or writes."""
    return [
        call.lineno
        for part in ast.walk(tree)
        if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Slice)
        for call in ast.walk(part.slice)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("recv", "recv_into", "read", "readinto", "send", "write")
    ]


def test_no_slice_writes() -> None:
    """mypyc 2.4 evaluates the bounds of a slice of a memoryview twice."""
    found = {
        module: lines
        for module, tree in SOURCES.items()
        if module.startswith(("lsmkv.engine.db.", "lsmkv.files.", "lsmkv.server."))
        and (lines := writes_in_slices(tree))
    }
    assert found == {}
    assert writes_in_slices(ast.parse("view = view[socket.send(view):]")) == [1]


def methods_of_exceptions(tree: ast.Module) -> list[int]:
    """The lines of methods and properties of exceptions, but for those of every object."""
    return [
        method.lineno
        for made in ast.walk(tree)
        if isinstance(made, ast.ClassDef)
        and any(re.search("(Error|Exception)$", ast.unparse(base)) for base in made.bases)
        for method in made.body
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("__")
    ]


def test_no_compiled_exception_has_a_method() -> None:
    """mypyc calls them by a table that no instance of an exception gets: a segmentation fault."""
    found = {
        module: lines
        for module, tree in SOURCES.items()
        if module != "lsmkv.engine.errors" and (lines := methods_of_exceptions(tree))
    }
    assert found == {}
    assert methods_of_exceptions(ast.parse("class A(OSError):\n    def f(self): ...")) == [2]


def test_what_students_are_given_does_not_name_the_engines_rooms() -> None:
    starters = [module for module in SOURCES if in_room(module, "course.starters")]
    assert len(starters) > 12
    assert {module: taken for module in starters if (taken := engine_names_in(module))} == {}


@pytest.mark.parametrize(
    "source",
    ["from lsmkv.engine.db.tree.manifest import Manifest", "import lsmkv.engine.util.search"],
)
def test_one_more_name_of_the_engine_is_noticed(
    monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    judge(monkeypatch, "lsmkv.course.starters.new", source)
    with pytest.raises(AssertionError, match="new: move it"):
        test_programs_take_these_names_from_the_engine("course")
    with pytest.raises(AssertionError):
        test_what_students_are_given_does_not_name_the_engines_rooms()
