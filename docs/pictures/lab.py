"""Write docs/lab.html: the filter lab of ``lsmkv inspect`` as one page that needs no server.

python docs/pictures/lab.py

A page opened from a file may not import modules, so they are put into the page one after the other,
without their imports and exports.
"""

from __future__ import annotations

import re
from pathlib import Path

import lsmkv

PAGE = Path(__file__).resolve().parents[1] / "lab.html"
STATIC = Path(lsmkv.__file__).parent / "tools" / "inspect" / "static"
MODULES = ("format.js", "bloom.js", "draw.js", "fields.js", "trial.js", "sentences.js", "lab.js")
"""Each after those that it imports."""

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w.]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|function|class) )", re.MULTILINE)
_NAME = re.compile(r"^(?:const|let|function|class) (\w+)", re.MULTILINE)

_TEMPLATE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; \
script-src 'unsafe-inline'; style-src 'unsafe-inline'">
<title>lsmkv: the filter lab</title>
<link rel="icon" href="data:,">
<style>
:root {{ color-scheme: light dark; }}
html {{ background: light-dark(#ffffff, #12171d); color: light-dark(#17202a, #e6ebf1); }}
html {{ font: 15px/1.5 system-ui, sans-serif; }}
body {{ max-width: 1240px; margin: 0 auto; padding: 0.5rem 1rem 3rem; }}
h1 {{ font-size: 1.5rem; margin: 0.6rem 0 0.2rem; }}
.about {{ max-width: 52rem; margin: 0 0 1rem; }}
a {{ color: light-dark(#0b57a4, #7db7f0); }}
{style}</style>
</head>
<body>
<main>
<h1>The filter lab</h1>
<p class="about">A Bloom filter answers <em>no</em>, which is certain, or <em>maybe</em>, which is \
now and then wrong. Here is one, bit for bit as lsmkv and LevelDB make it: add keys, ask for some, \
and see which bits decide. The page \
<cite>Filters</cite> of the documentation derives the formulas.</p>
<div id="lab"><noscript>The lab needs JavaScript.</noscript></div>
</main>
<script type="module">
{script}
globalThis.mountLab = mountLab;
mountLab(document.getElementById("lab"));
</script>
</body>
</html>
"""


def joined() -> str:
    """The modules as one.  ``ValueError`` if two use a name for different things, or if one imports
    what does not stand before it.
    """
    parts: list[str] = []
    taken: set[str] = set()
    for at, name in enumerate(MODULES):
        source = (STATIC / name).read_text(encoding="utf-8")
        for imported in _IMPORT.findall(source):
            if imported not in MODULES[:at]:
                raise ValueError(f"{name} imports {imported}, which does not stand before it")
        source = _EXPORT.sub("", _IMPORT.sub("", source))
        names = set(_NAME.findall(source))
        if names & taken or re.search(r"^(?:import|export)\b", source, re.MULTILINE):
            raise ValueError(f"{name} cannot be joined: {sorted(names & taken)}")
        taken |= names
        parts.append(f"// {name}\n{source}")
    return "\n".join(parts)


def page() -> str:
    """The whole page."""
    style = (STATIC / "lab.css").read_text(encoding="utf-8")
    return _TEMPLATE.format(style=style, script=joined())


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
