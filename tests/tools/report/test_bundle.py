from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest

from lsmkv.tools.report.bundle import bundle
from lsmkv.tools.report.page import STATIC


def of(**modules: str) -> str:
    return bundle("a.js", lambda path: modules[path.removesuffix(".js")])


def test_each_module_comes_once_and_after_what_it_imports() -> None:
    script = of(
        a='import { x } from "./b.js";\nimport * as c from "./c.js";',
        b='import { y } from "./c.js";\nexport const x = y;',
        c="export const y = 1;",
    )
    places = [script.index(f'modules["{name}.js"] = ') for name in "cba"]
    assert places == sorted(places)
    assert script.count('modules["c.js"] = ') == 1


def test_every_form_of_export() -> None:
    script = of(
        a="\n".join(
            (
                "export async function f() {}",
                "export class C {}",
                "export let n = 1;",
                "const z = 2;",
                "export { z, n as m };",
            )
        )
    )
    assert "return { f, C, n, z, m: n };" in script
    assert not re.search(r"(?m)^(import|export)", script)


def test_renamed_imports() -> None:
    script = of(a='import {\n  x as y,\n  z,\n} from "./b.js";', b="export const x = 1, z = 2;")
    assert re.search(r'const \{\s*x: y,\s*z,\s*\} = modules\["b.js"\];', script)


@pytest.mark.parametrize(
    "source", ['import x from "./b.js";', "export default 1;", 'export * from "./b.js";']
)
def test_other_forms_are_refused(source: str) -> None:
    with pytest.raises(ValueError, match="not known"):
        of(a=source, b="")


def test_a_circle_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a.js -> b.js -> a.js"):
        of(a='import "./b.js";', b='import "./a.js";')


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_page_is_valid_javascript() -> None:
    def read(name: str) -> str:
        with open(os.path.join(STATIC, name), encoding="utf-8") as file:
            return file.read()

    script = bundle("app.js", read)
    done = subprocess.run(
        ["node", "--check", "-"], input=script, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
