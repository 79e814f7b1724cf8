"""Draw speed.svg from the tables of docs/performance.md, and write README.md's figures of speed.

python docs/pictures/speed.py
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from drawing import HERE, MARGIN, bar, card, image, line, publish, text

PAGE = HERE.parent / "performance.md"

ROWS = {
    "readhot": "Get of a key asked for before",
    "readmissing": "Get of an absent key",
    "readrandom": "Get that has to read a block",
    "seek10": "seek, then ten entries",
    "readseq": "scan forward, per entry",
    "readreverse": "scan backward, per entry",
    "fillseq": "put, in key order",
    "fillrandom": "put, in random order",
    "fillbatch": "put, in batches of 1,000",
    "fillsync": "put, each one synced",
    "compact": "compaction, per entry",
}
"""The workloads that README.md shows, in this order, and what it calls them."""

_TIMES = "\N{MULTIPLICATION SIGN}"
_CENTRE = 326
_OCTAVE = 41
"""The width of a factor of two."""
_ROW = 34


class Measured(NamedTuple):
    """A row of the page: microseconds an operation, as printed, and the ratio of LevelDB's time."""

    own: str
    peer: str
    ratio: float


class Speed(NamedTuple):
    """What was measured of one workload."""

    compiled: Measured
    pure: Measured


def table(page: str, heading: str) -> dict[str, Measured]:
    """The rows under a heading of docs/performance.md, by workload."""
    found = re.search(rf"(?m)^### {heading}.*\n\n((?:\|.*\n)+)", page)
    if found is None:
        raise ValueError(f"docs/performance.md has no table under {heading!r}")
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in found[1].splitlines()[2:]]
    return {
        name: Measured(own, peer, float(ratio.split()[0])) for name, _, own, peer, ratio in rows
    }


def speeds(page: str) -> dict[str, Speed]:
    """What README.md shows of docs/performance.md."""
    compiled = table(page, r"200,000 entries, \d+ rounds: compiled")
    pure = table(page, r"200,000 entries, \d+ rounds: pure")
    return {name: Speed(compiled[name], pure[name]) for name in ROWS}


def in_words(found: dict[str, Speed]) -> str:
    """The picture in words."""
    said = [
        f"{ROWS[name]} {speed.compiled.ratio:.2f} and {speed.pure.ratio:.2f}"
        for name, speed in found.items()
    ]
    return "LevelDB's time divided by lsmkv's, compiled and pure: " + ", ".join(said) + "."


def draw(found: dict[str, Speed]) -> str:
    """The picture: bars to the right of the middle are faster than LevelDB, to the left slower."""
    top, bottom = 84, 84 + _ROW * len(found) + 4
    parts = [text(MARGIN, 53, "muted small", "200,000 entries; LevelDB in C++, through plyvel")]
    for octave in range(-3, 4):
        x = _CENTRE + octave * _OCTAVE
        parts.append(line(x, top, bottom, "axis" if octave == 0 else "line"))
        shown = f"{2**octave}{_TIMES}" if octave >= 0 else f"1/{2**-octave}"
        parts.append(text(x, bottom + 16, "muted small middle", shown))
    parts += [
        text(_CENTRE - 8, 76, "muted small right", "slower ←"),
        text(_CENTRE + 8, 76, "muted small", "→ faster"),
    ]
    y = top + 6.0
    for name, speed in found.items():
        parts.append(text(MARGIN, y + 17, "small", ROWS[name]))
        for at, (measured, color) in enumerate(((speed.compiled, "strong"), (speed.pure, "weak"))):
            width = math.log2(measured.ratio) * _OCTAVE
            left = _CENTRE + min(width, 0)
            parts.append(bar(left, y + 12 * at, abs(width), 11, color))
        y += _ROW
    y = bottom + 40
    parts += [
        bar(MARGIN, y - 10, 11, 11, "strong"),
        text(MARGIN + 18, y, "small", "lsmkv compiled by mypyc"),
        bar(MARGIN + 190, y - 10, 11, 11, "weak"),
        text(MARGIN + 208, y, "small", "lsmkv in pure Python"),
    ]
    return card("Speed beside LevelDB's", in_words(found), y + 18, parts)


def markdown(found: dict[str, Speed]) -> str:
    """What README.md says: three figures, and the picture."""
    hot, put, scan = found["readhot"], found["fillrandom"], found["readseq"]

    def compared(speed: Speed) -> str:
        return f"{speed.compiled.own} µs ({speed.compiled.peer} µs)"

    lines = [
        "Compiled, with LevelDB in C++ through plyvel in brackets: a Get of a cached key takes"
        f" {compared(hot)},",
        f"a put in random order {compared(put)}, a scan {compared(scan)} an entry.",
        "[All figures](docs/performance.md), other stores included;"
        " `lsmkv bench --against plyvel` repeats them in a checkout.",
    ]
    return "\n".join(lines) + "\n\n" + image("speed.svg", in_words(found))


def main() -> None:
    """Draw the picture, and write it and the figures into README.md."""
    found = speeds(PAGE.read_text(encoding="utf-8"))
    publish("speed.svg", draw(found), "speed", markdown(found))


if __name__ == "__main__":
    main()
