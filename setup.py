"""Compiles the hot rooms with mypyc where that can be done; everything else is in pyproject.toml.

``LSMKV_MYPYC=0`` never compiles, ``1`` fails if it cannot, unset tries.  All or nothing: a package
of which one extension failed would install and then die at its first import, so one failure drops
every extension, and the same ``.py`` files are installed as they are.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # setuptools does not
from mypyc_compile import LEVEL, SMALL, on_all_processors, set_options
from mypyc_output import join_units, mend_output

MODE = os.environ.get("LSMKV_MYPYC", "")
ROOMS = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["tool"]["lsmkv"]


def modules_of(key: str) -> list[str]:
    """The paths of the modules that are compiled, of the rooms and modules under a key."""
    paths = set(paths_under(key)) - set(paths_under("interpreted"))
    return [str(path) for path in sorted(paths) if path.name != "__init__.py"]


def paths_under(key: str) -> Iterator[Path]:
    """All modules under a key.  A room or module that is not there is an error."""
    for place in (Path("lsmkv", name) for name in ROOMS[key]):
        if not place.exists():
            raise SystemExit(f"pyproject.toml, [tool.lsmkv]: there is no {place}")
        yield from [place] if place.suffix else place.rglob("*.py")


def extensions() -> list[Extension]:
    """What mypyc makes of these modules; nothing where it is not wanted, or cannot be done."""
    # An editable install runs the files that are being edited.
    editable = any(command in sys.argv for command in ("editable_wheel", "develop"))
    building = any(command in sys.argv for command in ("bdist_wheel", "build", "build_ext"))
    if MODE == "0" or editable or not building:
        return []
    try:
        from mypyc.build import mypycify  # noqa: PLC0415 - needed for compiling alone

        # One group, but named as a separate one: only then may interpreted classes derive from
        # compiled ones that are not native.
        modules = modules_of("compiled")
        groups = [(modules, "lsmkv")]
        made: list[Extension] = mypycify(modules, separate=groups, multi_file=True, opt_level=LEVEL)
        mend_output(made, modules)
    except (Exception, SystemExit) as error:
        say_or_raise(error)
        return []
    if os.name == "posix":
        # Too much for Microsoft's compiler.  setuptools sorts: the largest file comes first.
        join_units(made, "__fast", modules_of("one-unit"))
        join_units(made, SMALL, modules_of("small"), limit=6_000_000)
        join_units(made, "__other", modules, limit=6_000_000)
        set_options(made)
    return made


def say_or_raise(error: BaseException) -> None:
    """Say that nothing is compiled, unless compiling is a must."""
    if MODE == "1":
        raise error
    print(f"lsmkv is installed without compiling: {error!r}", file=sys.stderr)


class BuildAllOrNothing(build_ext):
    """Builds every extension, or removes those that were built."""

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            say_or_raise(error)
            for output in self.get_outputs():
                Path(output).unlink(missing_ok=True)
            self.extensions = self.distribution.ext_modules = []

    def build_extensions(self) -> None:
        with on_all_processors(self):
            super().build_extensions()


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildAllOrNothing})
