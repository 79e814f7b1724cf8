"""The examples in README.md and docs/ are run, and must print what they say they do.

Every fence in Python has prompts, so that it is run here.  What ``console`` fences show is run, and
its output compared, for docs/command.md and its reference (``tools/test_command_page.py``).  On
other pages such fences show commands for a shell; here those of ``lsmkv`` must be ones that it
takes.  They are not run, because they serve until they are ended (``serve``, ``inspect``, ``top``),
measure for minutes (``bench``), install something, or need a store of the reader's.
"""

from __future__ import annotations

import contextlib
import doctest
import re
import shlex
from pathlib import Path

import pytest
import typer
from documents import ROOT, generated_pages, parsed_command

PAGES = sorted(
    {ROOT / "README.md", *ROOT.glob("docs/**/*.md")} - {*generated_pages()},
)
"""The docstrings, of which the others are made, are run where they stand."""
NEEDED = {
    "migrating.md": ("lmdb", "rocksdict"),
    "monitoring.md": ("opentelemetry.sdk", "prometheus_client"),
    "serve.md": ("hiredis", "redis"),
}
"""Packages without which a page's examples are left out."""
FENCE = re.compile(r"(?ms)^[ \t]*```(\w*)[^\n]*\n(.*?)^[ \t]*```[ \t]*$")


class MarkdownParser(doctest.DocTestParser):
    """Knows that a code fence ends the output that an example expects."""

    def parse(
        self, string: str, name: str = "<string>"
    ) -> list[str | doctest.Example]:  # same lines, so that a failure names the right one
        return super().parse(re.sub(r"(?m)^[ \t]*```.*$", "", string), name)


def run(page: Path) -> doctest.TestResults:
    return doctest.testfile(
        str(page),
        module_relative=False,
        optionflags=doctest.ELLIPSIS,
        parser=MarkdownParser(),
        encoding="utf-8",
    )


def test_there_are_pages() -> None:
    assert ROOT / "docs" / "filters.md" in PAGES
    assert any(">>> " in page.read_text(encoding="utf-8") for page in PAGES)


def test_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    failed, attempted = run(ROOT / "README.md")
    assert failed == 0
    assert attempted > 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in NEEDED.get(page.name, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)  # examples may leave files behind
    result = run(page)
    assert result.failed == 0
    if re.search(r"(?m)^\s*>>> ", page.read_text(encoding="utf-8")):
        assert result.attempted > 0


def test_a_wrong_example_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "wrong.md"
    page.write_text("```python\n>>> 1 + 1\n2\n```\n\n```\n>>> 1 + 1\n3\n```\n", encoding="utf-8")
    assert run(page) == (1, 2)


def fences(text: str, language: str) -> list[str]:
    return [code for name, code in FENCE.findall(text) if name == language]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_all_python_is_run(page: Path) -> None:
    for code in fences(page.read_text(encoding="utf-8"), "python"):
        assert code.lstrip().startswith(">>> "), f"without prompts this is not run:\n{code}"


def lsmkv_commands(text: str) -> list[list[str]]:
    """The arguments of each call of lsmkv in the fences for a shell, up to a pipe."""
    found = []
    for code in fences(text, "console") + fences(text, "text"):
        for line in re.findall(r"(?m)^\$ (?:\S*/)?lsmkv (.*)$", code):
            words = shlex.split(line, comments=True)
            ends = [at for at, word in enumerate(words) if word in {"|", ">"}]
            found.append(words[: min(ends, default=None)])
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_are_ones_that_lsmkv_takes(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"(?m)^\$ cat (\w+\.conf)$", text):  # an option reads it at once
        (tmp_path / name).write_text("dir data\n")
    for words in lsmkv_commands(text):
        with contextlib.suppress(typer.Exit):  # --version and --help are done by then
            parsed_command(words)


def test_a_wrong_command_is_noticed() -> None:
    assert lsmkv_commands(
        "```console\n$ lsmkv get zoo ant | wc\nx\n$ bin/lsmkv stats zoo\n```\n"
    ) == [
        ["get", "zoo", "ant"],
        ["stats", "zoo"],
    ]
    for words in (["gett", "zoo", "ant"], ["get", "zoo"], ["get", "zoo", "ant", "--color"]):
        with pytest.raises(Exception, match=r"No such|Missing|gett|color"):
            parsed_command(words)
