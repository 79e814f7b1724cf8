"""The engine under Windows' rules, in processes of their own: see ``tests/helpers/windows_rules``.

A fake of the calls, on Linux: none of it has run on Windows.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from processes import ENVIRON, python, run_python

TESTS = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the rules are imitated on Linux"
)


def run(*arguments: str) -> int:
    """Run tests under the rules; returns how many have passed."""
    environ = dict(ENVIRON)
    environ["PYTHONPATH"] = os.pathsep.join([ENVIRON["PYTHONPATH"], str(TESTS / "helpers")])
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "windows_rules"]
    done = run_python(
        "-P", "-m", "pytest", *options, "--capture=sys", *arguments, cwd=TESTS.parent, env=environ
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    return int(passed[1])


def python_under_rules(script: str, *arguments: str) -> str:
    """What a script prints that finds ``windows_rules``."""
    path = [str(TESTS / "helpers"), ENVIRON["PYTHONPATH"]]
    boot = f"import sys; sys.path[:0] = {path!r}\n"
    done = python(boot + script, *arguments, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stdout


def test_files_locks_and_stores() -> None:
    assert run(str(TESTS / "engine/env/windows_cases.py")) > 40


IMPORT = """
import importlib, pkgutil, sys
# These ask Windows itself for more than is imitated, and are not what is tested.
for name in ("typer", "rich.console", "textual.app", "starlette.applications", "uvicorn", "pytest",
             "matplotlib.pyplot", "matplotlib.axes", "fsspec", "obstore", "hiredis", "hypothesis",
             "aiocache.base", "django.core.cache.backends.base", "dogpile.cache.api"):
    try:
        importlib.import_module(name)
    except ImportError:
        pass
import windows_rules
windows_rules.install()
import lsmkv
names = [module.name for module in pkgutil.walk_packages(lsmkv.__path__, "lsmkv.")]
names.remove("lsmkv.__main__")
absent = []
for name in names:
    try:
        importlib.import_module(name)
    except ImportError as error:  # an extra that is not installed
        if (error.name or "lsmkv").partition(".")[0] in ("lsmkv", *windows_rules.GONE_MODULES):
            raise
        absent.append(error.name)
print(len(names), *absent)
"""


def test_every_module_can_be_imported() -> None:
    out = python_under_rules(IMPORT).split()
    assert int(out[0]) > 300
    assert len(out) < 20


def test_commands(tmp_path: Path) -> None:
    """What the command line does to a store, from making it to destroying it."""
    script = """
import sys
import rich.console, typer, textual.app
import windows_rules
windows_rules.install()
from lsmkv.tools.cli import main
sys.argv = ["lsmkv", *sys.argv[1:]]
sys.exit(main())
"""
    store = str(tmp_path / "store")
    python_under_rules(script, "put", "--create", store, "key", "value")
    assert python_under_rules(script, "get", store, "key") == "value\n"
    assert "key" in python_under_rules(script, "scan", store)
    python_under_rules(script, "compact", store)
    python_under_rules(script, "verify", store)
    assert "CURRENT" in os.listdir(store)


@pytest.mark.long
@pytest.mark.parametrize(
    ("names", "which", "least"),
    [
        ("engine/db/compact/test_obsolete.py", "test", 3),
        # A link to a table that is open under its other name cannot be removed.
        ("engine/db/admin/test_checkpoint.py", "not exception_in_progress", 10),
        # The others of recovery have their files in memory.
        ("engine/db/opening/test_recovery.py", "foreign_files or symbolic or other_digits", 5),
        ("files/repair/test_repair.py", "every_kind_of_damage and place", 10),
    ],
)
def test_the_engines_own_tests(names: str, which: str, least: int) -> None:
    assert run("-k", which, *(str(TESTS / name) for name in names.split())) >= least
