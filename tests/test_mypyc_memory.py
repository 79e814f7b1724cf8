"""mypyc_memory: C as mypyc writes it is made safe, or refused."""

from __future__ import annotations

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
from documents import ROOT, load_script

FIELD = "((m___FileObject *)cpy_r_self)->_opened"
STORED = f"""
    if ({FIELD} != NULL) {{
        CPy_DECREF({FIELD});
    }}
    {FIELD} = cpy_r_r39;
    if (self->_count != CPY_INT_TAG) {{
        CPyTagged_DECREF(self->_count);
    }}
    self->_count = -2;
    CPy_DECREF_NO_IMM(self->_name);
    self->_name = tmp;
    if (self->_pair.f0 != NULL) {{
        CPy_DECREF(self->_pair.f0);
        CPyTagged_DECREF(self->_pair.f1);
    }}
    self->_pair = cpy_r_r3;
"""
SWAPPED = f"""
    {{ PyObject *old0 = (PyObject *){FIELD}; {FIELD} = cpy_r_r39; CPy_XDECREF(old0); }}
    {{ CPyTagged old0 = (CPyTagged)self->_count; self->_count = -2; CPyTagged_XDECREF(old0); }}
    {{ PyObject *old0 = (PyObject *)self->_name; self->_name = tmp; CPy_XDECREF_NO_IMM(old0); }}
    {{ PyObject *old0 = (PyObject *)self->_pair.f0; CPyTagged old1 = (CPyTagged)self->_pair.f1;\
 self->_pair = cpy_r_r3; CPy_XDECREF(old0); CPyTagged_XDECREF(old1); }}
"""
FREED = """
m___walk_gen_dealloc(m___walk_genObject *self)
{
    PyObject_GC_UnTrack(self);
    if (m___walk_gen_free_instance == NULL) {
        m___walk_gen_free_instance = self;
        Py_CLEAR(self->_table);
        self->_at = -113;
        return;
    }
    CPy_TRASHCAN_BEGIN(self, m___walk_gen_dealloc)
"""
OFFERED = """
m___walk_gen_dealloc(m___walk_genObject *self)
{
    PyObject_GC_UnTrack(self);
    if (m___walk_gen_free_instance == NULL) {
        Py_CLEAR(self->_table);
        self->_at = -113;
    }
    if (m___walk_gen_free_instance == NULL) {
        m___walk_gen_free_instance = self;
        return;
    }
    CPy_TRASHCAN_BEGIN(self, m___walk_gen_dealloc)
"""
SETUP = """
static PyMethodDef m___File_methods[] = {
    {"__internal_mypyc_setup", (PyCFunction)CPyDef_m_____mypyc__File_setup, METH_O, NULL},
    {"read",
"""
SAFE = """
static PyObject *CPyModule_m;
void f(PyObject *self) {
    CPy_DECREF(cpy_r_r3);
    CPy_DecRef(cpy_r_r4.f0);
    CPyTagged_XDECREF(cpy_r_r5);
    Py_XDECREF(CPyTagged_LongAsObject(__tmp));
    Py_CLEAR(self->_table);
    VEC_I64_DECREF(self->_offsets);
    return;
    fail:
    Py_CLEAR(CPyModule_m);
    CPy_XDECREF(CPyStatic_m___LIMIT);
    CPyStatic_m___LIMIT = NULL;
    return -1;
}
"""


class Extension:
    """As far as the module looks at one."""

    def __init__(self, *sources: Path) -> None:
        self.sources = [str(source) for source in sources]
        self.include_dirs = [str(source.parent) for source in sources[:1]]


@pytest.fixture(scope="module")
def memory() -> ModuleType:
    """The module, which is not in the package."""
    return load_script(ROOT / "mypyc_memory.py")


def before_patches(memory: ModuleType, folder: Path) -> list[Path]:
    """C of which the patches change every line that they know."""
    paths = []
    for patch in memory.PATCHES:
        name, hunks = memory.read_patch(ROOT / patch)
        paths.append(folder / name)
        paths[-1].write_text("\n".join(before for before, _ in hunks), encoding="utf-8")
    return paths


@pytest.fixture
def native(tmp_path: Path) -> Path:
    """The C of a module, with one of each thing that is changed."""
    path = tmp_path / "__native_m.c"
    path.write_text(f"void f(PyObject *self) {{{STORED}}}\n{FREED}{SETUP}{SAFE}", encoding="utf-8")
    return path


def make_safe(memory: ModuleType, native: Path) -> str:
    """What becomes of a module's C."""
    memory.make_safe([Extension(native, *before_patches(memory, native.parent))])
    return native.read_text(encoding="utf-8")


def test_attributes_are_stored_before_the_old_value_is_released(memory: ModuleType) -> None:
    assert memory.store_before_release(STORED) == (SWAPPED, 4)


