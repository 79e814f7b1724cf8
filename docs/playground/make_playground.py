"""Builds the playground, a directory of static files: ``make_playground.py [DIRECTORY]``.

``make playground`` runs it.  It takes Pyodide's core from npm, wheels for its platform from the
package index, the pages of ``lsmkv/tools/playground/static``, the inspector's modules that these
pages import, and makes a wheel of lsmkv.  The default directory is ``build/playground``.

``files.json`` in that directory lists the files with their sizes; ``service-worker.js`` has the
same list, and a version that changes with any of them.
"""

from __future__ import annotations

import ast
import gzip
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from page_frame import framed
from pyodide_files import PACKAGES, editor_packages, found, pyodide, wheels

from lsmkv.course.tab import lab
from lsmkv.course.tab import labs as labs_of

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "build" / "playground"
PAGES = ROOT / "lsmkv" / "tools" / "playground" / "static"
INSPECTOR = ROOT / "lsmkv" / "tools" / "inspect" / "static"
CORE = (
    *("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json"),
    "python_stdlib.zip",
)
"""The files of Pyodide's npm package that a page loads."""
STYLES = ("inspect.css", "lab.css")
VENDORED = (
    "d3/LICENSE",
    "d3/d3.min.js",
    "uplot/LICENSE",
    "uplot/uPlot.iife.min.js",
    "uplot/uPlot.min.css",
)
LEFT_OUT = ("server", "adapters", "shards", "aio")
"""Rooms of lsmkv that need sockets or processes, so that a tab has no use for them."""
TOOLS = ("playground.engine", "playground.console", "demo.measure")
"""Modules of ``lsmkv.tools`` that a tab runs; of the others, the wheel has what these and the
course import."""
PICTURES = ROOT / "docs" / "pictures" / "course"
LABS_PLACE = "<!-- labs -->\n"
"""In course.html, where the list of the labs is."""
EDITOR_SOURCE = "editor-source.js"
FILES = "files.json"
WORKER = "service-worker.js"

_IMPORT = re.compile(r'\b(?:from |import |import\()"([^"]+\.js)"')
_PARTS = re.compile(
    r"(?ms)^## (?P<title>[^\n]+)$"
    r"|(?P<words>(?:^[^\n`#][^\n]*\n)+)\n```python\n(?P<code>>>> .*?)\n```$"
)
_EPOCH = (1980, 1, 1, 0, 0, 0)  # of every member of the wheel: the same sources give the same bytes


