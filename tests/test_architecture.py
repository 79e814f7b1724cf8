"""The rules of the house (docs/tour.md), held by reading every module's source.

A module imports only from its own room or one further down; there are no cycles, and no imports
inside functions to dodge one.  Only ``env/`` touches the files of stores; only ``tools/`` and
``course/`` print, or read ``argv`` or the environment.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import lsmkv

ROOT = Path(lsmkv.__path__[0])

# From top to bottom.  A name stands for the module and everything in it.
ROOMS: list[tuple[str, ...]] = [
    ("lsmkv.__main__",),
    ("lsmkv.course",),
    ("lsmkv.tools",),
    ("lsmkv",),  # the public door, which tools may use as anyone does
    (
        *("lsmkv.mapping", "lsmkv.metrics", "lsmkv.owner", "lsmkv.plyvel", "lsmkv.aio"),
        *("lsmkv.testing", "lsmkv.plot", "lsmkv.pytest_plugin", "lsmkv.django"),
    ),
    ("lsmkv.cache",),
    ("lsmkv.server",),
    ("lsmkv.shared",),
    ("lsmkv.bulk",),
    ("lsmkv.shards", "lsmkv.exchange"),
    ("lsmkv.repair", "lsmkv.filter_lab"),
    ("lsmkv.files",),
    ("lsmkv.db.db",),
    ("lsmkv.db.admin",),
    ("lsmkv.db.handle",),
    ("lsmkv.db.opening", "lsmkv.db.handles"),
    ("lsmkv.db.observe",),
    ("lsmkv.db.write", "lsmkv.db.read"),
    ("lsmkv.db.compact",),
    ("lsmkv.db.tree",),
    ("lsmkv.db",),
    ("lsmkv.table",),
    ("lsmkv.format",),
    ("lsmkv.options",),
    ("lsmkv.env",),
    ("lsmkv.filter",),
    ("lsmkv.programs",),
    ("lsmkv.indexeddb",),  # an order of keys, which options look up by its name
    ("lsmkv.util",),
    (
        *("lsmkv.counters", "lsmkv.stats", "lsmkv.errors"),
        *("lsmkv.util.text", "lsmkv.util.markup", "lsmkv.util.record"),
    ),
]

LATE_IMPORTS = {
    ("lsmkv.cache.leased", "asyncio"),
    ("lsmkv.util.checksum", "crc32c"),
    ("lsmkv.util.checksum", "crcmod._crcfunext"),
    ("lsmkv.util.checksum", "crcmod.predefined"),
    ("lsmkv.util.checksum", "google_crc32c"),
    ("lsmkv.env.process", "signal"),
    ("lsmkv.env.process", "subprocess"),
    ("lsmkv.env.local", "lsmkv.env.windows"),
    ("lsmkv.shards.remote.objects.open", "lsmkv.shards.remote.objects.fsspec_objects.open_fsspec"),
    (
        "lsmkv.shards.remote.objects.open",
        "lsmkv.shards.remote.objects.obstore_objects.open_obstore",
    ),
    ("lsmkv.options.arguments", "difflib"),
    ("lsmkv.options.shown", "inspect"),
    ("lsmkv.options.shown", "inspect.cleandoc"),
    ("lsmkv.options.shown", "lsmkv.util.source.field_docs"),
    ("lsmkv.db.tree.info_log", "logging"),
    ("lsmkv.db.opening.lost", "json"),
    ("lsmkv.db.compact.messages", "json"),
    ("lsmkv.db.tree.store_stats", "lsmkv.stats.LevelStats"),
    ("lsmkv.db.tree.store_stats", "lsmkv.stats.Stats"),
    ("lsmkv.db.opening.open", "json"),
    ("lsmkv.db.opening.open", "logging"),
    ("lsmkv.db.opening.open", "lsmkv.db.observe.observation"),
    ("lsmkv.db.admin.maintenance", "lsmkv.db.observe.openmetrics"),
    ("lsmkv.db.db", "lsmkv.db.handles.explain"),
    ("lsmkv.db.db", "lsmkv.db.read.batches"),
    ("lsmkv.db.db", "lsmkv.db.handles.explain.Explainer"),
    ("lsmkv.db.db", "lsmkv.db.read.batches.Batches"),
    ("lsmkv.db.opening.open", "lsmkv.env.memory.MemoryEnv"),
    ("lsmkv.db.admin.maintenance", "lsmkv.db.observe.openmetrics.Measured"),
    ("lsmkv.db.admin.maintenance", "lsmkv.db.observe.openmetrics.exposition"),
    ("lsmkv.db.opening.open", "lsmkv.db.observe.observation.Observation"),
    ("lsmkv.mapping", "lsmkv.shared.shared_db.SharedDB"),
    ("lsmkv.server.scripts.sandbox", "lupa.lua51.LuaRuntime"),
    ("lsmkv.options.settings", "lsmkv.indexeddb.IndexedDBComparator"),
    ("lsmkv.tools.app", "lsmkv.tools.doctor.engine.version_text"),
    ("lsmkv.tools.arguments", "lsmkv.tools.shard_sets.open_shards"),
    ("lsmkv.tools.top.command", "lsmkv.tools.top.app.TopApp"),
    ("lsmkv.util.introspection", "lsmkv.util.source.class_facts"),
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
WITH_FILES = ("env", "shared.system", "tools", "course", "shards.remote", "bulk.sources.inputs")
"""Who may touch files: the env of stores, and what processes share them by; programs; object stores
that are directories, and the pages that are kept of others; and what bulk builds read."""
WITH_ANNOTATIONS_AS_DATA = {"lsmkv.options.arguments", "lsmkv.options.settings"}
"""Modules whose annotations are evaluated, where all others have them as text."""
FILE_BUILTINS = {"open"}
CONSOLE_BUILTINS = {"print", "input", "breakpoint"}
CONSOLE_MODULES = {"argparse", "click", "getpass", "rich", "typer"}
CONSOLE_SYS = {"argv", "stderr", "stdin", "stdout", "exit"}
ENVIRONMENT_OS = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}
PASS_THE_ENVIRONMENT_ON = {"lsmkv.shared.system.detached", "lsmkv.env.interpreted"}
"""Modules that start a process with this one's environment, and perhaps a variable more."""
UNTRUSTED = {"eval", "exec", "compile", "__import__"}
UNTRUSTED_MODULES = {"marshal", "pickle"}
TALKS_TO_ITS_OWN_PROCESS = {"lsmkv.shared.starting", "lsmkv.shared.owner_process"}
"""The two ends of a pipe between a process and the one that it has started."""
ASKED_TO_UNPICKLE = {"lsmkv.cache.codecs", "lsmkv.tools.diskcache"}
"""Unpickle if their user asks for it, and do not by themselves."""


