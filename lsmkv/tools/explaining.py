"""``lsmkv explain``: the steps of a Get, as a tree on a terminal and as text elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from rich.text import Text
from rich.tree import Tree

from lsmkv.engine.util.outline import Line, Tone
from lsmkv.shards import ShardExplanation
from lsmkv.tools.arguments import Key, Stored, open_stored
from lsmkv.tools.console import MISS, guarded, stdout_is_terminal, write_json, write_line
from lsmkv.tools.drawing import stdout_console
from lsmkv.tools.options import flag
from lsmkv.tools.text import from_argument, wrap

STYLES: dict[Tone, str] = {
    "plain": "",
    "quiet": "dim",
    "saved": "green",
    "read": "yellow",
    "wasted": "red",
}
"""The colors of the tones: what a filter saved, what is read, and what is a wasted read."""

_GUIDE = 4  # columns of a tree's lines, for each depth
_NARROWEST = 20


@guarded
def explain(
    directory: Stored,
    key: Key,
    is_hex: bool = flag("KEY is in hexadecimal.", "--hex"),
    as_json: bool = flag("The steps as JSON.", "--json"),
) -> None:
    """Print how a Get of KEY goes, step by step; exit with 1 if KEY is not there.

    The steps are every memtable, table, filter and data block that it meets, and what it would have
    read without filters. On a terminal, what a filter saves is green, a block that is read is
    yellow, and one whose read is wasted is red. Nothing is written, and no lock is taken. In a
    shard set, each block read is a request, and the number of requests saved is printed.

    JSON: the fields of lsmkv.Explanation, with keys as escaped text; of a shard set
    "version", "shard", "path", "requests", "requests_without_filters", "requests_saved", and these
    fields in "steps".
    """
    name = from_argument(key, is_hex)
    with open_stored(directory) as db:
        explanation = db.explain(name)
    if as_json:
        write_json(explanation.to_dict(), indent=2)
    elif stdout_is_terminal():
        console = stdout_console()
        console.print(tree(explanation.outline(), console.width))
    else:
        write_line(str(explanation))
    steps = explanation.steps if isinstance(explanation, ShardExplanation) else explanation
    if steps is None or not steps.found:
        raise typer.Exit(MISS)


def tree(lines: Sequence[Line], width: int) -> Tree:
    """An outline, which begins with its one heading, as a tree for a terminal of a width.

    Lines are broken here: a figure stays with its unit.
    """
    heading, *rest = lines
    root = Tree(_broken(heading, width, "bold"), guide_style=STYLES["quiet"])
    branches = [root]
    for line in rest:
        del branches[line.depth :]
        branches.append(branches[-1].add(_broken(line, width, STYLES[line.tone])))
    return root


def _broken(line: Line, width: int, style: str) -> Text:
    room = max(_NARROWEST, width - _GUIDE * line.depth)
    return Text("\n".join(wrap(line.text, room)), style=style)
