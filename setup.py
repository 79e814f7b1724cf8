"""Compiles the hot rooms with mypyc where that can be done; everything else is in pyproject.toml.

``LSMKV_MYPYC=0`` never compiles, ``1`` fails if it cannot, unset tries.  All or nothing: a package
of which one extension failed would install and then die at its first import, so one failure drops
every extension, and the same ``.py`` files are installed as they are.

mypyc leaves docstrings out of the C that it writes, and an error in a call names the function
without its class, or ``__call__``.  :func:`add_docstrings_and_names` puts them in, as literals that
cost nothing at run time; ``lsmkv/util/introspection.py`` does what is left.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

COMPILED_ROOMS = ("util", "filter", "format", "table", "db", "repair", "server")
# The server holds objects of the event loop: uvloop's classes where that is there, not asyncio's.
# The type of an iterator's entries is one thing to a type checker, and another at run time.
# Ctrl-C ends a wait for a ticket: the interpreter looks for signals at every turn of its loop.
INTERPRETED = {"lsmkv/server/server.py", "lsmkv/util/entry_type.py", "lsmkv/util/ticket.py"}
MODE = os.environ.get("LSMKV_MYPYC", "")

# What the source distribution holds beside what an installation needs: all that `make test` does.
ALSO_IN_SDIST = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "Makefile", "mkdocs.yml")
TREES_IN_SDIST = (".ci", "docs", "examples", "tests")
# Places in mypyc's C: the name of a function, class or getter, and the literal that describes it.
LITERAL = r'"(?:[^"\\]|\\.)*"'
DOCSTRINGS = (
    # {"seek", (PyCFunction)CPyPy_lsmkv___..._Iterator___seek, METH_..., PyDoc_STR("seek(...)...")}
    rf"\(PyCFunction\)CPyPy_(\w+),\s+METH_[\w |]+,\s+(PyDoc_STR\({LITERAL}\)|NULL)",
    # static PyTypeObject CPyType_lsmkv___..._Iterator_template_ = {... .tp_doc = PyDoc_STR("...")
    rf"PyTypeObject CPyType_(\w+)_template_ = \{{[^}}]*?\.tp_doc = (PyDoc_STR\({LITERAL}\))",
    # {"closed", (getter)lsmkv___..._BaseIterator_get_closed, NULL, NULL, NULL}
    r"\(getter\)(\w+),\s+(?:\(setter\)\w+|NULL),\s+(NULL), NULL\}",
)
NAMES = (
    # CPyPy_lsmkv___..._get_DB_obj_____call__(...) {... CPyArg_Parser parser = {"OO|O:__call__", ...
    r"CPyPy_(\w+)\([\w *,]+kwnames\) \{[^{}]*\{[^{}]*\};\s+static CPyArg_Parser parser = \{"
    r'"[^":]*:(\w+)"',
    # CPyPy_lsmkv___..._BloomFilterPolicy_____init__(...) {... (args, kw, "|O", "__init__", kwlist
    r"CPyPy_(\w+)\([\w *,]+\*kw\) \{[^{}]*\{[^{}]*\};[^{}]*CPyArg_ParseTupleAndKeywords\("
    r'args, kw, "[^"]*", "(\w+)"',
)


def extensions() -> list[Extension]:
    """What mypyc makes of the compiled rooms; nothing where it is not wanted or not there."""
    # An editable install runs the files that are being edited.
    editable = any(command in sys.argv for command in ("editable_wheel", "develop"))
    building = any(command in sys.argv for command in ("bdist_wheel", "build", "build_ext"))
    if MODE == "0" or editable or not building:
        return []
    modules = [
        str(path)
        for room in COMPILED_ROOMS
        for path in sorted(Path("lsmkv", room).rglob("*.py"))
        if path.name != "__init__.py" and path.as_posix() not in INTERPRETED
    ]
    try:
        from mypyc.build import mypycify  # noqa: PLC0415 - needed for compiling alone

        modules.append("lsmkv/counters.py")
        found: list[Extension] = mypycify(
            modules,
            # One group, but named as a separate one: only then does mypyc let classes that are not
            # native be derived from in interpreted code.
            separate=[(modules, "lsmkv")],
            # A file for each module, as mypy is built itself there: Microsoft's compiler runs out
            # of memory, or of sections, in one of 700,000 lines.  gcc makes more of that one.
            multi_file=os.name == "nt",
            opt_level="3",  # mypyc spells it, and which warnings count, for each compiler
        )
        add_docstrings_and_names(found, modules)
    except (Exception, SystemExit) as error:
        if MODE == "1":
            raise
        print(f"lsmkv is installed without compiling: {error!r}", file=sys.stderr)
        return []
    if os.name == "posix":
        # Only the modules' entry points are for others: what is hidden is not bound at import.
        for extension in found:
            options = extension.extra_compile_args  # one list, which they share
            extension.extra_compile_args = [*options, "-fvisibility=hidden"]
    return found


class Described(NamedTuple):
    """What is to be told of a function or class."""

    name: str
    doc: str | None
    parameters: str | None = None
    """Of a function outside of classes, unless it has parameters by position alone."""


def add_docstrings_and_names(extensions: list[Extension], modules: list[str]) -> None:
    """Put docstrings, and qualified names for errors in calls, into the C that mypyc wrote."""
    places = described_places(modules)

    def described(pattern: str, code: str, describe: Callable[[str, Described], str]) -> str:
        def replace(match: re.Match[str]) -> str:
            place = places.get(match[1])
            if place is None:
                return match[0]
            start, end = match.start(2) - match.start(), match.end(2) - match.start()
            return match[0][:start] + describe(match[2], place) + match[0][end:]

        return re.sub(pattern, replace, code)

    for path in sorted({source for extension in extensions for source in extension.sources}):
        code = Path(path).read_text(encoding="utf-8")
        for pattern in DOCSTRINGS:
            code = described(pattern, code, with_docstring)
        for pattern in NAMES:
            code = described(pattern, code, lambda _, place: place.name)
        Path(path).write_text(code, encoding="utf-8")


def with_docstring(text: str, place: Described) -> str:
    """What stands for a docstring in C, which is a signature at best, with the docstring."""
    if place.doc is None:
        return text
    signature = text.removeprefix("PyDoc_STR(").removesuffix(")").replace("NULL", "")
    if place.parameters is not None and ", /)" in signature:
        # mypyc takes all parameters for such, if one is a float with a default.
        name, (_, rest) = signature.split("(")[0], signature.rsplit(", /)", 1)
        signature = f"{name}({c_literal(place.parameters)[1:-1]}){rest}"
    return f"PyDoc_STR({signature} {c_literal(place.doc)})"


def described_places(modules: list[str]) -> dict[str, Described]:
    """The functions and classes of some modules, by what mypyc calls them in C."""
    places: dict[str, Described] = {}
    for path in modules:
        module = ".".join(Path(path).with_suffix("").parts)
        for node in ast.parse(Path(path).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                place = Described(node.name, ast.get_docstring(node), parameters_of(node))
                places[c_name(f"{module}.{node.name}")] = place
            elif isinstance(node, ast.ClassDef):
                owner = f"{module}.{node.name}"
                places[c_name(owner)] = Described(node.name, ast.get_docstring(node))
                for method in node.body:
                    if isinstance(method, ast.FunctionDef):
                        place = Described(f"{node.name}.{method.name}", ast.get_docstring(method))
                        # A method or a property of a native class; a method of another class, which
                        # is an object of its own class.
                        places[c_name(f"{owner}.{method.name}")] = place
                        places[c_name(f"{owner}_get_{method.name}")] = place
                        places[c_name(f"{module}.{method.name}_{node.name}_obj")] = place
                        places[c_name(f"{module}.{method.name}_{node.name}_obj.__call__")] = place
    return places


def parameters_of(function: ast.FunctionDef) -> str | None:
    """Names and defaults, as the source has them; None if some are taken by position alone."""
    for node in ast.walk(function.args):
        if isinstance(node, ast.arg):
            node.annotation = None
    return None if function.args.posonlyargs else ast.unparse(function.args)


def c_name(name: str) -> str:
    """A dotted name as mypyc spells it in C."""
    return name.replace("___", "___3_").replace(".", "___")


def c_literal(text: str) -> str:
    """A string literal; what is not plain ASCII is spelt by its bytes."""
    plain = {byte: chr(byte) for byte in range(32, 127) if chr(byte) not in '"\\?'}
    return '"' + "".join(plain.get(byte, f"\\{byte:03o}") for byte in text.encode()) + '"'


class BuildAllOrNothing(build_ext):
    """Builds every extension, or removes those that were built."""

    def run(self) -> None:
        """Build; on a failure fall back to pure Python unless compiling is a must."""
        try:
            super().run()
        except Exception as error:
            if MODE == "1":
                raise
            for output in self.get_outputs():
                Path(output).unlink(missing_ok=True)
            self.extensions = []
            self.distribution.ext_modules = []
            print(f"lsmkv is installed without compiling: {error!r}", file=sys.stderr)


class WholeSources(sdist):
    """Packs the tests, the documentation and the examples, too, as a ``MANIFEST.in`` would."""

    def make_distribution(self) -> None:
        """Add them to the files that setuptools has found, and pack."""
        self.filelist.extend(ALSO_IN_SDIST)
        for tree in TREES_IN_SDIST:
            self.filelist.graft(tree)
        self.filelist.global_exclude("*.py[co]")
        super().make_distribution()


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildAllOrNothing, "sdist": WholeSources})
