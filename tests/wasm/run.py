"""Runs suites in WebAssembly: ``run.py [ARGUMENT...]``, with Pyodide in node.

Pyodide comes from npm, wheels for its platform from the package index; both are kept in
``build/wasm``.  The arguments are pytest's; without any, the suites of what a store is made of run,
and those of opening, reading and compacting it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "playground"))
from pyodide_files import FOLDER, PACKAGES, found, pyodide, wheels  # noqa: E402

TOOLS = ("hypothesis", "pytest", "typer")
SUITES = (
    "tests/engine/format",
    "tests/engine/filter",
    "tests/engine/table",
    "tests/wasm",
    "-m",
    "not long",
)


def main() -> int:
    """pytest's exit code."""
    pyodide()
    needed = wheels("wheels", (*PACKAGES, *TOOLS))
    words = sys.argv[1:] or list(SUITES)
    script = Path(__file__).with_name("suite.mjs")
    command = [found("node"), str(script), str(FOLDER), str(needed), str(ROOT), *words]
    return subprocess.run(command, check=False, timeout=3600).returncode


if __name__ == "__main__":
    sys.exit(main())
