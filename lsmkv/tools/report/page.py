"""The HTML of a report: the page's style, script and data in one file, bound by a strict policy."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
from typing import NamedTuple

from lsmkv.tools.inspect.plain import Plain
from lsmkv.tools.report.bundle import bundle

STATIC = os.path.join(os.path.dirname(os.path.dirname(__file__)), "inspect", "static")
_SCRIPTS = ("vendor/d3/d3.min.js", "vendor/uplot/uPlot.iife.min.js")
_STYLES = ("vendor/uplot/uPlot.min.css", "inspect.css", "lab.css")


class Answer(NamedTuple):
    """The data of one view, as the page would ask for it."""

    view: str
    query: dict[str, str]
    answer: Plain


def html_page(title: str, answers: list[Answer]) -> str:
    """A page that shows these answers, and reads nothing but itself.

    Its policy allows the scripts and styles in it by their hashes, and no request at all.
    """
    styles = [_read(name) for name in _STYLES]
    scripts = [_read(name) for name in _SCRIPTS] + [bundle("app.js", _read)]
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, scripts))}",
            f"style-src {' '.join(map(_hash, styles))}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    data = _script_text(json.dumps([one._asdict() for one in answers], separators=(",", ":")))
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{html.escape(title)}</title>",
        '<link rel="icon" href="data:,">',
        *[f"<style>{style}</style>" for style in styles],
        "</head>",
        "<body>",
        "<noscript>This report draws a store with JavaScript, which is turned off.</noscript>",
        f'<script type="application/json" id="lsmkv-answers">{data}</script>',
        *[f"<script>{script}</script>" for script in scripts],
        "</body>",
        "</html>",
        "",
    ]
    return "\n".join(parts)


def _read(name: str) -> str:
    with open(os.path.join(STATIC, *name.split("/")), encoding="utf-8") as file:
        text = file.read()
    if "</script" in text.lower() or "</style" in text.lower():
        raise ValueError(f"{name} would end its own element")
    return text


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _script_text(text: str) -> str:
    r"""JSON that no HTML parser takes for the end of its element.

    >>> print(_script_text('["</script><!--"]'))
    ["\u003c/script\u003e\u003c!--"]
    """
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
