"""The tour's files, and what a store enters beside them: ``tests/tour.txt``.

:func:`trace_store` runs a store and says which functions its operations enter.  Each of them is in
the lines that a reader of the tour reads (:func:`tour_files`), or in the list, under a sentence
that says why the tour leaves it out.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import NamedTuple

from lsmkv.testing.interpreted import run_interpreted

ROOT = Path(__file__).resolve().parents[2]
TOUR = ROOT / "docs" / "tour.md"
LISTED = ROOT / "tests" / "tour.txt"

BEYOND = "# Beyond the tour"
NO_SENTENCE = "Why not?"
"""What :func:`adapted` writes above the names that nobody has explained yet."""

Modules = dict[str, dict[str, str]]
"""For each module, the functions in it, and the sentence over each."""


class Traced(NamedTuple):
    """What a run has entered."""

    entered: dict[str, set[tuple[str, str, int]]]
    """For each operation: module, name and first line of each function."""
    unlike: list[str]
    """Why the list does not hold on this machine: empty where it does."""

    def figures(self) -> list[str]:
        """How much each operation enters."""
        return [
            f"{operation}: {len(functions)} functions in {len({row[0] for row in functions})} files"
            for operation, functions in self.entered.items()
        ]


def trace_store(path: Path) -> Traced:
    """Run a store in a new directory, in a child that interprets the engine."""
    answer = run_interpreted("traced_store", str(path))
    entered = {
        operation: {(module, name, line) for module, name, line in functions}
        for operation, functions in answer["entered"].items()
    }
    return Traced(entered, answer["unlike"])


# The files of the tour


def tour_section() -> str:
    """The tour's section on the files to read."""
    page = TOUR.read_text(encoding="utf-8")
    return page.partition("## The tree in ")[2].partition("\n## ")[0]


def tour_files() -> list[str]:
    """The files of its table, in their order."""
    return re.findall(r"^\| \d+ \| `([\w/.]+)`", tour_section(), re.MULTILINE)


def lines_to_read(source: str) -> list[str]:
    """The lines of a file up to the comment that ends its part of the tour."""
    lines = source.splitlines()
    ends = [at for at, line in enumerate(lines) if line.strip().startswith(BEYOND)]
    assert len(ends) <= 1
    return lines[: ends[0]] if ends else lines


def off_the_tour(traced: Traced) -> dict[str, set[str]]:
    """By module, the functions that were entered and are not in the lines that a reader reads."""
    read = {
        name: len(lines_to_read((ROOT / name).read_text(encoding="utf-8"))) for name in tour_files()
    }
    found: dict[str, set[str]] = {}
    for functions in traced.entered.values():
        for module, name, line in functions:
            if line > read.get(module, 0):
                found.setdefault(module, set()).add(name)
    return found


# The list


def read_list(text: str) -> Modules:
    """The list: modules, under each its sentences, and under each names in lines with ``|``."""
    modules: Modules = {}
    functions: dict[str, str] = {}
    sentence = ""
    names_before = False
    for line in text.splitlines():
        if line.startswith("lsmkv/"):
            functions = modules[line] = {}
            sentence = ""
        elif line.startswith("  |"):
            for name in line[3:].split():
                assert name not in functions, f"{name} stands twice"
                functions[name] = sentence
        elif line.startswith("  "):
            sentence = line.strip() if names_before else f"{sentence} {line.strip()}".strip()
        names_before = line.startswith("  |")
    return modules


def head_of(text: str) -> str:
    """The comment at its head."""
    return "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))


def written(head: str, figures: list[str], modules: Modules) -> str:
    """The text of a list; ``read_list`` reads it."""
    lines = [head + "\n" + "\n".join(figures)]
    for module, functions in sorted(modules.items()):
        lines.append(f"\n{module}")
        for sentence in dict.fromkeys(functions.values()):
            names = sorted(name for name in functions if functions[name] == sentence)
            lines.append(textwrap.fill(sentence, 110, initial_indent="  ", subsequent_indent="  "))
            lines.append(
                textwrap.fill(" ".join(names), 110, initial_indent="  | ", subsequent_indent="  | ")
            )
    return "\n".join(lines) + "\n"


def adapted(modules: Modules, entered: dict[str, set[str]]) -> Modules:
    """The list without what is no longer entered, and with what is new.

    What is new gets the sentence of its module, if there is just one; else that of a function of
    its name that is gone from another module.
    """
    found: Modules = {}
    gone = {
        name: sentence
        for module, functions in modules.items()
        for name, sentence in functions.items()
        if name not in entered.get(module, set())
    }
    for module, names in entered.items():
        before = modules.get(module, {})
        sentences = set(before.values())
        usual = sentences.pop() if len(sentences) == 1 else None
        found[module] = {
            name: before.get(name) or usual or gone.get(name, NO_SENTENCE) for name in sorted(names)
        }
    return found


def differences(modules: Modules, entered: dict[str, set[str]]) -> list[str]:
    """What is new on the path, and what is listed and no longer entered; a line for each module."""
    lines = []
    for module in sorted(modules.keys() | entered.keys()):
        listed = modules.get(module, {}).keys()
        names = entered.get(module, set())
        if names - listed:
            lines.append(f"new on the path: {module}: {' '.join(sorted(names - listed))}")
        if listed - names:
            lines.append(f"no longer entered: {module}: {' '.join(sorted(listed - names))}")
    return lines
