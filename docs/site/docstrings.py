"""A griffe extension: docstrings, plain text with a little reStructuredText, become Markdown.

What lsmkv's docstrings use is known and little: double backticks, roles (``:class:`DB```),
doctests, literal blocks after ``::``, and simple tables.  Roles become links to the reference,
where it has the thing; doctests become code blocks.
"""

from __future__ import annotations

import html
import re
import textwrap
from pathlib import Path
from typing import Any

import griffe

try:
    from symbols import Symbols
except ImportError:  # griffe loads this file by its path
    import sys

    sys.path.insert(0, str(Path(__file__).parent))
    from symbols import Symbols

ROOT = Path(__file__).resolve().parents[2]
_ROLE = re.compile(r":(?:class|meth|func|data|attr|mod):`(?:([^`<]+) <([^`>]+)>|([^`]+))`")
_LITERAL = re.compile(r"``(.+?)``", re.DOTALL)
_RULE = re.compile(r"=+(?:  ?=+)+ *")


class DocstringExtension(griffe.Extension):
    """Rewrites each docstring as griffe meets it."""

    def __init__(self) -> None:
        super().__init__()
        self._symbols = Symbols()
        self._symbols.read(ROOT, "lsmkv")

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite an object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value, obj.path, self._symbols)


def to_markdown(text: str, near: str, symbols: Symbols) -> str:
    """A docstring of the object ``near``, as Markdown."""
    lines = text.expandtabs().splitlines()
    parts: list[str] = []
    prose: list[str] = []

    def end_prose() -> None:
        if prose:
            parts.append(inline("\n".join(prose), near, symbols))
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
            parts.append(inline(table(block), near, symbols))
        elif line.rstrip().endswith("::") and not line.rstrip().endswith(" ::"):
            prose.append(line.rstrip()[:-1])
            end_prose()
            block, at = _indented(lines, at + 1, len(line) - len(line.lstrip()))
            parts.append(fenced("text", block))
        else:
            prose.append(line)
            at += 1
    end_prose()
    return "\n".join(parts)


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


def table(block: list[str]) -> str:
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
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return "\n".join(["", row(head), "|" + "---|" * len(starts), *map(row, rows), ""])


def literal(quoted: str) -> str:
    """What stands between double backticks.  The name of a page is a link to it."""
    code = f"<code>{html.escape(' '.join(quoted.split()))}</code>"
    page = re.fullmatch(r"docs/([\w/]+)\.md", quoted)
    if page is None or not (ROOT / quoted).is_file():
        return code
    # The reference, which shows all docstrings, lies one folder below the other pages.
    return f'<a href="../{page[1]}.html">{code}</a>'


def inline(text: str, near: str, symbols: Symbols) -> str:
    """Roles as links, and double backticks as single ones; other ``<`` are no tags."""

    def link(found: re.Match[str]) -> str:
        shown, target = (found[1], found[2]) if found[1] else (found[3], found[3])
        if found[1] is None:
            short = target.startswith("~")
            target = target.lstrip("~")
            shown = target.rpartition(".")[2] if short else target
        symbol = symbols.find(target, near)
        code = f"<code>{html.escape(shown)}</code>"
        if symbol is None:
            return code
        return f'<autoref identifier="{symbol.path}" optional>{code}</autoref>'

    kept: list[str] = []

    def keep(made: str) -> str:
        kept.append(made)
        return f"\x00{len(kept) - 1}\x00"

    text = _ROLE.sub(lambda found: keep(link(found)), text)
    text = _LITERAL.sub(lambda found: keep(literal(found[1])), text)
    text = text.replace("<", "&lt;")
    return re.sub(r"\x00(\d+)\x00", lambda found: kept[int(found[1])], text)
