"""Runs suites in WebAssembly: ``run.py [ARGUMENT...]``, with Pyodide in node.

Pyodide comes from npm, wheels for its platform from the package index; both are kept in
``build/wasm``.  The arguments are pytest's; without any, the suites of what a store is made of run,
and those of opening, reading and compacting it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "wasm"
PYODIDE = "314.0.7"
PLATFORM = "pyemscripten_2026_0_wasm32"
PYTHON = "3.14"
PACKAGES = ("cramjam", "librt", "mypy-extensions", "sortedcontainers", "xxhash")
"""What lsmkv needs there."""
TOOLS = ("hypothesis", "pytest", "typer")
SUITES = ("tests/format", "tests/filter", "tests/table", "tests/wasm", "-m", "not long")


def found(program: str) -> str:
    """The path of node or npm, which may be installed beside this interpreter."""
    places = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    path = shutil.which(program, path=places)
    if path is None:
        raise SystemExit(f"{program} is not installed")
    return path


def prepare() -> Path:
    """Fetch what is missing; returns where the wheels are."""
    npm = found("npm")
    wheels = FOLDER / f"wheels-{PYODIDE}"
    if not (FOLDER / "node_modules" / "pyodide").is_dir():
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / "package.json").write_text('{"private": true}\n', encoding="utf-8")
        arguments = ["install", "--silent", "--prefix", str(FOLDER), f"pyodide@{PYODIDE}"]
        subprocess.run([npm, *arguments], check=True, timeout=600)
    if not wheels.is_dir():
        made = wheels.with_suffix(".new")
        shutil.rmtree(made, ignore_errors=True)
        platforms = [f"--platform={name}" for name in (PLATFORM, "any")]
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:"),
                *(*platforms, f"--python-version={PYTHON}", "--implementation=cp"),
                *(f"--dest={made}", *PACKAGES, *TOOLS),
            ],
            check=True,
            timeout=600,
        )
        made.rename(wheels)
    return wheels


def main() -> int:
    """pytest's exit code."""
    wheels = prepare()
    words = sys.argv[1:] or list(SUITES)
    script = Path(__file__).with_name("suite.mjs")
    command = [found("node"), str(script), str(FOLDER), str(wheels), str(ROOT), *words]
    return subprocess.run(command, check=False, timeout=3600).returncode


if __name__ == "__main__":
    sys.exit(main())
