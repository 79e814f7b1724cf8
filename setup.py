"""Compiles the hot wings with mypyc where that can be done; everything else is in pyproject.toml.

``LSMKV_MYPYC=0`` never compiles, ``1`` fails if it cannot, unset tries.  All or nothing: a package
of which one extension failed would install and then die at its first import, so one failure drops
every extension, and the same ``.py`` files are installed as they are.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

COMPILED_WINGS = ("util", "filter", "format", "table", "db", "repair")
MODE = os.environ.get("LSMKV_MYPYC", "")

# What the source distribution holds beside what an installation needs: all that `make test` does.
ALSO_IN_SDIST = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "Makefile")
TREES_IN_SDIST = ("docs", "examples", "tests")


def extensions() -> list[Extension]:
    """What mypyc makes of the compiled wings; nothing where it is not wanted or not there."""
    # An editable install runs the files that are being edited.
    editable = any(command in sys.argv for command in ("editable_wheel", "develop"))
    building = any(command in sys.argv for command in ("bdist_wheel", "build", "build_ext"))
    if MODE == "0" or editable or not building:
        return []
    modules = [
        str(path)
        for wing in COMPILED_WINGS
        for path in sorted(Path("lsmkv", wing).rglob("*.py"))
        if path.name != "__init__.py"
    ]
    try:
        from mypyc.build import mypycify  # noqa: PLC0415 - needed for compiling alone

        modules += ["lsmkv/counters.py", "lsmkv/stats.py"]
        # One group, but named as a separate one: only then does mypyc let classes that are not
        # native be derived from in interpreted code.
        found: list[Extension] = mypycify(modules, separate=[(modules, "lsmkv")], opt_level="3")
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