def module_name(path: Path) -> str:
    parts = ["lsmkv", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {
    module_name(path): ast.parse(path.read_text(encoding="utf-8"), str(path))
    for path in sorted(ROOT.rglob("*.py"))
}
every_module = pytest.mark.parametrize("module", SOURCES)


def room_of(module: str) -> int:
    """The number of a module's room, counted from the top; the longest name that fits counts."""
    fitting = [
        (len(name), at)
        for at, room in enumerate(ROOMS)
        for name in room
        if module == name or (name != "lsmkv" and module.startswith(f"{name}."))
    ]
    assert fitting, f"{module} belongs to no room: give it one in ROOMS and in docs/tour.md"
    return max(fitting)[1]


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
    for node in ast.walk(SOURCES[module]):
        for name in imports(node):
            if name.split(".")[0] != "lsmkv":
                continue
            while name not in SOURCES:  # a name inside a module
                assert "." in name, f"{module} imports what there is not"
                name = name.rpartition(".")[0]
            found.add(name)
    return found


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
    assert {"lsmkv", "lsmkv.db.db", "lsmkv.table.reader", "lsmkv.env.local"} <= set(SOURCES)
    assert sum(len(imported_by(module)) for module in SOURCES) > 100


@every_module
def test_imports_go_down(module: str) -> None:
    own = room_of(module)
    for imported in imported_by(module):
        assert room_of(imported) >= own, f"{module} imports {imported}, which lies further up"


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


def inner_room(module: str) -> str:
    """The room inside a room that a module is in: a folder, or a module beside the folders."""
    return ".".join(module.split(".")[:3])


def arrows_inside(outer: str) -> set[tuple[str, str]]:
    """The rooms inside a room, each with one that it imports."""
    arrows = {
        (inner_room(module), inner_room(imported))
        for module in SOURCES
        for imported in imported_by(module)
        if in_room(module, outer) and in_room(imported, outer)
    }
    return {(above, below) for above, below in arrows if above != below}


def floors(arrows: set[tuple[str, str]]) -> int:
    """How many floors the rooms lie on: a room is above all that it imports."""
    rooms = {room for arrow in arrows for room in arrow}
    number = 0
    while rooms:  # the ground floor is the rooms that need no other
        ground = rooms - {above for above, below in arrows if below in rooms}
        assert ground, f"a circle of rooms: {sorted(rooms)}"
        rooms -= ground
        number += 1
    return number


def test_the_rooms_of_the_tree_are_few_and_lie_on_floors() -> None:
    arrows = arrows_inside("db")
    assert len({room for arrow in arrows for room in arrow}) <= 10
    assert len(arrows) <= 30
    assert floors(arrows) <= 8


def test_the_rooms_of_the_server_form_no_circle() -> None:
    arrows = arrows_inside("server")
    assert ("lsmkv.server.scripts", "lsmkv.server.session") in arrows
    assert floors(arrows) > 5
    with pytest.raises(AssertionError, match="a circle of rooms"):
        floors({*arrows, ("lsmkv.server.session", "lsmkv.server.scripts")})


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
        apart = ("lsmkv.__main__", "lsmkv.plot", "lsmkv.pytest_plugin")
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
    *("lsmkv", "lsmkv.aio", "lsmkv.bulk", "lsmkv.errors", "lsmkv.files", "lsmkv.filter_lab"),
    *("lsmkv.indexeddb", "lsmkv.mapping", "lsmkv.owner", "lsmkv.plot", "lsmkv.plyvel"),
    *("lsmkv.programs", "lsmkv.repair", "lsmkv.server", "lsmkv.shards", "lsmkv.testing"),
}
"""What any program may import."""
HELPERS = {
    # Text, JSON and URLs.
    *("lsmkv.util.text", "lsmkv.util.markup", "lsmkv.util.outline", "lsmkv.util.progress"),
    *("lsmkv.util.json_fields", "lsmkv.util.urls", "lsmkv.exchange"),
    "lsmkv.util.pair_diff",  # how two sequences of pairs differ
    *("lsmkv.util.checksum", "lsmkv.util.coding"),  # CRC-32C, varints
    *("lsmkv.env.installed", "lsmkv.env.mounts"),  # packages and file systems of this machine
    "lsmkv.env.interpreted",  # a process that runs the sources
}
"""Modules that know nothing of the engine."""
TAKEN = {"tools": 25, "course": 12}
"""How many names of the engine a program's modules may import, all of them together.  A ceiling
goes down as programs are moved to public modules, and never up."""


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
def test_programs_take_few_names_from_the_engine(program: str) -> None:
    taken = taken_from_the_engine(program)
    assert len(taken) <= TAKEN[program], f"more than there were: {sorted(taken)}"
    assert len(taken) == TAKEN[program], "fewer than there were: lower the ceiling"


