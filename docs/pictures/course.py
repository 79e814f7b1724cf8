"""Draws ``course/*.svg``, the pictures of the course's texts, from bytes that the engine makes.

``course/NAME.py`` draws the picture of the lab with that short name.
"""

from __future__ import annotations

import runpy

from drawing import HERE

from lsmkv.course.labs.registry import LABS


def draw(slug: str) -> str:
    """The picture of a lab, as SVG."""
    drawn: str = runpy.run_path(str(HERE / "course" / f"{slug}.py"))["draw"]()
    return drawn


if __name__ == "__main__":
    for lab in LABS:
        (HERE / "course" / f"{lab.slug}.svg").write_text(draw(lab.slug), encoding="utf-8")
