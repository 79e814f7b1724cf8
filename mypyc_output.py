"""Changes the C that mypyc has written, before the C compiler reads it.

**Docstrings and names.**  mypyc leaves docstrings out of its C, and an error in a call names the
function without its class, or ``__call__``.  Both belong into string literals that it does write,
with a signature or a bare name.  :func:`add_docstrings_and_names` changes these, at no cost at run
time; ``lsmkv/engine/util/introspection.py`` does what is left.  The patterns fit mypy 2.4.  Where
mypyc writes something else, nothing is changed, and a compiled build fails
``tests/engine/util/test_introspection.py``.

It would be a few lines in mypyc itself, which has the syntax trees: ``PyDoc_STR`` of methods
and classes could take their docstrings (``emitclass.py``, ``emitmodule.py``), and the name in
``CPyArg_Parser`` its class (``emitwrapper.py``).

**Free-threaded Python.**  mypyc declares that its modules need no interpreter lock.  lsmkv has not
shown that of its own (``docs/platforms.md``): :func:`ask_for_the_lock` lets its modules ask for it.

**Memory.**  :func:`~mypyc_memory.make_safe` is a module of its own.

**Units.**  mypyc writes one C file, or one for each module.  :func:`join_units` has something in
between: some modules and mypyc's own functions in one file, so that the C compiler inlines them;
others in files of some megabytes, so that it reads mypyc's declarations less often.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mypyc_memory import Extension, make_safe

# Places in mypyc's C: the name of a function, class or getter, and the literal that describes it.
_LITERAL = r'"(?:[^"\\]|\\.)*"'
_DOCSTRINGS = (
    # {"seek", (PyCFunction)CPyPy_lsmkv___..._Iterator___seek, METH_..., PyDoc_STR("seek(...)...")}
    rf"\(PyCFunction\)CPyPy_(\w+),\s+METH_[\w |]+,\s+(PyDoc_STR\({_LITERAL}\)|NULL)",
    # static PyTypeObject CPyType_lsmkv___..._Iterator_template_ = {... .tp_doc = PyDoc_STR("...")
    rf"PyTypeObject CPyType_(\w+)_template_ = \{{[^}}]*?\.tp_doc = (PyDoc_STR\({_LITERAL}\))",
    # {"closed", (getter)lsmkv___..._BaseIterator_get_closed, NULL, NULL, NULL}
    r"\(getter\)(\w+),\s+(?:\(setter\)\w+|NULL),\s+(NULL), NULL\}",
)
_NAMES = (
    # CPyPy_lsmkv___..._get_DB_obj_____call__(...) {... CPyArg_Parser parser = {"OO|O:__call__", ...
    r"CPyPy_(\w+)\([\w *,]+kwnames\) \{[^{}]*\{[^{}]*\};\s+static CPyArg_Parser parser = \{"
    r'"[^":]*:(\w+)"',
    # CPyPy_lsmkv___..._BloomFilterPolicy_____init__(...) {... (args, kw, "|O", "__init__", kwlist
    r"CPyPy_(\w+)\([\w *,]+\*kw\) \{[^{}]*\{[^{}]*\};[^{}]*CPyArg_ParseTupleAndKeywords\("
    r'args, kw, "[^"]*", "(\w+)"',
)


class Described(NamedTuple):
    """What is to be said of a function or class."""

    name: str
    doc: str | None
    parameters: str | None = None
    """Of a function outside of classes, unless it has parameters by position alone."""


def mend_output(extensions: Sequence[Extension], modules: list[str]) -> None:
    """Change the C that mypyc wrote for these modules in all ways but its units."""
    add_docstrings_and_names(extensions, modules)
    ask_for_the_lock(extensions)
    make_safe(extensions)


def add_docstrings_and_names(extensions: Sequence[Extension], modules: list[str]) -> None:
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
        code = before = Path(path).read_text(encoding="utf-8")
        for pattern in _DOCSTRINGS:
            code = described(pattern, code, with_docstring)
        for pattern in _NAMES:
            code = described(pattern, code, lambda _, place: place.name)
        if code != before:
            Path(path).write_text(code, encoding="utf-8")


def ask_for_the_lock(extensions: Sequence[Extension]) -> None:
    """Let a free-threaded interpreter turn its lock on when it imports these modules."""
    for path in sorted({source for extension in extensions for source in extension.sources}):
        code = Path(path).read_text(encoding="utf-8")
        if "Py_MOD_GIL_NOT_USED" in code:
            changed = code.replace("Py_MOD_GIL_NOT_USED", "Py_MOD_GIL_USED")
            Path(path).write_text(changed, encoding="utf-8")


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


def join_units(
    extensions: Sequence[Extension], name: str, modules: Sequence[str], limit: int | None = None
) -> None:
    """Compile the C files of these modules as one file that includes them, or as several of at most
    ``limit`` bytes; and in the first one without a limit mypyc's own files."""
    names = {f"__native_{c_name('.'.join(Path(path).with_suffix('').parts))}.c" for path in modules}
    for extension in extensions:
        joined = [
            source
            for source in extension.sources
            if Path(source).name in names
            or (limit is None and not Path(source).name.startswith("__"))
        ]
        if not names & {Path(source).name for source in joined}:
            continue  # the entry point of a module
        rest = [one for one in extension.sources if one not in joined]
        units = [
            write_unit(f"{name}{number or ''}.c", files)
            for number, files in enumerate(cut(joined, limit))
        ]
        extension.sources = units + rest


def cut(sources: Sequence[str], limit: int | None) -> Iterator[Sequence[str]]:
    """The sources in pieces of at most ``limit`` bytes, or of one file."""
    start = size = 0
    for number, source in enumerate(sources):
        size += Path(source).stat().st_size
        if limit is not None and size > limit and number > start:
            yield sources[start:number]
            start, size = number, Path(source).stat().st_size
    yield sources[start:]


def write_unit(name: str, sources: Sequence[str]) -> str:
    """The path of a C file that includes these."""
    unit = Path(sources[0]).with_name(name)
    lines = [f'#include "{Path(source).name}"\n' for source in sources]
    unit.write_text("".join(lines), encoding="utf-8")
    return str(unit)
