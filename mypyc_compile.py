"""How the C compiler is run: on all processors, and with which options.

**Processors.**  setuptools compiles the files of an extension one after another.
:func:`on_all_processors` has them compiled side by side.  ``LSMKV_JOBS`` is a limit, as is
setuptools' own ``--parallel``: each run of the compiler takes up to 0.8 GB of memory.

**Symbols.**  They double the size, and are left out.  ``LSMKV_SYMBOLS=1`` leaves them in, for
sanitizers and profilers.

**Optimisation.**  ``pyproject.toml`` says which rooms are compiled for size: their files are called
:data:`SMALL`.  ``LSMKV_OPTIMIZE=0`` leaves optimisation out, which takes a third of the time
(``make compiled-room``).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

LEVEL = os.environ.get("LSMKV_OPTIMIZE") or "3"
SYMBOLS = os.environ.get("LSMKV_SYMBOLS") == "1"
SMALL = "__small"
"""How the names of C files begin that are compiled for size."""


class Extension(Protocol):
    """An extension of setuptools, as far as this module looks at it."""

    extra_compile_args: list[str]
    extra_link_args: list[str]


class Compiler(Protocol):
    """A compiler of setuptools."""

    compile: Callable[..., list[str]]


class Command(Protocol):
    """Setuptools' ``build_ext``."""

    compiler: Compiler
    parallel: int | None


def set_options(extensions: Sequence[Extension]) -> None:
    """Options of gcc and clang: hide all but the entry points, which are all that others call, so
    that nothing is bound at import; and leave out the symbols."""
    for extension in extensions:
        extension.extra_compile_args = [*extension.extra_compile_args, "-fvisibility=hidden"]
        if not SYMBOLS:
            extension.extra_compile_args.append("-g0")
            if sys.platform == "linux":
                extension.extra_link_args = ["-s"]


def options_of(source: str) -> list[str]:
    """Options for one C file, which follow those of its extension."""
    return ["-Os"] if Path(source).name.startswith(SMALL) and LEVEL != "0" else []


@contextmanager
def on_all_processors(command: Command) -> Iterator[None]:
    """Have the command compile several files at a time, of one extension and of several.

    setuptools gives each extension a thread.  The files of all of them share one pool, so that
    there are never more runs of the compiler than its size.
    """
    jobs = int(command.parallel or os.environ.get("LSMKV_JOBS") or os.cpu_count() or 1)
    compile_files = command.compiler.compile
    with ThreadPoolExecutor(jobs) as pool:

        def compile_in_pool(
            sources: Sequence[str], *, extra_postargs: Sequence[str] | None = None, **settings: Any
        ) -> list[str]:
            """The object files of these sources, in their order."""

            def compile_file(source: str) -> list[str]:
                options = [*(extra_postargs or ()), *options_of(source)]
                return compile_files([source], extra_postargs=options, **settings)

            return [path for paths in pool.map(compile_file, sources) for path in paths]

        command.compiler.compile = compile_in_pool
        command.parallel = jobs
        yield
