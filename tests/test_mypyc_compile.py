"""mypyc_compile: the C compiler on all processors, and its options."""

from __future__ import annotations

import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from documents import ROOT, load_script


class Extension:
    """As far as the module looks at one."""

    def __init__(self) -> None:
        self.extra_compile_args = ["-O3", "-g1"]
        self.extra_link_args: list[str] = []


class Compiler:
    """Notes what it compiles, and how many files at a time; fails at ``bad.c``."""

    def __init__(self, together: int) -> None:
        self.options: dict[str, list[str]] = {}
        self.meeting = threading.Barrier(together)
        self.running = self.most = 0
        self.lock = threading.Lock()

    def compile(self, sources: list[str], **settings: Any) -> list[str]:
        (source,) = sources
        if source == "bad.c":
            raise ValueError(source)
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self.meeting.wait(timeout=30)  # two that do not run at the same time wait for ever
        with self.lock:
            self.running -= 1
        self.options[source] = settings["extra_postargs"]
        return [source.replace(".c", settings["suffix"])]


def load(monkeypatch: pytest.MonkeyPatch, **settings: str) -> ModuleType:
    """The module as the environment variables set it up."""
    for name in ("JOBS", "OPTIMIZE", "SYMBOLS"):
        monkeypatch.delenv(f"LSMKV_{name}", raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(f"LSMKV_{name}", value)
    return load_script(ROOT / "mypyc_compile.py")


@pytest.mark.parametrize(("parallel", "jobs"), [(2, "7"), (None, "2")])
def test_files_are_compiled_side_by_side_up_to_a_limit(
    parallel: int | None, jobs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiling = load(monkeypatch, JOBS=jobs)
    compiler = Compiler(together=2)
    command = SimpleNamespace(compiler=compiler, parallel=parallel)
    names = ["a.c", "b.c", "c.c", "d.c"]
    with compiling.on_all_processors(command):
        assert command.parallel == 2
        made = compiler.compile(names, extra_postargs=["-O3"], suffix=".o")
    assert made == ["a.o", "b.o", "c.o", "d.o"]
    assert compiler.most == 2


def test_a_file_that_does_not_compile_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    compiling = load(monkeypatch, JOBS="1")
    command = SimpleNamespace(compiler=Compiler(together=1), parallel=None)
    with pytest.raises(ValueError, match=r"bad\.c"), compiling.on_all_processors(command):
        command.compiler.compile(["a.c", "bad.c", "c.c"], suffix=".o")


@pytest.mark.parametrize(("level", "small"), [("", ["-O3", "-Os"]), ("0", ["-O3"])])
def test_small_rooms_are_compiled_for_size_unless_nothing_is_optimised(
    level: str, small: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiling = load(monkeypatch, JOBS="1", OPTIMIZE=level)
    compiler = Compiler(together=1)
    command = SimpleNamespace(compiler=compiler, parallel=None)
    with compiling.on_all_processors(command):
        compiler.compile(["build/__small1.c", "build/__fast.c"], extra_postargs=["-O3"], suffix="o")
    assert compiler.options == {"build/__small1.c": small, "build/__fast.c": ["-O3"]}
    assert (level or "3") == compiling.LEVEL


@pytest.mark.parametrize(("symbols", "without"), [("", True), ("1", False)])
def test_symbols_are_left_out_unless_they_are_asked_for(
    symbols: str, without: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    extension = Extension()
    load(monkeypatch, SYMBOLS=symbols).set_options([extension])
    assert extension.extra_compile_args[:3] == ["-O3", "-g1", "-fvisibility=hidden"]
    assert (extension.extra_compile_args[3:] == ["-g0"]) is without
    if sys.platform == "linux":
        assert (extension.extra_link_args == ["-s"]) is without
