"""What holds of every lab: its text, its hints, its starter, its reference solution."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest
from labs import assert_passed_by_its_reference_alone

from lsmkv.course.lab import Lab
from lsmkv.course.labs.registry import CAPSTONE, LABS

DOCS = Path(__file__).parents[2] / "docs"

every_lab = pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.slug)


@every_lab
def test_hints_are_shown_one_by_one(lab: Lab) -> None:
    hints = lab.hints()
    assert len(hints) >= 3
    assert len(hints) == lab.text().count("<details")
    for number, hint in enumerate(hints, 1):
        assert hint.startswith(f"Hint {number}: ")
        assert hint.partition(": ")[2] not in lab.text_without_hints()
    assert "## Hints" not in lab.text_without_hints()
    assert "## To think about\n\n- " in lab.text_without_hints()


@every_lab
def test_the_text_names_what_there_is(lab: Lab) -> None:
    text = lab.text()
    assert text.startswith(f"# Lab {lab.number}: ")
    for check in lab.checks:
        assert f"| {check.name} |" in text
    for function in lab.functions:
        assert f"`{function}(" in text or f"`{function}`" in text


@every_lab
def test_the_text_shows_the_bytes(lab: Lab) -> None:
    assert f"```text\n{lab.drawing()}```" in lab.text()


@every_lab
def test_the_reference_passes_and_the_starter_does_not(lab: Lab) -> None:
    assert_passed_by_its_reference_alone(lab)


@every_lab
def test_the_text_is_the_page_of_the_site(lab: Lab) -> None:
    page = DOCS / "course" / f"{lab.number:02d}-{lab.slug}.md"
    assert page.read_text(encoding="utf-8") == lab.text()
    for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", lab.text()):
        assert (DOCS / "course" / picture).is_file()


@every_lab
def test_the_picture_is_what_the_script_draws(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = DOCS / "pictures"
    monkeypatch.syspath_prepend(str(pictures))
    drawn = runpy.run_path(str(pictures / "course.py"))["draw"](lab.slug)
    assert (pictures / "course" / f"{lab.slug}.svg").read_text(encoding="utf-8") == drawn


@every_lab
def test_the_starter_has_the_functions_typed_and_explained(lab: Lab) -> None:
    tree = ast.parse(lab.starter())
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert tuple(functions) == lab.functions
    for function in functions.values():
        assert ast.get_docstring(function)
        assert function.returns is not None
        assert all(argument.annotation is not None for argument in function.args.args)


def test_labs_are_in_order_and_on_the_page_of_the_course() -> None:
    numbers = [lab.number for lab in LABS]
    assert numbers == sorted(set(numbers))
    page = (DOCS / "course" / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\[Lab (\d+): ([^]]+)\]\((\d\d-\w+\.md)\)", page)
    assert links == [
        (str(lab.number), lab.title, f"{lab.number:02d}-{lab.slug}.md") for lab in (*LABS, CAPSTONE)
    ]
