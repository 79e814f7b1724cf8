"""Other processes that have a cache open, and do there what a test says."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path
from typing import Any

from processes import start

_SCRIPT = """
import sys, time
import lsmkv
from lsmkv.cache.recipes import *
cache = lsmkv.Cache(sys.argv[1])
print(repr("open"), flush=True)
for line in sys.stdin:
    try:
        exec(compile(eval(line), "line", "exec"))
        answer = repr(globals().pop("result", None))
    except BaseException as error:
        answer = repr(f"{type(error).__name__}: {error}")
    print(answer, flush=True)
"""


class CacheUser:
    """A process with a cache as ``cache``; what its code calls ``result`` is the answer."""

    def __init__(self, directory: Path | str) -> None:
        self.process: subprocess.Popen[bytes] = start(_SCRIPT, str(directory))
        assert self.answer() == "open"

    def __call__(self, code: str) -> Any:
        """Run it to its end."""
        self.ask(code)
        return self.answer()

    def ask(self, code: str) -> None:
        """Begin to run it."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{code!r}\n".encode())
        self.process.stdin.flush()

    def answer(self) -> Any:
        """The answer to what was asked; "gone" if the process has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        return ast.literal_eval(line) if line else "gone"

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
