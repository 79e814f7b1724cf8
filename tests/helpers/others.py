"""Other processes that have a shared store open, and do there what a test says."""

from __future__ import annotations

import ast
import signal
import time
from pathlib import Path
from typing import Any

from processes import start

from lsmkv import SharedDB

_SCRIPT = """
import sys
import lsmkv
SharedDB = lsmkv.SharedDB
options = eval(sys.argv[2])
names = {"lsmkv": lsmkv, "SharedDB": SharedDB}
try:
    names["db"] = SharedDB(sys.argv[1], **options)
    print(repr("open"), flush=True)
except Exception as error:
    print(repr(f"{type(error).__name__}: {error}"), flush=True)
for line in sys.stdin:
    try:
        code = compile(eval(line), "line", "eval")
    except SyntaxError:
        code = compile(eval(line), "line", "exec")
    try:
        answer = repr(eval(code, names))
    except BaseException as error:
        answer = repr(f"{type(error).__name__}: {error}")
    print(answer, flush=True)
"""


def new(path: Path, **options: Any) -> SharedDB:
    """The store in this process, made if there is none."""
    return SharedDB(path, create_if_missing=True, **options)


class Other:
    """A process that has opened a shared store, as ``db``."""

    def __init__(self, path: Path, before: tuple[str, ...] = (), **options: Any) -> None:
        """``before`` is the command by which it is started."""
        self.process = start(_SCRIPT, str(path), repr(options), before=before)
        self.opened: Any = self._answer()
        """``"open"``, or the error."""
        self.pid = self.process.pid

    def __call__(self, code: str) -> Any:
        """Run an expression, or statements; their value, or the name and text of their error."""
        self.ask(code)
        return self._answer()

    def ask(self, code: str) -> None:
        """Begin to run it; :meth:`answer` waits."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{code!r}\n".encode())
        self.process.stdin.flush()

    def answer(self) -> Any:
        """The answer to what was asked."""
        return self._answer()

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def stop(self) -> None:
        """Let it run no further."""
        self.process.send_signal(signal.SIGSTOP)
        while "State:\tT" not in Path(f"/proc/{self.pid}/status").read_text():
            time.sleep(0.001)

    def go_on(self) -> None:
        """Let it run again."""
        self.process.send_signal(signal.SIGCONT)

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        if not line:
            raise EOFError("the process has ended")
        try:
            return ast.literal_eval(line)
        except (ValueError, SyntaxError):
            return line.rstrip("\n")


def put_number(db: SharedDB, number: int) -> str:
    """What a process of a pool runs, which imports it by its name; the role of its handle."""
    db.put(b"%d" % number, b"v")
    return db.role