def build(target: Path = TARGET) -> None:
    """Make the directory, replacing an earlier one."""
    made = target.with_name(f"{target.name}.new")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    shutil.copytree(PAGES, made, dirs_exist_ok=True)
    labs = [lab({"lab": one["number"]}, print) for one in labs_of({}, print)["labs"]]
    for page in made.glob("*.html"):
        parts = {LABS_PLACE: listed(labs)} if page.name == "course.html" else {}
        source = framed(page.name, page.read_text(encoding="utf-8"), parts)
        page.write_text(source, encoding="utf-8")
    (made / "course.json").write_text(json.dumps({"labs": labs}) + "\n", encoding="utf-8")
    for name in (*STYLES, *sorted(inspectors(PAGES))):
        if not (PAGES / "inspect" / name).exists():  # the playground has its own
            shutil.copy(INSPECTOR / name, made / "inspect" / name)
    for name in VENDORED:
        (made / "inspect" / "vendor" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(INSPECTOR / "vendor" / name, made / "inspect" / "vendor" / name)
    (made / "pyodide").mkdir()
    for name in CORE:
        shutil.copyfile(pyodide() / name, made / "pyodide" / name)
    make_editor(made)
    (made / "pictures").mkdir()
    for picture in PICTURES.glob("*.svg"):
        shutil.copyfile(picture, made / "pictures" / picture.name)
    shown = examples((ROOT / "docs" / "start.md").read_text(encoding="utf-8"))
    (made / "start.json").write_text(json.dumps(shown, indent=1) + "\n", encoding="utf-8")
    shutil.copytree(wheels("playground-wheels", PACKAGES), made / "wheels")
    write_wheel(made / "wheels")
    write_lists(made)
    shutil.rmtree(target, ignore_errors=True)
    made.rename(target)


def listed(labs: list[dict[str, Any]]) -> str:
    """The labs as a list in HTML, for the time before the page's scripts run.

    >>> print(listed([{"number": 1, "title": "Keys & order"}]), end="")
    <nav class="labs-nav" aria-label="Labs"><ol class="labs whole">
    <li><a href="#lab=1">1 Keys &amp; order</a></li>
    </ol></nav>
    """
    lines = [
        f'<li><a href="#lab={one["number"]}">{one["number"]} {html.escape(one["title"])}</a></li>\n'
        for one in labs
    ]
    return (
        '<nav class="labs-nav" aria-label="Labs"><ol class="labs whole">\n'
        + "".join(lines)
        + "</ol></nav>\n"
    )


def make_editor(target: Path) -> None:
    """Bundle the editor, with the licenses, versions and sources of its parts beside it."""
    packages = editor_packages()
    source = target / EDITOR_SOURCE
    shutil.move(source, packages / EDITOR_SOURCE)
    bundled = target / "editor.js"
    subprocess.run(
        [
            str(packages / "node_modules" / ".bin" / "esbuild"),
            *(EDITOR_SOURCE, "--bundle", "--minify", "--format=esm", "--legal-comments=none"),
            *("--log-level=warning", f"--outfile={bundled}"),
        ],
        check=True,
        cwd=packages,
        timeout=120,
        env=os.environ | {"PATH": f"{Path(found('node')).parent}{os.pathsep}{os.environ['PATH']}"},
    )
    notes = ["editor.js is bundled by esbuild from these packages of npm.\n"]
    for about in sorted((packages / "node_modules").rglob("package.json")):
        package = json.loads(about.read_text(encoding="utf-8"))
        name = str(package.get("name", ""))
        licenses = sorted(about.parent.glob("LICENSE*"))
        if "version" not in package or "esbuild" in name or not licenses:
            continue
        url = package.get("repository", {})
        where = url.get("url", "") if isinstance(url, dict) else url
        text = licenses[0].read_text(encoding="utf-8").strip()
        notes.append(f"{name} {package['version']}, {where}\n\n{text}\n")
    (target / "editor.js.LICENSES.txt").write_text("\n\n".join(notes), encoding="utf-8")


def examples(page: str) -> list[dict[str, str]]:
    r"""The examples of a page: ``title`` of its section, the ``words`` before it, and ``code``.

    >>> examples("## A\n\nSay:\n\n```python\n>>> if 1:\n...     2\n2\n\n```\n")
    [{'title': 'A', 'words': 'Say:', 'code': 'if 1:\n    2'}]
    """
    made: list[dict[str, str]] = []
    title, last = "", ""
    for match in _PARTS.finditer(page):
        if match["title"] is not None:
            title = match["title"]
            continue
        lines = re.findall(r"(?m)^(?:>>>|\.\.\.)(?: (.*))?$", match["code"])
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match["words"]).strip()
        heading = "" if title == last else title
        made.append({"title": heading, "words": words, "code": "\n".join(lines)})
        last = title
    return made


def transferred(directory: Path) -> dict[str, int]:
    """The size of each file after ``gzip -9``, by its path: what a visitor downloads."""
    return {path: len(gzip.compress(content, 9)) for path, content in contents(directory)}


def inspectors(pages: Path) -> set[str]:
    """The inspector's modules that the pages import, and those that these import."""
    wanted = {
        PurePosixPath(path).name
        for module in pages.glob("*.js")
        for path in _IMPORT.findall(module.read_text(encoding="utf-8"))
        if path.startswith("./inspect/")
    }
    found: set[str] = set()
    while wanted:
        name = wanted.pop()
        found.add(name)
        if (PAGES / "inspect" / name).exists():
            continue
        source = (INSPECTOR / name).read_text(encoding="utf-8")
        wanted |= {path.removeprefix("./") for path in _IMPORT.findall(source)} - found
    return found


