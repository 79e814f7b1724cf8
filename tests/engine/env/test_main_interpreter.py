"""Subinterpreters: ``import lsmkv`` is refused there, and the main interpreter is left unharmed.

Each case is a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lsmkv

SUBINTERPRETERS = """
import sys
try:
    import _interpreters as interpreters  # 3.13
except ImportError:
    import _xxsubinterpreters as interpreters

    def create(kind):
        return interpreters.create(isolated=kind == "isolated")
else:
    create = interpreters.create

def run(kind, name):
    made = create(kind)
    interpreters.run_string(made, CODE.format(path=sys.path, name=name))
    interpreters.destroy(made)

CODE = '''
import sys
sys.path[:] = {path!r}
for _ in range(2):
    try:
        import {name}
    except ImportError as error:
        print(error.name, error)
loaded = set(name for name in sys.modules if name.startswith("lsmkv"))
print(*loaded, flush=True)
'''
"""
MAIN = """
import lsmkv
with lsmkv.DB(":memory:") as db:
    db.put(b"k", b"v")
    assert db.get(b"k") == b"v"
try:
    lsmkv.DB("no such directory")
except lsmkv.Error:
    print("main", flush=True)
"""
REFUSED = (
    "lsmkv lsmkv cannot be imported in a subinterpreter, only in the main interpreter of a process"
    " (with mod_wsgi: WSGIApplicationGroup %{GLOBAL})\n"
)


def output(program: str) -> str:
    """What a process prints that imports the same lsmkv as this one."""
    package = os.path.dirname(os.path.dirname(lsmkv.__file__))
    path = f"import sys\nsys.path.insert(0, {package!r})\n"
    command = [sys.executable, "-c", path + program]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


@pytest.mark.parametrize("kind", ["legacy", "isolated"])
@pytest.mark.parametrize(
    "name", ["lsmkv", "lsmkv.engine.util.coding", "lsmkv.engine.env.local", "lsmkv.plyvel"]
)
def test_a_subinterpreter_is_refused_before_any_other_module_is_loaded(
    kind: str, name: str
) -> None:
    program = f"{SUBINTERPRETERS}\nrun({kind!r}, {name!r})\n"
    assert output(program) == f"{REFUSED}{REFUSED}\n"


def test_the_main_interpreter_works_before_and_after_one_that_was_refused() -> None:
    program = f"{SUBINTERPRETERS}\n{MAIN}\nrun('legacy', 'lsmkv')\n{MAIN}"
    assert output(program) == f"main\n{REFUSED}{REFUSED}\nmain\n"


def test_the_main_interpreter_imports_after_a_subinterpreter_asked_first() -> None:
    program = f"{SUBINTERPRETERS}\nrun('legacy', 'lsmkv')\n{MAIN}"
    assert output(program) == f"{REFUSED}{REFUSED}\nmain\n"


def test_any_thread_of_the_main_interpreter_may_be_the_first_to_import() -> None:
    program = (
        f"def first():\n    exec({MAIN!r}, {{}})\n"
        "import threading\n"
        "thread = threading.Thread(target=first)\n"
        "thread.start()\n"
        "thread.join()\n"
    )
    assert output(program) == "main\n"


def test_an_interpreter_that_cannot_say_is_the_main_one() -> None:
    """A Python without subinterpreters has no module for them."""
    program = (
        "import _thread, sys, threading\n"
        "vars(_thread).pop('_is_main_interpreter', None)\n"
        "sys.modules['_xxsubinterpreters'] = None\n"
    )
    assert output(program + MAIN) == "main\n"


def test_the_page_on_platforms_explains_the_setting_that_the_error_names() -> None:
    page = Path(__file__).parents[3] / "docs" / "platforms.md"
    setting = REFUSED[REFUSED.index("WSGI") : REFUSED.index(")")]
    assert f"\n{setting}\n" in page.read_text(encoding="utf-8")
