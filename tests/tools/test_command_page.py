"""docs/command.md and its reference: examples run one after the other, and print what is shown."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lsmkv.tools.app import GROUPS, app

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = DOCS / "reference" / "command.md"
BLOCK = re.compile(r"(?ms)^```console\n(.*?)^```$")
# Times, the names of builds, and whether this machine's file system lets logs be mapped.
VARYING = re.compile(
    r"\d+\.\d s\b|(?<=\"seconds\": )[\d.]+|(?m:(?<=^  log) +\w+$)"
    r"|\d{8}T\d{6}Z-[0-9a-f]{8}|\d{4}-\d\d-\d\d \d\d:\d\d"
)
NAMES = {name for members in GROUPS.values() for name in members}


def examples(text: str) -> list[tuple[str, str]]:
    """Each command of the page, and the output shown for it."""
    found: list[tuple[str, str]] = []
    for block in BLOCK.findall(text):
        for line in block.splitlines(keepends=True):
            if line.startswith("$ "):
                found.append((line[2:].rstrip("\n"), ""))
            else:
                found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def run(page: list[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """The examples whose output differs from the page: command, expected, got."""
    check = doctest.OutputChecker().check_output
    wrong: list[tuple[str, str, str]] = []
    status = 0
    for command, expected in page:
        if command == "echo $?":
            out, err = f"{status}\n", ""
        else:
            out, err, status = run_pipe(command)
        expected = VARYING.sub("T", expected)
        out, err = VARYING.sub("T", out), VARYING.sub("T", err)
        # A terminal may show the two streams in either order, since stdout is buffered.
        if not any(check(expected, one, doctest.ELLIPSIS) for one in (out + err, err + out)):
            wrong.append((command, expected, out + err))
    return wrong


def run_pipe(line: str) -> tuple[str, str, int]:
    """Run commands joined by pipes: stdout, stderr and exit status of the last one.

    The stderr of the earlier ones is left out.
    """
    data, err, status = b"", "", 0
    for command in line.split(" | "):
        name, *arguments = shlex.split(command)
        assert name == "lsmkv", line
        done = CliRunner().invoke(app, arguments, input=data)
        assert done.exception is None or isinstance(done.exception, SystemExit), line
        data, err, status = done.stdout_bytes, done.stderr, done.exit_code
    return data.decode(), err, status


@pytest.mark.parametrize(
    ("page", "least"),
    [(DOCS / "command.md", 12), (REFERENCE, 25)],
    ids=["page", "reference"],
)
def test_the_examples_print_what_is_shown(
    page: Path, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = examples(page.read_text(encoding="utf-8"))
    assert len(shown) > least
    assert run(shown) == []


def test_a_wrong_example_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = "```console\n$ lsmkv put --create zoo ant legs\n$ lsmkv get zoo ant\nwings\n```\n"
    assert run(examples(page)) == [("lsmkv get zoo ant", "wings\n", "legs\n")]


def test_every_command_is_in_the_reference() -> None:
    headings = re.findall(r"(?m)^## (.*)$", REFERENCE.read_text(encoding="utf-8"))
    shown = {name for heading in headings for name in heading.split(", ")}
    assert shown <= NAMES
    assert NAMES - shown <= {"dump", "verify", "repair"}


def test_the_page_names_every_command() -> None:
    table = (DOCS / "command.md").read_text(encoding="utf-8").partition("\n## ")[0]
    assert set(re.findall(r"`([a-z -]+)`", table)) >= NAMES
