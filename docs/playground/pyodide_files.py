"""What lsmkv needs in WebAssembly: Pyodide from npm, and wheels for its platform.

The playground is built from these files, and ``tests/wasm`` runs suites with them.  Both are kept
in ``build/wasm``, so that they are fetched once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "wasm"
PYODIDE = "314.0.7"
PLATFORM = "pyemscripten_2026_0_wasm32"
PYTHON = "3.14"
PACKAGES = ("cramjam", "librt", "mypy-extensions", "sortedcontainers", "xxhash")
"""The packages that lsmkv needs there."""


EDITOR = {
    "esbuild": "0.28.2",
    "@codemirror/commands": "6.11.1",
    "@codemirror/lang-python": "6.2.1",
    "@codemirror/language": "6.13.1",
    "@codemirror/state": "6.7.6",
    "@codemirror/view": "6.43.15",
    "@lezer/highlight": "1.2.5",
}
"""The packages from npm that the course's editor is made of, and what bundles them."""


def found(program: str) -> str:
    """The path of node or npm, which may be installed beside this interpreter."""
    places = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    path = shutil.which(program, path=places)
    if path is None:
        raise SystemExit(f"{program} is not installed")
    return path


def pyodide() -> Path:
    """The directory of Pyodide's npm package, which is fetched if it is missing."""
    place = FOLDER / "node_modules" / "pyodide"
    if not place.is_dir():
        npm = found("npm")
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / "package.json").write_text('{"private": true}\n', encoding="utf-8")
        arguments = ["install", "--silent", "--prefix", str(FOLDER), f"pyodide@{PYODIDE}"]
        subprocess.run([npm, *arguments], check=True, timeout=600)
    return place


def editor_packages() -> Path:
    """A directory with the packages of the editor, which are fetched if they are missing."""
    place = FOLDER / "editor-6.43.15"
    if not (place / "node_modules").is_dir():
        made = place.with_suffix(".new")
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        (made / "package.json").write_text('{"private": true}\n', encoding="utf-8")
        packages = [f"{name}@{version}" for name, version in EDITOR.items()]
        arguments = ["install", "--silent", "--prefix", str(made), *packages]
        subprocess.run([found("npm"), *arguments], check=True, timeout=600)
        made.rename(place)
    return place


def wheels(name: str, packages: Sequence[str]) -> Path:
    """A directory of wheels of these packages and what they require, fetched if it is missing.

    ``name`` is that of the directory below ``build/wasm``.
    """
    place = FOLDER / f"{name}-{PYODIDE}"
    if not place.is_dir():
        made = place.with_suffix(".new")
        shutil.rmtree(made, ignore_errors=True)
        platforms = [f"--platform={one}" for one in (PLATFORM, "any")]
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:"),
                *(*platforms, f"--python-version={PYTHON}", "--implementation=cp"),
                *(f"--dest={made}", *packages),
            ],
            check=True,
            timeout=600,
        )
        made.rename(place)
    return place
