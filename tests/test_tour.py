"""The tour, the glossary and docs/how name symbols of the source; every one must be there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from parsed import parsed
from toured import BEYOND, lines_to_read, tour_files, tour_section

ROOT = Path(__file__).resolve().parent.parent
PAGES = {page.stem: page for page in (ROOT / "docs" / "tour.md", ROOT / "docs" / "glossary.md")}
HOW = {f"how/{page.stem}": page for page in sorted((ROOT / "docs" / "how").glob("*.md"))}
# What is set in code style there but is no definition of the package.
NOT_SYMBOLS = {"CURRENT", "LOCK", "LOG", "False", "None"} | {
    # Python's, and mypyc's library.
    *("hiredis", "appendfsync always"),
    *("int", "threading", "i64", "u8", "librt", "BytesWriter", "vec", "Lock"),
    # Variables of examples, and options.
    *(
        "lsmkv.files",
        "lsmkv.testing",
        "lost/",
        "db.put",
        "db.sync",
        "True",
        "stats.stalls",
        "stats.slowdowns",
        "stats.write_amplification",
    ),
}


@cache
def defined_names() -> frozenset[str]:
    """Every class, function, method and field of the package; methods as Class.method too."""
    names: set[str] = set()
    classes: dict[str, list[ast.ClassDef]] = {}
    for path in (ROOT / "lsmkv").rglob("*.py"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                names.add(node.name)
                classes.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.FunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.Assign):
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
                names |= {one.attr for one in node.targets if isinstance(one, ast.Attribute)}
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
    for name in classes:
        names |= {f"{name}.{method}" for method in methods_of(name, classes)}
    return frozenset(names)


def methods_of(name: str, classes: dict[str, list[ast.ClassDef]]) -> set[str]:
    """The methods of a class of the package, inherited ones included."""
    methods: set[str] = set()
    for node in classes.get(name, []):
        methods |= {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id != name:
                methods |= methods_of(base.id, classes)
    return methods


@cache
def modules() -> frozenset[str]:
    return frozenset(path.name for path in (ROOT / "lsmkv").rglob("*.py"))


def quoted(page: Path) -> list[str]:
    """What a page sets in code style."""
    return sorted(set(re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8"))))


def is_there(name: str) -> bool:
    if name in NOT_SYMBOLS:
        return True
    if "/" in name:
        return (ROOT / name).exists() or (ROOT / "lsmkv" / name).exists()
    return name in (modules() if name.endswith(".py") else defined_names())


CASES = [(page, name) for page, path in (PAGES | HOW).items() for name in quoted(path)]


@pytest.mark.parametrize(
    ("page", "name"), [(page, name) for page, name in CASES if re.fullmatch(r"[\w./]+", name)]
)
def test_symbol_module_or_path_exists(page: str, name: str) -> None:
    assert is_there(name), f"docs/{page}.md names {name}, which is gone"


def test_what_is_gone_is_noticed() -> None:
    assert is_there("Table.get")
    assert is_there("lsmkv/engine/table")
    for name in ("Table.fetch", "Tabel", "lsmkv/tables", "sstable.py"):
        assert not is_there(name)


@pytest.mark.parametrize("page", PAGES)
def test_the_page_names_things(page: str) -> None:
    assert len(quoted(PAGES[page])) > 40


def test_the_pages_on_how_it_works_name_things() -> None:
    assert len(HOW) == 7
    assert sum(len(quoted(page)) for page in HOW.values()) > 40


# The tree in thirteen files

MOST_LINES = 2000
LABLESS = {"commit.py", "writer.py"}
"""Parts that no lab has a student write."""


def test_the_files_are_there_in_reading_order() -> None:
    assert PAGES["tour"].read_text(encoding="utf-8").index("## The tree in thirteen files") < 1000
    order = [
        *("keys", "log", "memtable", "commit", "writer", "block", "filter_block"),
        *("reader", "version", "reader", "flush", "compaction", "recovery"),
    ]
    assert [Path(name).stem for name in tour_files()] == order
    assert all((ROOT / name).is_file() for name in tour_files())


def without_fast_paths(lines: list[str]) -> list[str]:
    """The lines of a file that are no part of its contract's "Fast paths"."""
    text = "\n".join(lines)
    return re.sub(r'(?s)\n\nFast paths?[:,].*?(?=\n""")', "", text, count=1).splitlines()


def read_lines(name: str) -> list[str]:
    """The lines of one of the files that a reader reads."""
    return without_fast_paths(lines_to_read((ROOT / name).read_text(encoding="utf-8")))


def test_the_files_are_read_in_an_afternoon() -> None:
    lines = {name: read_lines(name) for name in tour_files()}
    total = sum(len(some) for some in lines.values())
    assert total <= MOST_LINES, (
        f"{total} lines; put something below the comment {BEYOND!r}:"
        f" { {name: len(some) for name, some in lines.items()} }"
    )
    assert (
        f"> **Three hours.** These thirteen files, in this order, about {round(total, -2):,} lines"
        in (tour_section())
    )
    assert not any(
        re.match(r"    # Fast paths: |# Fast paths: ", x) for y in lines.values() for x in y
    )


def test_every_file_has_its_lab() -> None:
    rows = re.findall(r"^\| \d+ \| .*$", tour_section(), re.MULTILINE)
    assert [int(row.split()[1]) for row in rows] == list(range(1, 14))
    for row in rows:
        labs = re.findall(r"\[(\d+)\]\((course/\d\d-\w+\.md)\)", row)
        file = re.findall(r"/(\w+\.py)`", row)[0]
        assert bool(labs) != (file in LABLESS), row
        assert all((ROOT / "docs" / page).is_file() for _, page in labs)


@pytest.mark.parametrize("name", tour_files())
def test_one_of_the_files_begins_with_its_contract_and_ends_in_fast_paths(name: str) -> None:
    source = (ROOT / name).read_text(encoding="utf-8")
    contract = ast.get_docstring(ast.parse(source))
    assert contract is not None
    assert len(contract.splitlines()) >= 3
    assert "Fast path" not in contract.splitlines()[0]
    # The comments that head a section of a class or of the module.
    sections = re.findall(r"^(?:    )?# (Beyond the tour|Fast paths): ", source, re.MULTILINE)
    assert sections == sorted(sections)
    without = re.search(r"No fast paths are in [^.]*\.(?:py[^.]*\.)*", tour_section())
    assert without is not None
    assert ("Fast paths" in sections) == (f"`{Path(name).name}`" not in without[0])
