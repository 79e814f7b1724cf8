"""Files of results, a row a line, and the pages of the documentation that quote them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

_DOCS = Path(__file__).parents[2] / "docs"
RELIABILITY = _DOCS / "reliability.md"
SIMULATIONS = _DOCS / "reference" / "simulations.md"


def read_rows(path: Path) -> list[list[str]]:
    """The cells of each row; none if there is no file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [line.split(" | ") for line in lines if not line.startswith("#")]


def write_rows(path: Path, head: str, rows: Iterable[Iterable[object]]) -> None:
    """Replace the file; ``head`` is in lines that begin with ``#``."""
    new = path.with_suffix(".new")
    text = "".join(f"{' | '.join(map(str, row))}\n" for row in rows)
    new.write_text(head + text, encoding="utf-8")
    new.replace(path)


def quoted(page: str, what: str, content: str) -> str:
    """The text of a page with other content between the comments that mark ``what``."""
    before, begin, rest = page.partition(f"<!-- {what} -->\n")
    _, end, after = rest.partition(f"<!-- end {what} -->\n")
    if not end:
        raise ValueError(f"the page has no place for the {what}")
    return f"{before}{begin}{content}{end}{after}"
