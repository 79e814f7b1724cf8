"""The process that runs a student's code: it limits itself, loads the file, and answers calls.

:mod:`lsmkv.course.running` starts it and judges.  It calls the student's functions through the
pipes of this process's stdin and stdout, to which the student's code has no other access: what that
prints goes to stderr.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import linecache
import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from lsmkv.course.failure import Place
from lsmkv.course.pipe import Peer, Shape

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

_LARGEST_FILE = 64 << 20


def limit(seconds: int, memory_mib: int) -> None:
    """Limit the processor time, memory and file sizes of this process and its children."""
    if sys.platform == "win32" or resource is None:
        return
    memory = memory_mib << 20
    for what, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, _LARGEST_FILE),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


class Labs:
    """Finds the files of a student's labs, so that they may import each other under their own
    names, wherever they are."""

    def __init__(self, files: Mapping[str, str]) -> None:
        """``files`` has the path of each module."""
        self._files = files

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The module of a lab."""
        file = self._files.get(name)
        return None if file is None else importlib.util.spec_from_file_location(name, file)


class Root:
    """The object that the judge calls."""

    SHARED = Shape("object", ("is_ready", "load"))

    def __init__(self) -> None:
        self._path = ""
        self._folders: tuple[str, ...] = ()

    def is_ready(self) -> bool:
        """The first call, which waits for the start of the process."""
        return True

    def load(
        self, path: str, name: str, functions: Sequence[str], files: Mapping[str, str]
    ) -> dict[str, Any]:
        """Run a file as a module of this name.  Returns those of the functions that it has."""
        self._path = path
        self._folders = tuple({os.path.dirname(one) for one in (path, *files.values())})
        sys.meta_path.append(Labs(files))
        sys.path.append(os.path.dirname(path))
        with open(path, "rb") as file:
            source = file.read()
        module = ModuleType(name)
        module.__file__ = path
        sys.modules[name] = module  # dataclasses look it up there
        exec(compile(source, path, "exec"), module.__dict__)
        found = {one: getattr(module, one, None) for one in functions}
        return {one: function for one, function in found.items() if callable(function)}

    def place_of(self, error: BaseException) -> Place | None:
        """The innermost line of the student's files in an exception's traceback."""
        for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
            file = frame.f_code.co_filename
            if os.path.dirname(file) in self._folders:
                text = linecache.getline(file, line).strip()
                other = "" if file == self._path else os.path.basename(file)
                return Place(file, line, text, frame.f_code.co_name, other)
        return None


def main(arguments: Sequence[str]) -> None:
    """Answer the judge.  The arguments are the limits of processor seconds and MiB, and the file
    descriptor for tracebacks, or -1."""
    seconds, memory_mib, traces = map(int, arguments)
    reading, writing = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.dont_write_bytecode = True
    if traces >= 0:
        faulthandler.enable(traces, all_threads=False)
        if sys.platform != "win32":
            faulthandler.register(signal.SIGUSR1, traces, all_threads=False)
    limit(seconds, memory_mib)
    root = Root()
    Peer(reading, writing, root, root.place_of, passes=BaseException).serve()
    sys.stdout.flush()
    os._exit(0)  # threads of the student's code must not delay the exit
