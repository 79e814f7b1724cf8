"""What tests of pages, pictures and scripts share: sections, tables, texts, programs by path."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import typer
from typer.core import TyperGroup

from lsmkv.tools.app import app

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def generated_pages() -> list[Path]:
    """The pages of the reference that ``make reference`` writes from docstrings."""
    reference = ROOT / "docs" / "reference"
    return [reference / template.name for template in reference.glob("templates/*.md")]


def section(page: str, title: str) -> str:
    """A section of a page, without its heading."""
    return page.partition(f"# {title}\n")[2].partition("\n## ")[0].partition("\n### ")[0]


def table_rows(text: str) -> list[list[str]]:
    """The cells of each row of each table, heads left out."""
    tables = re.findall(r"(?m)^\|.*\|\n\|(?:[-:]+\|)+\n((?:\|.*\|(?:\n|\Z))+)", text)
    return [
        [cell.strip() for cell in row[1:-1].split("|")]
        for table in tables
        for row in table.splitlines()
    ]


def svg_texts(svg: str | bytes) -> list[str]:
    """The texts of a picture."""
    return [node.text or "" for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def load_script(path: Path) -> ModuleType:
    """A program that is in no package, as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parsed_command(words: list[str]) -> dict[str, Any]:
    """The arguments of a command line as lsmkv takes it; raises what it raises for a wrong one."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    with group.make_context("lsmkv", list(words)) as context:
        _, command, rest = group.resolve_command(context, [*words])
        assert command is not None
        return command.make_context(command.name, rest, parent=context).params
