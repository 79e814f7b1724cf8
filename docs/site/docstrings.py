"""Docstrings, plain text with a little reStructuredText, become Markdown.

What lsmkv's docstrings use is known and little: double backticks, roles (``:class:`DB```),
doctests, literal blocks after ``::``, and simple tables.  Roles become links to the reference,
where it has the thing; doctests become code blocks.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_ROLE = re.compile(r":(?:class|meth|func|data|attr|mod|exc):`(?:([^`<]+) <([^`>]+)>|([^`]+))`")
_LITERAL = re.compile(r"``(.+?)``", re.DOTALL)
_RULE = re.compile(r"=+(?:  ?=+)+ *")


def to_markdown(text: str, find: Callable[[str], str | None]) -> str:
    """A docstring as Markdown; ``find`` returns the address of a symbol, or None."""
    lines = text.expandtabs().splitlines()
    parts: list[str] = []
    prose: list[str] = []

    def end_prose() -> None:
        if prose:
            parts.append(inline("\n".join(prose), find))
            prose.clear()

    at = 0
    while at < len(lines):
        line = lines[at]
        if line.lstrip().startswith(">>> "):
            end_prose()
            block, at = _until_blank(lines, at)
            parts.append(fenced("pycon", _example(block)))
        elif _RULE.fullmatch(line.strip()) and line.strip().count("=") > 3:
            end_prose()
            block, at = _until_blank(lines, at)
            parts.append(table(block, find))
        elif line.rstrip().endswith("::") and not line.rstrip().endswith(" ::"):
            prose.append(line.rstrip()[:-1])
            end_prose()
            block, at = _indented(lines, at + 1, len(line) - len(line.lstrip()))
            parts.append(fenced("text", block))
        else:
            prose.append(line)
            at += 1
    end_prose()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).strip("\n")


def _until_blank(lines: list[str], at: int) -> tuple[list[str], int]:
    """The lines up to the next blank one, and where that is."""
    end = at
    while end < len(lines) and lines[end].strip():
        end += 1
    return lines[at:end], end


def _indented(lines: list[str], at: int, indent: int) -> tuple[list[str], int]:
    """The lines from ``at`` that are blank or indented deeper, and where they end."""
    end = at
    while end < len(lines) and (
        not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > indent
    ):
        end += 1
    return lines[at:end], end


def _example(block: list[str]) -> list[str]:
    """A doctest as a reader wants it: without directives."""
    lines = [re.sub(r"\s*# doctest: .*$", "", line) for line in block]
    return ["" if line.strip() == "<BLANKLINE>" else line for line in lines]


def fenced(language: str, block: list[str]) -> str:
    """A code block."""
    code = textwrap.dedent("\n".join(block)).strip("\n")
    return f"\n```{language}\n{code}\n```\n"


def table(block: list[str], find: Callable[[str], str | None]) -> str:
    """A simple table of reStructuredText, as one of Markdown; the first row may be its head."""
    rule = block[0]
    starts = [found.start() for found in re.finditer(r"=+", rule)]
    ends = [*starts[1:], None]
    rows: list[list[str]] = []
    head: list[str] | None = None
    for line in block[1:]:
        if set(line.strip()) <= {"=", " "}:
            if head is None and rows and line is not block[-1]:
                head = rows.pop()
            continue
        cells = [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]
        if not cells[0] and rows:
            rows[-1] = [f"{old} {new}".strip() for old, new in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    head = head or [""] * len(starts)

    def row(cells: list[str]) -> str:
        return "| " + " | ".join(inline(cell, find).replace("|", "\\|") for cell in cells) + " |"

    return "\n".join(["", row(head), "|" + "---|" * len(starts), *map(row, rows), ""])


def code(text: str) -> str:
    """Text in code style."""
    text = " ".join(text.split())
    if "`" not in text:
        return f"`{text}`"
    space = " " * (text[0] == "`" or text[-1] == "`")
    return f"``{space}{text}{space}``"


def literal(quoted: str) -> str:
    """What stands between double backticks.  The name of a page is a link to it."""
    page = re.fullmatch(r"docs/([\w/-]+\.md)(#[\w-]+)?", quoted)
    if page is None or not (ROOT / "docs" / page[1]).is_file():
        return code(quoted)
    # The reference, which shows all docstrings, lies one folder below the other pages.
    return f"[docs/{page[1]}](../{page[1]}{page[2] or ''})"


def inline(text: str, find: Callable[[str], str | None]) -> str:
    """Roles as links, and double backticks as single ones; other ``<`` are no tags."""

    def link(found: re.Match[str]) -> str:
        shown, target = (found[1], found[2]) if found[1] else (found[3], found[3])
        if found[1] is None:
            short = target.startswith("~")
            target = target.lstrip("~")
            shown = target.rpartition(".")[2] if short else target
        address = find(target)
        return f"[{code(shown)}]({address})" if address else code(shown)

    kept: list[str] = []

    def keep(made: str) -> str:
        kept.append(made)
        return f"\x00{len(kept) - 1}\x00"

    text = _ROLE.sub(lambda found: keep(link(found)), text)
    text = _LITERAL.sub(lambda found: keep(literal(found[1])), text)
    text = text.replace("<", "&lt;")
    text = re.sub(r"(?<=\w)\*\*(?=\w)", r"\\*\\*", text)  # a power
    return re.sub(r"\x00(\d+)\x00", lambda found: kept[int(found[1])], text)
