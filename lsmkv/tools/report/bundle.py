"""The page's modules as one script, since a page that was opened as a file may import none.

Each module becomes a function that returns its exports; they are called in the order in which they
import each other.  Known are the forms that the page's modules use: ``import {a, b as c} from``,
``import * as a from``, a bare ``import``, ``export`` before a declaration, and ``export {a}``.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable

_IMPORT = re.compile(
    r"""^import\s+(?:(?P<names>\{[^{}]*\})\s+from\s+|\*\s+as\s+(?P<all>[\w$]+)\s+from\s+)?"""
    r"""["'](?P<path>\./[\w./-]+)["'];?[ \t]*$""",
    re.MULTILINE,
)
_EXPORT = re.compile(
    r"^export\s+(?P<what>(?:async\s+)?function\*?|class|const|let)\s+(?P<name>[\w$]+)", re.MULTILINE
)
_EXPORT_LIST = re.compile(r"^export\s*\{(?P<names>[^{}]*)\};?[ \t]*$", re.MULTILINE)
_LEFT_OVER = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)


def bundle(entry: str, read: Callable[[str], str]) -> str:
    """One classic script that does what the module ``entry`` does.

    ``read`` gives the source of a module by its path.  ``ValueError`` for a form of import or
    export that is not known, and for modules that import each other in a circle.

    >>> modules = {"a.js": 'import { two } from "./b.js";\\nprint(two);',
    ...            "b.js": "export const two = 2;"}
    >>> print(bundle("a.js", modules.__getitem__))
    "use strict";
    (() => {
    const modules = {};
    modules["b.js"] = (() => {
    const two = 2;
    return { two };
    })();
    modules["a.js"] = (() => {
    const { two } = modules["b.js"];
    print(two);
    return {  };
    })();
    })();
    <BLANKLINE>
    """
    bundled = _Bundle(read)
    bundled.add(entry, ())
    body = "\n".join(bundled.parts)
    return f'"use strict";\n(() => {{\nconst modules = {{}};\n{body}\n}})();\n'


class _Bundle:
    """The modules so far, each after those that it imports."""

    def __init__(self, read: Callable[[str], str]) -> None:
        self._read = read
        self._done: set[str] = set()
        self.parts: list[str] = []

    def add(self, path: str, above: tuple[str, ...]) -> None:
        """Add a module, unless it is there, and first those that it imports."""
        if path in above:
            raise ValueError(f"modules that import each other: {' -> '.join([*above, path])}")
        if path in self._done:
            return
        source = self._read(path)
        folder = posixpath.dirname(path)

        def imported(match: re.Match[str]) -> str:
            target = posixpath.normpath(posixpath.join(folder, match["path"]))
            self.add(target, (*above, path))
            module = f"modules[{json.dumps(target)}]"
            if match["all"]:
                return f"const {match['all']} = {module};"
            if match["names"]:
                return f"const {match['names'].replace(' as ', ': ')} = {module};"
            return ""

        exports: list[str] = []
        body = _IMPORT.sub(imported, source)
        exports += [match["name"] for match in _EXPORT.finditer(body)]
        body = _EXPORT.sub(r"\g<what> \g<name>", body)
        for match in _EXPORT_LIST.finditer(body):
            exports += [_exported(name) for name in match["names"].split(",") if name.strip()]
        body = _EXPORT_LIST.sub("", body)
        left = _LEFT_OVER.search(body)
        if left is not None:
            raise ValueError(f"{path}: a form of import or export that is not known: {left[0]}")
        self._done.add(path)
        returned = f"return {{ {', '.join(exports)} }};"
        head = f"modules[{json.dumps(path)}] = (() => {{"
        self.parts.append(f"{head}\n{body.strip()}\n{returned}\n}})();")


def _exported(name: str) -> str:
    """A member of an export list as a property: ``a as b`` is ``b: a``."""
    inner, _, outer = (part.strip() for part in name.strip().partition(" as "))
    return f"{outer}: {inner}" if outer else inner