@pytest.mark.parametrize("module", sorted(HELPERS))
def test_helpers_know_nothing_of_the_engine(module: str) -> None:
    assert imported_by(module) <= HELPERS | {"lsmkv.errors"}


# The rules can be broken


def judge(monkeypatch: pytest.MonkeyPatch, module: str, source: str) -> None:
    monkeypatch.setitem(SOURCES, module, ast.parse(source))


@pytest.mark.parametrize(
    ("module", "source", "rule"),
    [
        ("lsmkv.util.new", "from lsmkv.errors import Error\nimport lsmkv.db.db", "down"),
        ("lsmkv.table.new", "from lsmkv.db import keys", "down"),
        ("lsmkv.db.new", "from lsmkv import DB", "down"),
        ("lsmkv.env.new", "from lsmkv.options import Options", "down"),
        ("lsmkv.errors", "from lsmkv.util.coding import MAX_UINT32", "down"),
        ("lsmkv", "from lsmkv.tools import cli", "down"),
        ("lsmkv.new", "", "down"),
        ("lsmkv.util.coding", "import lsmkv.util.compression", "cycle"),
        ("lsmkv.db.new", "def f():\n    import json", "late"),
        ("lsmkv.db.new", "class C:\n    def f(self):\n        from json import loads", "late"),
        ("lsmkv.db.new", "if True:\n    import json", "top"),
        ("lsmkv.db.new", "import os\nos.listdir('.')", "files"),
        ("lsmkv.db.new", "import os as system\nsystem.open('.', 0)", "files"),
        ("lsmkv.db.new", "from os import remove", "files"),
        ("lsmkv.db.new", "import os\nos.path.exists('.')", "files"),
        ("lsmkv.db.new", "from os.path import getsize", "files"),
        ("lsmkv.db.new", "from os import path\npath.exists('.')", "files"),
        ("lsmkv.db.new", "import os.path as p\np.realpath('.')", "files"),
        ("lsmkv.db.new", "open('x')", "files"),
        ("lsmkv.db.new", "import io\nio.open('x')", "files"),
        ("lsmkv.db.new", "from io import FileIO", "files"),
        ("lsmkv.table.new", "from pathlib import Path", "files"),
        ("lsmkv.table.new", "import mmap", "files"),
        ("lsmkv.db.new", "print('x')", "console"),
        ("lsmkv.db.new", "import sys\nsys.argv", "console"),
        ("lsmkv.db.new", "from sys import stdout", "console"),
        ("lsmkv.env.new", "import os\nos.environ['X']", "console"),
        ("lsmkv.db.new", "from os import getenv", "console"),
        ("lsmkv.db.new", "import pickle", "disk"),
        ("lsmkv.db.new", "eval('1')", "disk"),
    ],
)
def test_a_broken_rule_is_noticed(
    monkeypatch: pytest.MonkeyPatch, module: str, source: str, rule: str
) -> None:
    judge(monkeypatch, module, source)
    checks = {
        "down": test_imports_go_down,
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
            checks[rule](module)


def test_a_name_of_the_engine_more_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    judge(monkeypatch, "lsmkv.tools.new", "from lsmkv import DB\nfrom lsmkv.files import Table")
    test_programs_take_few_names_from_the_engine("tools")
    judge(monkeypatch, "lsmkv.tools.new", "from lsmkv.table.block_builder import BlockBuilder")
    with pytest.raises(AssertionError, match="more than there were"):
        test_programs_take_few_names_from_the_engine("tools")


def unclaimed(tree: ast.Module) -> list[int]:
    """The lines of ``with`` statements that take a guard of a ThreadLock and do not note at once
    that this thread is its holder."""
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.With) and any(
            isinstance(item.context_expr, ast.Attribute) and item.context_expr.attr == "guard"
            for item in node.items
        ):
            first = ast.unparse(node.body[0])
            if not re.search(r"(\.claim\(\)|\.owner = .*|\._lead_nested\(.*\))$", first):
                lines.append(node.lineno)
    return lines


def test_whoever_takes_a_lock_is_known_as_its_holder() -> None:
    assert {module: lines for module, tree in SOURCES.items() if (lines := unclaimed(tree))} == {}
    assert unclaimed(ast.parse("with lock.guard:\n    count += 1\n    lock.claim()")) == [1]


def test_what_students_are_given_does_not_name_the_engines_rooms() -> None:
    starters = [module for module in SOURCES if in_room(module, "course.starters")]
    assert len(starters) > 12
    assert {module: taken for module in starters if (taken := engine_names_in(module))} == {}


@pytest.mark.parametrize(
    "source", ["from lsmkv.db.tree.manifest import Manifest", "import lsmkv.util.search"]
)
def test_one_more_name_of_the_engine_is_noticed(
    monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    judge(monkeypatch, "lsmkv.course.starters.new", source)
    with pytest.raises(AssertionError, match="more than there were"):
        test_programs_take_few_names_from_the_engine("course")
    with pytest.raises(AssertionError):
        test_what_students_are_given_does_not_name_the_engines_rooms()
