"""``docs/playground/make_playground.py``, without what it fetches: lists, imports and the wheel."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from make_playground import (
    FILES,
    INSPECTOR,
    LEFT_OUT,
    PAGES,
    ROOT,
    TOOLS,
    WORKER,
    inspectors,
    sources,
    write_lists,
    write_wheel,
)
from page_frame import ENGINE_PLACE, NAVIGATION, POLICY, framed

from lsmkv.tools.playground import server


def test_the_inspectors_modules_that_pages_need_are_found() -> None:
    found = inspectors(PAGES)
    assert {"dom.js", "draw.js", "player.js", "sentences.js", "bloom.js"} <= found
    assert {"app.js", "levels.js", "entries.js"} <= found  # which a page loads later
    for name in found - {"data.js"}:  # the playground has its own
        source = (INSPECTOR / name).read_text(encoding="utf-8")
        assert set(re.findall(r'from "\./([\w.-]+)"', source)) <= found


def test_what_pages_load_is_there() -> None:
    pages = [path for path in PAGES.iterdir() if path.is_file()]
    there = {path.name for path in pages} | {"editor.js"}  # which is bundled
    for path in pages:
        source = path.read_text(encoding="utf-8")
        wanted = re.findall(
            r'(?:from |import |src=|href=)"(?:\./)?([\w.-]+\.(?:js|css|html))"', source
        )
        assert set(wanted) <= there, path.name


def test_pages_are_put_into_a_frame() -> None:
    pages = sorted(PAGES.glob("*.html"))
    assert POLICY == server.POLICY
    assert {page.name for page in pages} == set(NAVIGATION)
    for page in pages:
        made = framed(page.name, page.read_text(encoding="utf-8"))
        for once in ("<title>", "<h1", "</main>", 'id="engine"', POLICY):
            assert made.count(once) == 1, (page.name, once)
        (current,) = re.findall(r'<a href="([^"]*)" aria-current="page">', made)
        assert current in (page.name, "./" if page.name == "index.html" else "")
        assert ENGINE_PLACE not in made
        assert not re.search(r"<script>|<style|\sstyle=|\son\w+=", made)  # which the policy refuses
    with pytest.raises(ValueError, match="not in the navigation"):
        framed("other.html", "<title>t</title>\n\n<!-- engine -->\n")
    with pytest.raises(ValueError, match="must have <!-- engine --> once"):
        framed("index.html", "<title>t</title>\n\n<h1>t</h1>\n")


def test_the_wheel_has_what_the_engine_imports(tmp_path: Path) -> None:
    write_wheel(tmp_path)
    first = next(tmp_path.glob("lsmkv-*-py3-none-any.whl"))
    content = first.read_bytes()
    write_wheel(tmp_path)
    assert first.read_bytes() == content  # the same each time
    names = set(zipfile.ZipFile(first).namelist())
    assert "lsmkv/tools/playground/engine.py" in names
    assert not any(name.startswith(f"lsmkv/{room}/") for name in names for room in LEFT_OUT)
    script = (
        "from lsmkv.tools.playground.engine import Engine; import lsmkv, json;"
        "print(lsmkv.__file__); print(json.loads(Engine().answer('story/begin', '{}'))['put'])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(first)!r})\n{script}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={"PATH": ""},
    )
    where, put = done.stdout.splitlines()
    assert where.startswith(str(first))
    assert put == "0"


def test_the_lists_name_every_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.js").write_text("one")
    (tmp_path / WORKER).write_text("// the script\n")
    write_lists(tmp_path)
    listed = json.loads((tmp_path / FILES).read_text())
    assert listed["files"] == {"a/b.js": 3}
    worker = (tmp_path / WORKER).read_text()
    build = json.loads(worker.partition(" = ")[2].partition(";\n")[0])
    assert build == {"version": listed["version"], "paths": ["a/b.js", FILES]}
    assert worker.endswith("// the script\n")
    (tmp_path / "a" / "b.js").write_text("two")
    (tmp_path / WORKER).write_text("// the script\n")
    write_lists(tmp_path)
    assert json.loads((tmp_path / FILES).read_text())["version"] != listed["version"]


@pytest.mark.parametrize("room", LEFT_OUT)
def test_rooms_that_are_left_out_exist(room: str) -> None:
    assert (Path(PAGES).parents[2] / room).is_dir()
    assert not any(path.startswith(f"lsmkv/{room}/") for path in sources())


def test_the_tab_needs_none_of_what_is_left_out_and_no_terminal(tmp_path: Path) -> None:
    for path in sources():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, tmp_path / path)
    modules = ["lsmkv.course.tab", *(f"lsmkv.tools.{name}" for name in TOOLS)]
    terminal = ["typer", "rich", "click"]
    program = f"import sys; sys.modules |= dict.fromkeys({terminal!r}); import {', '.join(modules)}"
    subprocess.run(
        [sys.executable, "-P", "-c", program], check=True, env={"PYTHONPATH": str(tmp_path)}
    )
