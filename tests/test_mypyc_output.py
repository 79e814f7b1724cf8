"""mypyc_output: docstrings, whole names and units, in C as mypyc writes it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from documents import ROOT, load_script

SOURCE = '''
class Store:
    """A store."""

    def get(self, key):
        """The value: "none?" says \u2020."""

    def silent(self): ...

    @property
    def closed(self):
        """Whether it is closed."""

    def __init__(self, path): ...


def rate(bits: float = 10.0, keys: int = 1):
    """A rate."""
'''
C = r"""
    {"get", (PyCFunction)CPyPy_m___Store___get, METH_KW, PyDoc_STR("get($self, key)\n--\n\n")},
    {"silent", (PyCFunction)CPyPy_m___Store___silent, METH_KW, PyDoc_STR("silent($self)\n--\n\n")},
    {"rate", (PyCFunction)CPyPy_m___rate, METH_KW, PyDoc_STR("rate(bits=10.0, keys=1, /)\n--\n\n")},
    {"other", (PyCFunction)CPyPy_other___get, METH_KW, PyDoc_STR("get($self, key)\n--\n\n")},
static PyTypeObject CPyType_m___Store_template_ = {
    .tp_name = "Store",
    .tp_doc = PyDoc_STR("Store(path)\n--\n\n"),
};
    {"closed", (getter)m___Store_get_closed, NULL, NULL, NULL},
PyObject *CPyPy_m___Store_____init__(PyObject *self, PyObject *args, PyObject *kw) {
    static const char * const kwlist[] = {"path", 0};
    if (!CPyArg_ParseTupleAndKeywords(args, kw, "O", "__init__", kwlist, &obj_path)) {
"""


@pytest.fixture(scope="module")
def patching() -> ModuleType:
    """The module, which is not in the package, and which imports another one beside it."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.syspath_prepend(ROOT)
        return load_script(ROOT / "mypyc_output.py")


class Extension:
    """As far as the module looks at one."""

    def __init__(self, *sources: str) -> None:
        self.sources = [*sources]


@pytest.fixture
def lines(patching: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What becomes of :data:`C`: each line by its first name in quotation marks."""
    monkeypatch.chdir(tmp_path)
    Path("m.py").write_text(SOURCE, encoding="utf-8")
    Path("m.c").write_text(C, encoding="utf-8")
    patching.add_docstrings_and_names([Extension("m.c"), Extension("m.c")], ["m.py"])
    after = Path("m.c").read_text(encoding="utf-8").splitlines()
    assert len(after) == len(C.splitlines())
    return {line.split('"')[1]: line.strip() for line in after if '"' in line}


def test_a_method_gets_its_docstring_after_its_signature(lines: dict[str, str]) -> None:
    literal = r'"The value: \042none\077\042 says \342\200\240."'
    assert lines["get"].endswith(rf'PyDoc_STR("get($self, key)\n--\n\n" {literal})' + "},")


def test_a_class_gets_its_docstring(lines: dict[str, str]) -> None:
    assert lines["Store(path)\\n--\\n\\n"].endswith('"A store."),')


def test_a_property_gets_its_docstring(lines: dict[str, str]) -> None:
    assert lines["closed"].endswith('NULL, PyDoc_STR( "Whether it is closed."), NULL},')


def test_parameters_that_mypyc_takes_for_positional_are_those_of_the_source(
    lines: dict[str, str],
) -> None:
    assert r'"rate(bits=10.0, keys=1)\n--\n\n" "A rate."' in lines["rate"]


def test_an_error_in_a_call_names_the_class(lines: dict[str, str]) -> None:
    assert 'kw, "O", "Store.__init__", kwlist' in lines["O"]


def test_what_has_no_docstring_or_is_not_ours_stays(lines: dict[str, str]) -> None:
    assert lines["silent"] in C
    assert lines["other"] in C


def test_modules_are_joined_in_one_file_that_includes_theirs(
    patching: ModuleType, tmp_path: Path
) -> None:
    build = tmp_path / "build"
    build.mkdir()
    names = ("", "___a___b", "___a___c", "___d")
    paths = [str(build / f"__native_lsmkv{name}.c") for name in names]
    for path in (*paths, build / "int_ops.c"):
        Path(path).touch()
    shim, whole = Extension("shim.c"), Extension(*paths, str(build / "int_ops.c"))
    patching.join_units([shim, whole], "__fast", ["lsmkv/a/c.py", "lsmkv/a/b.py"])
    assert shim.sources == ["shim.c"]
    assert whole.sources == [str(build / "__fast.c"), paths[0], paths[3]]
    lines = (build / "__fast.c").read_text(encoding="utf-8").splitlines()
    files = ("__native_lsmkv___a___b.c", "__native_lsmkv___a___c.c", "int_ops.c")
    assert lines == [f'#include "{name}"' for name in files]


def test_modules_are_joined_in_files_of_limited_size(patching: ModuleType, tmp_path: Path) -> None:
    sizes = {"a": 500, "b": 40, "c": 60, "d": 1, "e": 99}
    paths = [tmp_path / f"__native_lsmkv___{name}.c" for name in sizes]
    for path, size in zip(paths, sizes.values(), strict=True):
        path.write_text("x" * size, encoding="utf-8")
    whole = Extension(*map(str, paths), "int_ops.c")
    patching.join_units([whole], "__small", [f"lsmkv/{name}.py" for name in sizes], limit=100)
    assert whole.sources == [
        *(str(tmp_path / f"__small{number}.c") for number in ("", 1, 2)),
        "int_ops.c",
    ]
    included = [
        "".join(line.split("___")[1][0] for line in Path(unit).read_text().splitlines())
        for unit in whole.sources[:-1]
    ]
    assert included == ["a", "bc", "de"]


def test_the_build_reads_as_little_as_it_says() -> None:
    assert len((ROOT / "setup.py").read_text(encoding="utf-8").splitlines()) <= 100


def test_a_free_threaded_interpreter_is_asked_for_its_lock(
    patching: ModuleType, tmp_path: Path
) -> None:
    source = tmp_path / "m.c"
    source.write_text("{Py_mod_gil, Py_MOD_GIL_NOT_USED},\n{0, NULL},\n", encoding="utf-8")
    patching.ask_for_the_lock([Extension(str(source))])
    assert source.read_text(encoding="utf-8") == "{Py_mod_gil, Py_MOD_GIL_USED},\n{0, NULL},\n"
