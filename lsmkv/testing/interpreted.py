"""A child process that runs this package from its ``.py`` files, even if they are also compiled.

Compiled code has no lines to stop at, and its classes cannot be patched.  Code that needs either
runs in such a child: a new interpreter in which

* every module of the package comes from its source, even in a compiled installation;
* nothing varies from run to run without need: hashes of strings have no random seed, and the
  garbage collector runs only when it is called.

The parent calls :func:`run_interpreted`, or keeps an :class:`InterpretedChild` for several
requests, and names a module with a function ``main``.  The child imports that module *before* the
package, and finds empty packages with the right path in place of the package.  So ``main`` can
prepare what the engine will import, and then calls :func:`import_package`.  A module that has
nothing to prepare may call it first.

:func:`in_copy` calls a function in a copy of the child, which leaves the child as it was.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import subprocess
import sys
import types
from collections.abc import Callable, Sequence
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader
from typing import Any

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PACKAGE = __name__.partition(".")[0]

# Parents of the module are empty packages until import_package: see the module's docstring.
_BOOT = f"""
import sys, types
home, module, *sys.path = sys.argv[1:]
for name, path in (("{_PACKAGE}", home), ("{_PACKAGE}.testing", home + "/testing")):
    package = types.ModuleType(name)
    package.__path__ = [path]
    sys.modules[name] = package
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
loader = SourceFileLoader("{__name__}", home + "/testing/interpreted.py")
sys.modules[loader.name] = own = module_from_spec(spec_from_loader(loader.name, loader))
loader.exec_module(own)
own._serve(module)
"""


class ChildFailedError(Exception):
    """The child has ended without an answer.  Its messages are on the standard error."""


def run_interpreted(module: str, request: object) -> Any:
    """Call ``main(request)`` of ``module`` in a child, and return what that returns.

    Both are passed on as JSON.  The child has this process's environment, working directory and
    ``sys.path``; its output goes to the standard error.  Raises :class:`ChildFailedError`.
    Costs the start of an interpreter: 0.1 s, and 0.2 s more to import the package.
    """
    with InterpretedChild(module) as child:
        return child.ask(request)


class InterpretedChild:
    """A child that answers requests until it is closed, or killed.  One thread uses it."""

    def __init__(self, module: str, pass_fds: Sequence[int] = ()) -> None:
        """``main`` of ``module`` is called for each request.  ``pass_fds`` stay open in the child.

        Costs the start of an interpreter, 0.1 s.
        """
        self._module = module
        # An empty entry is the working directory, which the child shares.
        path = [os.path.abspath(entry) for entry in sys.path if isinstance(entry, str)]
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOT, _HOME, module, *path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONHASHSEED": "0"},
            pass_fds=pass_fds,
        )
        """The child's process; :meth:`close` reaps it."""

    def __enter__(self) -> InterpretedChild:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self.process.kill()
        self.close()

    def ask(self, request: object) -> Any:
        """Return the result of ``main(request)``; both are passed on as JSON.

        Raises :class:`ChildFailedError` if the child has ended.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if not answer.endswith(b"\n"):
            status = self.close()
            raise ChildFailedError(f"the child for {self._module} has ended with {status}")
        return json.loads(answer)

    def kill(self) -> None:
        """End the child as a crash would: it gets no chance to do anything more."""
        self.process.kill()
        self.close()

    def close(self) -> int:
        """Wait for the child's end after its last answer.  Returns its exit status."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.stdout.close()
        return self.process.wait()


def import_package() -> types.ModuleType:
    """In the child: import the package itself, and return it.

    Modules that were imported before stay as they are.
    """
    early = {name: module for name, module in sys.modules.items() if _is_ours(name)}
    for name, module in early.items():
        if module.__spec__ is None:  # one of the empty packages
            del sys.modules[name]
    package = importlib.import_module(_PACKAGE)
    for name in early:
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(importlib.import_module(parent), own, importlib.import_module(name))
    return package


def in_copy(call: Callable[[], object]) -> Any:
    """In the child: return the result of ``call`` in a copy of this process, which ends afterwards.

    The result is passed on as JSON.  So calls do not see what earlier ones have left: caches,
    counters, threads that cannot end.  Where a process cannot be copied (Windows), ``call`` runs in
    this one.  Raises :class:`ChildFailedError` if the copy ends without a result.  Costs a few
    milliseconds.
    """
    if sys.platform == "win32":
        return json.loads(json.dumps(call()))
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reading)
            with open(writing, "wb") as pipe:
                pipe.write(json.dumps(call()).encode())
            status = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)  # no finalizer, and no thread is waited for
    os.close(writing)
    with open(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise ChildFailedError(f"a copy has ended with {os.waitstatus_to_exitcode(status)}")
    return json.loads(answer)


class _SourcesFirst:
    """Finds the modules of the package by their sources."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: object = None
    ) -> ModuleSpec | None:
        if not _is_ours(name):
            return None
        for place in [os.path.dirname(_HOME)] if path is None else path:
            spec = FileFinder(place, (SourceFileLoader, [".py"])).find_spec(name)
            if spec is not None and spec.loader is not None:
                return spec
        return None


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] == _PACKAGE


def _serve(module: str) -> None:
    """Answer requests in the child, a line each, until there are no more."""
    gc.disable()
    questions, answers = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.meta_path.insert(0, _SourcesFirst)
    parts = module.split(".")
    for at in range(1, len(parts)):
        name = ".".join(parts[:at])
        if name not in sys.modules:
            package = types.ModuleType(name)
            package.__path__ = [os.path.join(_HOME, *parts[1:at])]
            sys.modules[name] = package
    main = importlib.import_module(module).main
    with open(questions, "rb") as requests, open(answers, "wb") as pipe:
        for request in requests:
            pipe.write(json.dumps(main(json.loads(request))).encode() + b"\n")
            pipe.flush()
