"""Makes the C that mypyc writes, and the C that it brings, safe for memory, and reads it again.

**Stores.**  mypyc releases an attribute's old value, and then stores the new one.  The end of the
old value may close a file, which lets other threads run, or call a finalizer: they find, and
release once more, a value that is gone.  :func:`store_before_release` swaps the two.

**Reuse.**  Of some classes, those of generators among them, mypyc reuses a freed instance.  It
offers the instance before it has dropped what its attributes refer to, whose end may run code that
takes it.  :func:`offer_when_empty` swaps these two.

**Setup.**  Each class has a method for mypyc alone, which ends the process if it is called with
something else than the class: :func:`remove_setup`.

**Runtime.**  The same for items of lists; and exceptions of signal handlers in the middle of an
operation on integers, which end the process.  :func:`patch_runtime` applies ``docs/mypyc``, whose
patches are written to be offered to mypyc.

**Reading it again.**  :func:`refuse_unsafe` finds every release of a reference in the C that is
about to be compiled, and refuses what it does not know to be safe: a release is safe if what it
releases is in a local variable, where nobody else finds it.  So a release of mypyc that writes
something else is refused, and so is a pattern above that no longer fits.  ``setup.py`` pins the
release of mypyc that this was written for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol


class Extension(Protocol):
    """An extension of setuptools, as far as this module looks at it."""

    sources: list[str]
    include_dirs: list[str]


class UnsafeCodeError(Exception):
    """The C is not known to be safe, and must not be compiled."""


PATCHES = ("docs/mypyc/list_items.patch", "docs/mypyc/integers.patch")
"""Changes of the C that mypyc brings.  ``attributes.patch`` is for what is mended here."""

# Releases, maybe in an "if", and the store that follows them.
_STORE = re.compile(
    r"(?P<guard>if \([^\n]*\) \{\s+)?"
    r"(?P<releases>(?:CPy(?:Tagged)?_DECREF(?:_NO_IMM)?\([^\n;]*->[^\n;]*\);\s+)+)"
    r"(?(guard)\}\s+)"
    r"(?P<field>[^\s=][^\n=]*->[^\n=]*) = (?P<value>-?\w+);"
)
_RELEASE = re.compile(r"(CPy(?:Tagged)?_)(DECREF(?:_NO_IMM)?)\(([^\n;]*)\);")
_FREED = re.compile(
    r"    if \((?P<slot>\w+_free_instance) == NULL\) \{\n\s+(?P=slot) = self;\n"
    r"(?P<clear>(?:[^\n]*\n)*?)        return;\n    \}\n"
)
_OFFERED = re.compile(
    r"^ *(\w+_free_instance) = self;\n(?!        return;\n    \}\n    CPy_TRASHCAN)", re.M
)
_SETUP = re.compile(r'    \{"__internal_mypyc_setup", [^\n]*\},\n')
_FAILED_IMPORT = re.compile(
    r"^    fail:\n    Py_CLEAR\(CPyModule_(?:[^\n]*\n)*?    return -1;\n\}", re.M
)
"""What a module releases whose import failed: nobody has it."""
_TYPES = {"CPy_": "PyObject *", "CPyTagged_": "CPyTagged "}

_ANY_RELEASE = re.compile(r"\b(\w*(?:DECREF|DecRef|Decref|SETREF|CLEAR|_Dealloc)\w*)\(")
_STORES_FIRST = ("Py_CLEAR", "Py_SETREF", "Py_XSETREF")
"""Macros of CPython that store before they release."""
_NUMBERS = ("VEC_I64_DECREF", "VEC_I64_BUF")
"""Arrays of numbers, at whose end no code runs."""
_CAST = re.compile(r"\((?:PyObject|void|_PyUnicodeWriter) ?\*\)")
_LOCAL = re.compile(r"([A-Za-z_]\w*)(?:\.f\d+)*")
_PARAMETER = re.compile(r"(?:\w+ \*?\w+(?:, )?)+|dst, src|VEC_\w+_BUF\(v\)")
"""What stands in the definitions of functions and macros."""
_GLOBAL = re.compile(
    r"^(?:static |extern )?(?!return\b)[A-Za-z_][\w ]*[ *](\w+)(?:\[\w*\])?(?: = [^\n]*)?;", re.M
)
_BORROWED = re.compile(
    r"(\w+) = (?:\([\w *]+\))?"
    r"(?:Py\w+_GET_ITEM\([^;]*\)|\*\w+|\w+(?:->\w+|\[\w+\])*(?:->\w+|\[\w+\]));"
)
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)

READ = {
    ("getargs.c", "*p_args"): "a variable of the caller, which failed",
    ("getargsfast.c", "*p_args"): "a variable of the caller, which failed",
    ("getargs.c", "*p_kwargs"): "a variable of the caller, which failed",
    ("getargsfast.c", "*p_kwargs"): "a variable of the caller, which failed",
    ("librt_vecs.h", "VecNested_ItemBuf(parent, item)"): "of a parameter, which is a copy",
    ("locks.c", "api->get_module_lock"): "of a structure that could not be made",
    ("locks.c", "api->deadlock_error"): "of a structure that could not be made",
    ("misc_ops.c", "obj->value"): "of a new alias, while its module is imported",
    ("misc_ops.c", "obj->compute_value"): "of a new alias, while its module is imported",
    ("pythoncapi_compat.h", "writer->obj"): "of a writer that is ending",
}
"""Releases of what is not in a local variable, by file and operand: why they are safe."""

TAKEN = {
    ("function_wrapper.c", "old"): "the field has its new value by then",
    ("list_ops.c", "item"): "a reference was taken",
    ("list_ops.c", "old"): "the list has its new item by then",
    ("pythoncapi_compat.h", "obj"): "of an export that is ending",
    ("pythonsupport.h", "v"): "a reference was taken, or the list no longer has it",
}
"""Releases of what a variable has taken from an object or a list: why they are safe."""


def make_safe(extensions: Sequence[Extension]) -> None:
    """Mend the C of these extensions; :class:`UnsafeCodeError` if it is not safe afterwards."""
    patch_runtime(extensions)
    counts = [0, 0]
    for path in _sources(extensions):
        code = before = path.read_text(encoding="utf-8")
        for number, mend in enumerate((store_before_release, offer_when_empty)):
            code, count = mend(code)
            counts[number] += count
        code = remove_setup(code)
        if code != before:
            path.write_text(code, encoding="utf-8")
    if 0 in counts:
        raise UnsafeCodeError(
            f"mypyc's output has stores and free lists, but was changed at {counts}"
        )
    refuse_unsafe(extensions)


def store_before_release(code: str) -> tuple[str, int]:
    """Give attributes their new value before the old one is released.  The code, and the number of
    stores that were changed."""

    def swap(match: re.Match[str]) -> str:
        field, kept, released = match["field"], [], []
        for number, (kind, release, operand) in enumerate(_RELEASE.findall(match["releases"])):
            if re.sub(r"(\.f\d+)*\Z", "", operand) != field:
                return match[0]  # which refuse_unsafe refuses
            kept.append(f"{_TYPES[kind]}old{number} = ({_TYPES[kind].strip()}){operand};")
            released.append(f"{kind}X{release}(old{number});")
        return " ".join(("{", *kept, f"{field} = {match['value']};", *released, "}"))

    return _STORE.subn(swap, code)


def offer_when_empty(code: str) -> tuple[str, int]:
    """Offer a freed instance for reuse once its attributes are gone.  The code, and the number of
    classes that were changed."""
    return _FREED.subn(
        r"    if (\g<slot> == NULL) {\n\g<clear>    }\n"
        r"    if (\g<slot> == NULL) {\n        \g<slot> = self;\n        return;\n    }\n",
        code,
    )


def remove_setup(code: str) -> str:
    """Remove the method for mypyc alone, unless mypyc needs it, in which case :func:`refuse_unsafe`
    says so."""
    return code if "CPy_SetupObject(" in code else _SETUP.sub("", code)


def patch_runtime(extensions: Sequence[Extension]) -> None:
    """Apply :data:`PATCHES`; :class:`UnsafeCodeError` if one does not fit."""
    places = {path.name: path for path in _sources(extensions)}
    for patch in PATCHES:
        name, hunks = read_patch(Path(__file__).parent / patch)
        code = places[name].read_text(encoding="utf-8") if name in places else ""
        for before, after in hunks:
            if code.count(before) != 1:
                raise UnsafeCodeError(f"{patch} does not fit {name}")
            code = code.replace(before, after)
        places[name].write_text(code, encoding="utf-8")


def read_patch(path: Path) -> tuple[str, list[tuple[str, str]]]:
    """The name of the file that a patch changes, and of each hunk the texts before and after."""
    head, *hunks = re.split(r"^@@ [^\n]*\n", path.read_text(encoding="utf-8"), flags=re.M)
    lines = [hunk.splitlines(keepends=True) for hunk in hunks]
    return head.split("\n")[0].split("/")[-1], [
        (
            "".join(line[1:] or "\n" for line in hunk if line[0] != "+"),
            "".join(line[1:] or "\n" for line in hunk if line[0] != "-"),
        )
        for hunk in lines
    ]


def refuse_unsafe(extensions: Sequence[Extension]) -> None:
    """Raise :class:`UnsafeCodeError` if a release is not known to be safe."""
    found = sorted({text for path in _compiled(extensions) for text in unsafe_releases(path)})
    if found:
        more = f", and {len(found) - 5} more" if len(found) > 5 else ""
        raise UnsafeCodeError(f"not known to be safe: {'; '.join(found[:5])}{more}")


def unsafe_releases(path: Path) -> Iterator[str]:
    """Each place in a file of C that is not known to be safe."""
    code = _FAILED_IMPORT.sub("", _COMMENT.sub("", path.read_text(encoding="utf-8")))
    for match in _OFFERED.finditer(code):
        yield f"{match[1]}, which is offered too early, in {path.name}"
    if path.name.startswith("__native") and '"__internal_mypyc_setup"' in code:
        yield f"__internal_mypyc_setup in {path.name}"
    shared = {*_GLOBAL.findall(code)}
    for match in _ANY_RELEASE.finditer(code):
        operand = _operand(code, match.end())
        release = match[1]
        if (
            release not in (*_STORES_FIRST, *_NUMBERS)
            and not operand.startswith(_NUMBERS)
            and not _PARAMETER.fullmatch(operand)
            and not _is_local(operand, shared)
            and (path.name, operand) not in READ
        ):
            yield f"{release}({operand}) in {path.name}"
    if path.name.startswith("__native"):
        return  # mypyc's variables have references of their own
    for function in re.split(r"^\}", code, flags=re.M):
        released = {_operand(function, match.end()) for match in _ANY_RELEASE.finditer(function)}
        for name in {match[1] for match in _BORROWED.finditer(function)} & released:
            if (path.name, name) not in TAKEN:
                yield f"the release of {name}, which was taken from an object, in {path.name}"


def _is_local(operand: str, shared: set[str]) -> bool:
    plain = _CAST.sub("", operand).removeprefix("CPyTagged_LongAsObject(").strip("()")
    match = _LOCAL.fullmatch(plain)
    return match is not None and match[1] not in shared and not match[1].startswith("CPy")


def _operand(code: str, start: int) -> str:
    """What stands between the parenthesis before ``start`` and the one that closes it."""
    depth, end = 1, start
    while depth:
        depth += {"(": 1, ")": -1}.get(code[end], 0)
        end += 1
    return " ".join(code[start : end - 1].split())


def _sources(extensions: Sequence[Extension]) -> list[Path]:
    return [Path(name) for name in sorted({one for each in extensions for one in each.sources})]


def _compiled(extensions: Sequence[Extension]) -> set[Path]:
    """The sources, and the files that they include, but CPython's."""
    folders = {Path(folder) for extension in extensions for folder in extension.include_dirs}
    waiting, found = _sources(extensions), set[Path]()
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            for name in _INCLUDE.findall(path.read_text(encoding="utf-8")):
                places = [folder / name for folder in (path.parent, *folders)]
                waiting += [place for place in places if place.is_file()][:1]
    return found
