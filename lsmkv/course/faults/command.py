"""``lsmkv course fault``: find what is wrong with code that one cannot read."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import Annotated

import typer

from lsmkv.course.faults.asking import ask, shorter
from lsmkv.course.faults.finding import Finding, file_name, finding_in
from lsmkv.course.faults.registry import SUBJECTS, traces_of
from lsmkv.course.lab import Lab
from lsmkv.course.labs.registry import find
from lsmkv.course.predict.keeping import owner_of
from lsmkv.course.seeds import mark_of, seed_of
from lsmkv.tools.console import MISS, guarded, write_line
from lsmkv.tools.text import count, printable

DIRECTORY = "faults"
"""The folder of what the broken code has left, in a student's."""


@guarded
def fault(
    lab_name: Annotated[
        str, typer.Argument(metavar="LAB", help="The lab's number or short name: 4 or bloom.")
    ],
    call: Annotated[
        str | None,
        typer.Argument(metavar="[CALL]", help="Ask the broken code: \"bloom_hash(b'ant')\"."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Find the fault: a broken variant of a lab's code, which is yours alone.

    It writes files and answers into 'faults'. 'lsmkv dump' and 'lsmkv inspect' show what is wrong
    with the files. Ask the variant anything. Then write the smallest call that shows the
    fault into 'fault4.txt' (the number is that of the lab), and below it, after a '#', what the
    code does wrong. The same command then says whether the call shows it, and how large it is.

    JSON: "lab", "mark", "functions", "files", and "answer" to the call, or, for the file, "call",
    "sentence", "is_found", "size", "least" and "message".
    """
    lab = find(lab_name)
    owner = owner_of(".")
    seed = seed_of(owner.student)
    if call is not None:
        answer = shorter(ask(lab, seed, call).broken)
        write_line(json.dumps({"lab": lab.number, "answer": answer}) if as_json else answer)
        return
    os.makedirs(DIRECTORY, exist_ok=True)
    paths: list[str] = []
    for name, content in traces_of(lab, seed).items():
        paths.append(os.path.join(DIRECTORY, name))
        with open(paths[-1], "wb") as file:
            file.write(content)
    found = finding_in(".", lab, seed)
    if as_json:
        functions = dict(SUBJECTS[lab.slug].calls)
        said = {"lab": lab.number, "mark": mark_of(seed), "functions": functions, "files": paths}
        write_line(json.dumps(said | ({} if found is None else asdict(found))))
    else:
        _print(lab, seed, paths, found)
    if found is not None and not found.is_found:
        raise typer.Exit(MISS)


def _print(lab: Lab, seed: int, paths: list[str], found: Finding | None) -> None:
    if found is not None:
        write_line(f"{file_name(lab)}: {printable(found.call)}")
        write_line(found.message)
        if found.is_found and not found.sentence:
            write_line("Say what the code does wrong, in a line that begins with '#'.")
        return
    mark = mark_of(seed)
    write_line(f"Lab {lab.number}: {lab.title}. This code is broken where a key has {mark!r}:")
    for name, arguments in SUBJECTS[lab.slug].calls.items():
        write_line(f"  {name}({arguments})")
    write_line(f"It has left {count(len(paths), 'file')}:")
    for path in paths:
        how = "read it" if path.endswith(".txt") else f"lsmkv dump {path}"
        write_line(f"  {path}: {how}")
    write_line(f'Ask it: lsmkv course fault {lab.number} "CALL"')
    write_line(f"Write the smallest call that shows the fault into {file_name(lab)}, and then")
    write_line("'# ' and a sentence: what does the code do wrong?")
