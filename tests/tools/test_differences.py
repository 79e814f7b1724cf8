"""How differences are printed: a line for each key, or an object of JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import lsm


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ([], ["- gone\\n\t1", "+ new\tcafé", "! turned\t\\xff\t2"]),
        (["--keys-only"], ["- gone\\n", "+ new", "! turned"]),
        (["--limit", "2"], ["- gone\\n\t1", "+ new\tcafé"]),
        (["--hex", "--keys-only"], ["- 676f6e650a", "+ 6e6577", "! 7475726e6564"]),
        (["-q"], []),
        (["--quiet", "--json"], []),
    ],
)
def test_each_option_prints_its_lines(
    two: tuple[Path, Path], options: list[str], lines: list[str]
) -> None:
    assert lsm("diff", *two, *options) == (1, "".join(f"{line}\n" for line in lines), "")


def test_json(two: tuple[Path, Path]) -> None:
    status, out, err = lsm("diff", *two, "--json")
    *records, last = [json.loads(line) for line in out.splitlines()]
    assert (status, err) == (1, "")
    assert records == [
        {"change": "only_a", "key": "gone\n", "a": "1"},
        {"change": "only_b", "key": "new", "b": "café"},
        {"change": "changed", "key": "turned", "a_base64": "/w==", "b": "2"},
    ]
    summary = last["summary"]
    assert (summary["a"], summary["b"]) == tuple(map(str, two))
    assert (summary["only_a"], summary["only_b"], summary["changed"]) == (1, 1, 1)
    assert summary["complete"] is True
    assert out.isascii()
    _, out, _ = lsm("diff", *two, "--json", "--limit", "1")
    assert json.loads(out.splitlines()[-1])["summary"]["complete"] is False
