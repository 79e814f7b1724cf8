"""The frame of the playground's pages: what all of them have around their content.

A file of ``lsmkv/tools/playground/static`` has a page's title, its styles and its scripts; after an
empty line, its content.  Where the engine's loading is shown, the content has :data:`ENGINE_PLACE`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NAVIGATION: Final = {
    "index.html": "Story",
    "bloom.html": "Bloom filter",
    "folder.html": "Folder",
    "course.html": "Course",
    "console.html": "Console",
}
"""The pages, in order, with their names in the navigation."""
ENGINE_PLACE: Final = "<!-- engine -->\n"
POLICY: Final = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; worker-src 'self'; base-uri 'none'; "
    "form-action 'none'"
)
"""The Content-Security-Policy of each page; ``lsmkv playground`` sends the same as a header."""

_ENGINE = """\
<p class="engine" id="engine"><span role="status">Loading the engine.</span></p>
<p class="unserved">If nothing moves here: browsers start WebAssembly only on pages \
from a web server, so these files must be served and not opened from a folder. \
<code>lsmkv playground</code> serves them.</p>
<noscript><p class="trouble">This page runs a storage engine in your browser, which needs \
JavaScript.</p></noscript>
"""
_FRAME = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<link rel="icon" href="data:,">
{styles}<link rel="stylesheet" href="inspect/inspect.css">
<link rel="stylesheet" href="inspect/lab.css">
<link rel="stylesheet" href="playground.css">
<script src="theme.js"></script>
{head}</head>
<body>
<a class="skip" href="#view">To the page</a>
<header>
<span class="brand">lsmkv <small>playground</small></span>
<nav aria-label="Pages">{navigation}</nav>
<span class="tools"><button id="theme" type="button" aria-label="Light or dark" \
title="Light or dark">◐</button></span>
</header>
<main id="view" tabindex="-1">
{content}</main>
</body>
</html>
"""


def framed(name: str, source: str, parts: Mapping[str, str] | None = None) -> str:
    """The whole page, of the file of this name; ``parts`` are put in the place of marks in it.

    ``ValueError`` if the page is not in the navigation, or lacks the place of the engine or of a
    part.
    """
    if name not in NAVIGATION:
        raise ValueError(f"{name} is not in the navigation")
    head, _, content = source.partition("\n\n")
    if content.count(ENGINE_PLACE) != 1:
        raise ValueError(f"{name} must have {ENGINE_PLACE.strip()} once")
    lines = [f"{line}\n" for line in head.splitlines()]
    styles = [line for line in lines if line.startswith("<link")]
    for place, made in (parts or {}).items():
        if content.count(place) != 1:
            raise ValueError(f"{name} must have {place.strip()} once")
        content = content.replace(place, made)
    return _FRAME.format(
        policy=POLICY,
        styles="".join(styles),
        head="".join(line for line in lines if line not in styles),
        navigation="".join(_link(one, title, name) for one, title in NAVIGATION.items()),
        content=content.replace(ENGINE_PLACE, _ENGINE),
    )


def _link(name: str, title: str, current: str) -> str:
    address = "./" if name == "index.html" else name
    mark = ' aria-current="page"' if name == current else ""
    return f'<a href="{address}"{mark}>{title}</a>'
