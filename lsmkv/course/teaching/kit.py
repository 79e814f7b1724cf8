"""``lsmkv course kit``: the files with which Gradescope and GitHub Classroom grade.

Both run without a network: they install from the given wheels.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Sequence
from typing import Annotated

import typer

from lsmkv.course.labs.registry import LABS, find
from lsmkv.tools.console import guarded, write_line

ZIP = "autograder.zip"
WORKFLOW = os.path.join(".github", "workflows", "classroom.yml")
WHEELS = "wheels"

_DATE = (2026, 1, 1, 0, 0, 0)
"""The date of the files in the archive, so that the same kit has the same bytes."""

_SETUP = """\
#!/usr/bin/env bash
# Gradescope runs this once, when it builds the container of the class.
set -euo pipefail
root="${{AUTOGRADER_ROOT:-/autograder}}"
python="${{PYTHON:-python3}}"
if "$python" -c 'import lsmkv, typer' 2>/dev/null; then
  exit 0
fi
if ! [ -d "$root/source/wheels" ]; then
  echo "The archive has no wheels: make it by lsmkv course kit DIR --wheels WHEELS" >&2
  exit 1
fi
"$python" -m pip install --no-index --find-links "$root/source/wheels" 'lsmkv[tools]'
"""

_RUN = """\
#!/usr/bin/env bash
# Gradescope runs this for each submission.
set -euo pipefail
root="${{AUTOGRADER_ROOT:-/autograder}}"
python="${{PYTHON:-python3}}"
mkdir -p "$root/results"
"$python" -m lsmkv course report "$root/submission" --format gradescope{labs} \\
  --output "$root/results/results.json"
"""

_CLASSROOM = """\
# GitHub Classroom runs this when a student pushes; a table of all checks is kept with the run.
name: labs
on: [push, workflow_dispatch]
permissions:
  contents: read
jobs:
  check:
    runs-on: ubuntu-latest
    timeout-minutes: 30
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - name: Install
        run: python3 -m pip install --no-index --find-links wheels 'lsmkv[tools]'
      - name: Grade
        run: |
          python3 -m lsmkv course report . --format junit{labs} --output report.xml
          python3 -m lsmkv course report . --format gradescope{labs} --output results.json
      - uses: actions/upload-artifact@v4
        if: always()
        with:
          name: report
          path: |
            report.xml
            results.json
"""


@guarded
def kit(
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="The folder; it is made if it does not exist.")
    ],
    labs: Annotated[
        str | None,
        typer.Option("--lab", metavar="LAB,...", help="Only these labs, such as 1,2 or bloom."),
    ] = None,
    wheels: Annotated[
        str | None,
        typer.Option(metavar="WHEELS", help="A folder of wheels, of lsmkv and its dependencies."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Write what Gradescope and GitHub Classroom need: an autograder, and a workflow.

    'autograder.zip' is uploaded to Gradescope as it is. '.github/workflows/classroom.yml' belongs
    into the repository from which GitHub Classroom makes those of the students. With --wheels, the
    archive has them, and can install lsmkv where it is missing; in the repository, put them into
    'wheels'. Files that are there are replaced.

    JSON: "path" and "files".
    """
    chosen = (
        "" if labs is None else ",".join(str(find(one.strip()).number) for one in labs.split(","))
    )
    found = wheels_in(wheels) if wheels is not None else []
    option = f" --lab {chosen}" if chosen else ""
    names = {"labs": option}
    os.makedirs(os.path.dirname(os.path.join(directory, WORKFLOW)), exist_ok=True)
    archive = os.path.join(directory, ZIP)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        _add(out, "setup.sh", _SETUP.format(**names).encode())
        _add(out, "run_autograder", _RUN.format(**names).encode())
        for path in found:
            with open(path, "rb") as file:
                _add(out, f"{WHEELS}/{os.path.basename(path)}", file.read())
    workflow = os.path.join(directory, WORKFLOW)
    with open(workflow, "w", encoding="utf-8") as text:
        text.write(_CLASSROOM.format(**names))
    if as_json:
        write_line(json.dumps({"path": directory, "files": [ZIP, WORKFLOW.replace(os.sep, "/")]}))
        return
    count = len(LABS) if labs is None else len(chosen.split(","))
    write_line(f"{archive}  for Gradescope, {count} labs, {len(found)} wheels")
    write_line(f"{workflow}  for GitHub Classroom")


def wheels_in(directory: str) -> Sequence[str]:
    """The paths of the wheels in a folder, sorted.  ``ValueError`` if lsmkv's is not there."""
    names = sorted(name for name in os.listdir(directory) if name.endswith(".whl"))
    if not any(name.startswith("lsmkv-") for name in names):
        raise ValueError(f"{directory} has no wheel of lsmkv")
    return [os.path.join(directory, name) for name in names]


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Add a file that all users may run."""
    info = zipfile.ZipInfo(name, _DATE)
    info.external_attr = 0o755 << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, content)
