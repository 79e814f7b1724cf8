"""The part of a page that stands between two marks, and is measured by a program of this folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from lsmkv.tools.output import open_output

BEGIN, END = "<!-- measured -->", "<!-- end measured -->"


def with_measured(text: str, made: str) -> str:
    """The page with a new part; ``ValueError`` if it has no one place for it."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"the page must have one place for its tables: {BEGIN} and {END}, once")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{made}\n{END}{rest.partition(END)[2]}"


def write_measured(page: Path, made: str) -> None:
    """Write the new part into the page."""
    text = with_measured(page.read_text(encoding="utf-8"), made)
    with open_output(str(page), force=True) as out:
        out.write(text.encode())


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: bool = False) -> str:
    """A table in Markdown; with ``numbers`` all columns but the first are aligned as such."""
    kinds = ["---", *["--:" if numbers else "---"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, kinds, *rows))
