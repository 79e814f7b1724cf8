"""``lsmkv course oral``: questions about a student's own code, with their answers.

One thing in one line is changed, and the lab's checks show what no longer holds.  A student who
wrote and understands the line can predict it.
"""

from __future__ import annotations

import ast
import copy
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Final

import typer

from lsmkv.course.command import LabName, Memory, Seconds
from lsmkv.course.lab import Lab
from lsmkv.course.labs.registry import find
from lsmkv.course.running import MEMORY_MIB, PASSED, SECONDS, STOPPED, Limits, Result, run_checks
from lsmkv.course.seeds import dice, seed_of
from lsmkv.course.submissions import labs_beside
from lsmkv.tools.console import guarded, write_line
from lsmkv.tools.text import printable

_COMPARED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COMPUTED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}


@dataclass(frozen=True)
class Change:
    """A line, and what would stand in its place."""

    line: int
    text: str
    changed: str
    source: str
    """The whole file with it."""


@dataclass(frozen=True)
class OralQuestion:
    """A question about one line."""

    line: int
    text: str
    changed: str
    fails: list[str]
    """The checks that fail with the change."""
    message: str
    """The message of the first of them."""


def changes_of(source: str) -> list[Change]:
    """All changes of one comparison, computation or number within functions, in order."""
    lines = source.splitlines()
    tree = ast.parse(source)
    found: list[Change] = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            for changed in _changed(node):
                change = _in_place(lines, node, changed)
                if change is not None:
                    found.append(change)
    unique = {(one.line, one.changed): one for one in found}
    return sorted(unique.values(), key=lambda one: (one.line, one.changed))


def _changed(node: ast.AST) -> Iterator[ast.expr]:
    """Other forms of an expression."""
    if isinstance(node, ast.Compare):
        other = copy.deepcopy(node)
        other.ops[0] = _COMPARED[type(node.ops[0])]()
        yield other
    elif isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
        binary = copy.deepcopy(node)
        binary.op = _COMPUTED[type(node.op)]()
        yield binary
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield ast.Constant(node.value + 1)


def _in_place(lines: Sequence[str], node: ast.AST, changed: ast.expr) -> Change | None:
    """The file with an expression that is on one line replaced."""
    assert isinstance(node, ast.expr)
    if node.end_lineno != node.lineno or node.end_col_offset is None:
        return None
    at = node.lineno - 1
    line = lines[at].encode()
    text = ast.unparse(ast.fix_missing_locations(changed))
    before, after = line[: node.col_offset], line[node.end_col_offset :]
    is_enclosed = before.endswith(b"(") and after.startswith(b")")
    if isinstance(node, (ast.BinOp, ast.Compare)) and not is_enclosed:
        text = f"({text})"
    new = (before + text.encode() + after).decode()
    source = "\n".join([*lines[:at], new, *lines[at + 1 :]]) + "\n"
    try:
        ast.parse(source)
    except SyntaxError:  # such as a number in an f-string
        return None
    return Change(node.lineno, lines[at].strip(), new.strip(), source)


def questions_about(
    lab: Lab, path: str, number: int, seed: str, limits: Limits
) -> list[OralQuestion]:
    """Questions about a file that passes checks: which fail if a line is changed?

    Changes are tried until ``number`` of them make a passing check fail, each in another line.
    Raises ``OSError`` if the file cannot be read, and ``ValueError`` if it is no Python, or passes
    no check.
    """
    with open(path, encoding="utf-8") as file:
        source = file.read()
    try:
        changes = changes_of(source)
    except SyntaxError as error:
        raise ValueError(f"{path} is no Python: {error.msg}, line {error.lineno}") from error
    before = [one.check for one in run_checks(lab, path, limits) if one.outcome == PASSED]
    if not before:
        raise ValueError(f"{path} passes no check, so there is nothing to break")
    dice(seed_of(seed), f"oral {lab.number}").shuffle(changes)
    found: list[OralQuestion] = []
    with tempfile.TemporaryDirectory(prefix="lsmkv-course-") as scratch:
        for other in labs_beside(path).values():
            shutil.copy(other, scratch)
        copied = os.path.join(scratch, os.path.basename(path))
        for change in changes:
            if len(found) == number:
                break
            if any(one.line == change.line for one in found):
                continue
            with open(copied, "w", encoding="utf-8") as out:
                out.write(change.source)
            failed = [
                one
                for one in _results_of(lab, copied, limits)
                if one.check in before and one.outcome != PASSED
            ]
            if failed:
                names = [one.check for one in failed]
                found.append(
                    OralQuestion(change.line, change.text, change.changed, names, failed[0].message)
                )
    return sorted(found, key=lambda one: one.line)


def _results_of(lab: Lab, path: str, limits: Limits) -> list[Result]:
    """The results of a changed file; none if it never ends, or ends its process."""
    found: list[Result] = []
    for result in run_checks(lab, path, limits):
        if result.outcome == STOPPED:
            return []
        found.append(result)
    return found


@guarded
def oral(
    lab_name: LabName,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The student's file.")],
    number: Annotated[
        int, typer.Option("--questions", min=1, metavar="N", help="How many questions.")
    ] = 3,
    seed: Annotated[
        str, typer.Option("--seed", metavar="TEXT", help="Any text: others choose other lines.")
    ] = "1",
    with_key: Annotated[
        bool, typer.Option("--key", help="Also print the answers: the checks that fail.")
    ] = False,
    seconds: Seconds = SECONDS,
    memory: Memory = MEMORY_MIB,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Print questions to ask a student about their own code: if this line were changed so, which
    check would fail, and why?

    Each question costs a run of the lab's checks, and some changes make nothing fail.

    JSON: a list of "line", "text", "changed", and with --key "fails" and "message".
    """
    lab = find(lab_name)
    limits = Limits(seconds, memory)
    found = questions_about(lab, os.path.abspath(file), number, seed, limits)
    if as_json:
        hidden = () if with_key else ("fails", "message")
        rows = [asdict(one) for one in found]
        write_line(json.dumps([{k: v for k, v in row.items() if k not in hidden} for row in rows]))
        return
    for at, one in enumerate(found, 1):
        write_line(f"{at}. Line {one.line} of your file is")
        write_line(f"       {printable(one.text)}")
        write_line("   Which check fails, and why, if it is")
        write_line(f"       {printable(one.changed)}")
        if with_key:
            write_line(f"   Answer: {', '.join(one.fails)}")
            for line in one.message.splitlines():
                write_line(f"       {printable(line)}")