def write_wheel(directory: Path) -> None:
    """Make a wheel of lsmkv's pure Python, without the rooms that are left out."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = project["version"]
    about = f"lsmkv-{version}.dist-info"
    metadata = f"Metadata-Version: 2.4\nName: lsmkv\nVersion: {version}\n"
    wheel = "Wheel-Version: 1.0\nGenerator: lsmkv\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    members = {path: (ROOT / path).read_bytes() for path in sources()}
    members |= {f"{about}/METADATA": metadata.encode(), f"{about}/WHEEL": wheel.encode()}
    record = "".join(f"{path},,\n" for path in (*members, f"{about}/RECORD"))
    members[f"{about}/RECORD"] = record.encode()
    with zipfile.ZipFile(directory / f"lsmkv-{version}-py3-none-any.whl", "w") as archive:
        for path, content in members.items():
            member = zipfile.ZipInfo(path, _EPOCH)
            archive.writestr(member, content, zipfile.ZIP_DEFLATED, 9)


def sources() -> Iterator[str]:
    """The paths of lsmkv's modules that go into the wheel, in order, and of the course's texts."""
    texts = (ROOT / "lsmkv" / "course" / "texts").glob("*.md")
    tools = imported()
    for path in sorted((*(ROOT / "lsmkv").rglob("*.py"), *texts)):
        room = path.relative_to(ROOT / "lsmkv").as_posix()
        if room.startswith("tools/") and path not in tools:
            continue
        if not any(room.startswith(f"{one}/") for one in LEFT_OUT):
            yield f"lsmkv/{room}"


def imported() -> set[Path]:
    """The files of :data:`TOOLS`, of the course, and of all of ``lsmkv.tools`` that they import."""
    found: set[Path] = set()
    wanted = [f"lsmkv.tools.{name}" for name in TOOLS]
    for path in (ROOT / "lsmkv" / "course").rglob("*.py"):
        wanted += names_in(path)
    while wanted:
        name = wanted.pop()
        path = ROOT.joinpath(*name.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if name.startswith("lsmkv.tools") and path.exists() and path not in found:
            found.add(path)
            wanted += [name.rpartition(".")[0], *names_in(path)]
    return found


def names_in(path: Path) -> Iterator[str]:
    """What a module imports, wherever in it: modules, and names that may be modules."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names)


def write_lists(directory: Path) -> None:
    """Write ``files.json``, and put the list and the version into the service worker."""
    worker = directory / WORKER
    digest = hashlib.sha256()
    sizes: dict[str, int] = {}
    for path, content in contents(directory):
        digest.update(f"{path} {len(content)}\n".encode() + content)
        if path != WORKER:
            sizes[path] = len(content)
    listed = {"version": digest.hexdigest()[:16], "files": sizes}
    (directory / FILES).write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    known = {"version": listed["version"], "paths": [*sizes, FILES]}
    script = worker.read_text(encoding="utf-8")
    worker.write_text(f"const BUILD = {json.dumps(known)};\n{script}", encoding="utf-8")


def contents(directory: Path) -> Iterator[tuple[str, bytes]]:
    """The files below a directory in order: path and content."""
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            yield path.relative_to(directory).as_posix(), path.read_bytes()


def main() -> None:
    """Build, and print what a visitor's browser downloads."""
    target = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else TARGET
    build(target)
    sizes = transferred(target)
    whole = sum(sizes.values())
    parts = {"Pyodide": "pyodide/", "wheels": "wheels/", "pages": ""}
    for title, start in parts.items():
        share = sum(sizes.pop(path) for path in list(sizes) if path.startswith(start))
        print(f"{title:>8} {share:>10,} bytes")  # noqa: T201
    print(f"{'together':>8} {whole:>10,} bytes after gzip -9, in {target}")  # noqa: T201


if __name__ == "__main__":
    main()
