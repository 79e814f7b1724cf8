"""docs/guides/queues.md: each library's program is run as the page says, on a running server.

A library that is not installed is left out; ``make test-queues`` installs all of them.
"""

from __future__ import annotations

import configparser
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from documents import ROOT, parsed_command, section
from processes import ENVIRON, run_python

from lsmkv.testing import serving

PAGE = (ROOT / "docs" / "guides" / "queues.md").read_text(encoding="utf-8")
MODULES = {
    "celery": "celery",
    "rq": "rq.cli",
    "dramatiq": "dramatiq",
    "huey_consumer": "huey.bin.huey_consumer",
}
"""The module behind each command that starts a worker."""


def blocks(heading: str, language: str, port: int) -> list[str]:
    """The fences of a section, with another port."""
    found = re.findall(rf"(?ms)^```{language}\n(.*?)^```", section(PAGE, heading))
    return [block.replace("6379", str(port)) for block in found]


@contextmanager
def worker(command: str, directory: Path) -> Iterator[None]:
    """A worker, started by its command and ended as a user does."""
    name, *options = shlex.split(command.removeprefix("$ "))
    with (directory / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", MODULES[name], *options],
            cwd=directory,
            env=with_tasks(directory),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(60)
        finally:
            process.kill()
            process.wait()


def with_tasks(directory: Path) -> dict[str, str]:
    """The environment in which the page's modules can be imported."""
    path = os.pathsep.join((str(directory), ENVIRON["PYTHONPATH"]))
    environment = ENVIRON | {"PYTHONPATH": path}
    if (directory / "settings.py").exists():
        environment["DJANGO_SETTINGS_MODULE"] = "settings"
    return environment


@pytest.mark.parametrize("library", ["Celery", "RQ", "Dramatiq", "Huey", "Django"])
def test_the_program_of_a_library_does_its_job(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library.lower())
    pytest.importorskip("redis")
    pytest.importorskip("hiredis")
    with serving(tmp_path / "queue") as server:
        module, program = blocks(library, "py", server.port)
        name = module.splitlines()[0].removeprefix("# ")
        (tmp_path / name).write_text(module, encoding="utf-8")
        (tmp_path / "program.py").write_text(program, encoding="utf-8")
        _, *commands = blocks(library, "console", server.port)
        environment = with_tasks(tmp_path)
        if commands:
            with worker(commands[0], tmp_path):
                done = run_python("program.py", cwd=tmp_path, env=environment, timeout=120)
        else:
            done = run_python("program.py", cwd=tmp_path, env=environment, timeout=120)
    assert (done.stdout, done.stderr) == ("5\n", "")


def test_the_unit_starts_the_server_in_its_directory() -> None:
    (text, _) = re.findall(r"(?ms)^```ini\n(.*?)^```", PAGE)
    unit = configparser.ConfigParser()
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    program, *words = shlex.split(unit["Service"]["ExecStart"])
    assert program.endswith("/lsmkv")
    assert words[1].startswith(f"/var/lib/{unit['Service']['StateDirectory']}/")
    parsed_command(words)


def test_a_worker_of_rq_is_started_again() -> None:
    (text,) = blocks("RQ", "ini", 6379)
    unit = configparser.ConfigParser()
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    assert unit["Service"]["Restart"] == "always"
    command = re.findall(r"(?m)^\$ (rq worker .*)$", section(PAGE, "RQ"))[0]
    assert unit["Service"]["ExecStart"].endswith(f"/{command}")
