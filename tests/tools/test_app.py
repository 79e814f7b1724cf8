"""The ``lsmkv`` command as a whole: its groups, its help, and what a call imports."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from commands import lsm_bytes as lsm
from processes import run_python
from started import ENVIRONMENT, NAMES, start

from lsmkv.tools.app import GROUPS
from lsmkv.tools.doctor.engine import version_text


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(option: str) -> None:
    with start(option, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as done:
        out, _ = done.communicate()
    assert out.decode() == f"{version_text()}\n"
    assert done.returncode == 0


def test_help_shows_the_commands_in_groups() -> None:
    found: dict[str, list[str]] = {}
    for line in lsm("--help").out.decode().splitlines():
        if line.startswith("╭─ "):
            group = line.split()[1]
            found[group] = []
        elif name := re.match("│ ([a-z][a-z-]+) ", line):
            found[group].append(name[1])
    first_words = {
        group: list(dict.fromkeys(name.split()[0] for name in members))
        for group, members in GROUPS.items()
    }
    assert found == {"Options": []} | first_words


def test_help_of_a_command_with_commands_shows_them() -> None:
    help_text = lsm("bulk", "--help").out.decode()
    assert re.findall("│ ([a-z]+) ", help_text) == ["build", "list", "prune", "diff"]
    help_text = lsm("course", "--help").out.decode()
    names = [name.split()[1] for name in GROUPS["Learn"] if name.startswith("course ")]
    assert len(names) > 6
    assert re.findall("│ ([a-z]+) ", help_text) == names


def completed(*words: str) -> list[str]:
    """What bash offers for the last word."""
    program = "import sys; sys.argv[0] = 'lsmkv'; from lsmkv.tools.cli import main; main()"
    asked = {
        "_LSMKV_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["lsmkv", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = run_python("-c", program, text=False, env=ENVIRONMENT | asked, check=True)
    return done.stdout.decode().split()


def test_shell_completion_of_commands_and_options() -> None:
    assert sorted(completed("ex")) == ["explain", "export"]
    assert completed("demo", "--layout", "b") == ["block", "both", "block64"]
    assert "--prefix" in completed("count", "--")


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help(name: str) -> None:
    done = lsm(*name.split(), "--help")
    assert done.status == 0
    assert name in done.out.decode()
    *above, own = name.split()
    assert own in lsm(*above, "--help").out.decode()


def test_a_command_imports_its_own_modules_only(store: Path) -> None:
    program = (
        "import sys\n"
        "from lsmkv.tools.cli import main\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    print(*sys.modules)\n"
    )
    done = run_python("-c", program, "get", store, "a", text=False, env=ENVIRONMENT, check=True)
    value, modules = done.stdout.decode().splitlines()
    assert value == "café"
    imported = set(modules.split())
    assert {"typer", "lsmkv.tools.commands"} < imported
    others = {
        "rich",
        "textual",
        "starlette",
        "asyncio",
        "sqlite3",
        "lsmkv.shards",
        "lsmkv.files.repair",
    }
    assert not imported & others
    tools = {name.split(".")[2] for name in imported if name.startswith("lsmkv.tools.")}
    own = {"app", "arguments", "cli", "commands", "console", "next_step", "options"}
    own |= {"signals", "text"}
    assert tools == own


def test_an_unknown_command_is_met_with_its_neighbors() -> None:
    done = lsm("bulk", "lst")
    assert done.status == 2
    assert "Did you mean 'list'?" in done.err
    assert "No such command 'bulk list'" in lsm("bulk list").err