def test_an_instance_is_offered_for_reuse_when_it_is_empty(memory: ModuleType) -> None:
    assert memory.offer_when_empty(FREED) == (OFFERED, 1)


def test_the_method_for_mypyc_alone_is_removed(memory: ModuleType) -> None:
    assert (
        memory.remove_setup(SETUP) == '\nstatic PyMethodDef m___File_methods[] = {\n    {"read",\n'
    )


def test_what_was_mended_is_safe(memory: ModuleType, native: Path) -> None:
    code = make_safe(memory, native)
    assert SWAPPED in code
    assert OFFERED in code
    assert SAFE in code


PLANTED = {
    "a field": ("CPy_DECREF(self->_file); self->_file = f(x);", r"CPy_DECREF\(self->_file\)"),
    "another field": (
        "if (self->_a != NULL) {\n CPy_DECREF(self->_b);\n}\nself->_a = tmp;",
        r"CPy_DECREF\(self->_b\)",
    ),
    "a tuple's field": (
        "CPyTagged_DecRef(self->_pair.f1);",
        r"CPyTagged_DecRef\(self->_pair\.f1\)",
    ),
    "a static": ("CPy_DECREF(CPyStatic_m___LIMIT);", "CPyStatic_m___LIMIT"),
    "a list's slot": ("Py_DECREF(PyList_GET_ITEM(list, 3));", "PyList_GET_ITEM"),
    "any pointer": ("Py_DECREF(*slot);", r"Py_DECREF\(\*slot\)"),
    "a reused instance": (
        "\n    m___F_free_instance = self;\n    Py_CLEAR(self->_a);",
        "offered too early",
    ),
    "the setup": ('CPy_SetupObject(t); x = "__internal_mypyc_setup";', "__internal_mypyc_setup"),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_what_is_not_known_to_be_safe_is_refused(
    memory: ModuleType, native: Path, kind: str
) -> None:
    planted, said = PLANTED[kind]
    with native.open("a", encoding="utf-8") as file:
        file.write(f"void g(PyObject *self) {{\n    {planted}\n}}\n")
    with pytest.raises(memory.UnsafeCodeError, match=said):
        make_safe(memory, native)


@pytest.mark.parametrize("name", ["list_ops.c", "new_ops.h"])
def test_a_reference_that_the_runtime_borrows_is_not_released(
    memory: ModuleType, native: Path, name: str
) -> None:
    paths = before_patches(memory, native.parent)
    code = "void g(PyObject *self) {\n    PyObject *v = self->items[n];\n    Py_DECREF(v);\n}\n"
    place = native.parent / name
    if place in paths:
        code = place.read_text(encoding="utf-8") + code
    else:
        with native.open("a", encoding="utf-8") as file:
            file.write(f'#include "{name}"\n')
    place.write_text(code, encoding="utf-8")
    with pytest.raises(memory.UnsafeCodeError, match=f"release of v, .* in {name}"):
        memory.make_safe([Extension(native, *paths)])


@pytest.mark.parametrize("lost", [STORED, FREED])
def test_c_in_which_nothing_is_mended_is_refused(
    memory: ModuleType, native: Path, lost: str
) -> None:
    native.write_text(native.read_text(encoding="utf-8").replace(lost, ""), encoding="utf-8")
    with pytest.raises(memory.UnsafeCodeError, match="was changed at"):
        make_safe(memory, native)


def test_a_runtime_that_the_patches_do_not_fit_is_refused(memory: ModuleType, native: Path) -> None:
    first, second = before_patches(memory, native.parent)
    first.write_text(first.read_text(encoding="utf-8").replace("value", "v"), encoding="utf-8")
    with pytest.raises(memory.UnsafeCodeError, match="does not fit list_ops"):
        memory.make_safe([Extension(native, first, second)])
    with pytest.raises(memory.UnsafeCodeError, match="does not fit list_ops"):
        memory.make_safe([Extension(native, second)])


def test_the_release_of_mypyc_is_the_one_that_was_read() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "mypyc" / "README.md").read_text(encoding="utf-8")
    assert "\"mypy==2.4.1; implementation_name == 'cpython'\"" in project
    assert "lsmkv is compiled by mypyc 2.4.1." in page


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs patch")
def test_the_patches_apply_to_mypyc(tmp_path: Path) -> None:
    found = find_spec("mypyc")
    if found is None or found.origin is None:
        pytest.skip("needs mypyc")
    installed = Path(found.origin).parent
    for folder in ("codegen", "lib-rt"):
        shutil.copytree(installed / folder, tmp_path / "mypyc" / folder)
    patches = sorted((ROOT / "docs" / "mypyc").glob("*.patch"))
    assert len(patches) == 3
    for patch in patches:
        command = ["patch", "-p1", "--fuzz=0", "-i", patch]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
