"""What a file says by itself: what it imports, and whose it is like."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from labs import STUDENTS, renamed

from lsmkv.course.labs.registry import find
from lsmkv.course.similarity import ENOUGH, alike, fingerprint, imported_beyond

BLOOM = find("bloom")
ANN = (STUDENTS / "ann_lab4_bloom.py").read_text()
DAN = (STUDENTS / "dan_lab4_bloom.py").read_text()


def prints(tmp_path: Path, **sources: str) -> dict[str, frozenset[tuple[str, ...]]]:
    found = {}
    for name, source in sources.items():
        path = tmp_path / f"{name}.py"
        path.write_text(source)
        found[name] = fingerprint(str(path), BLOOM.starter())
    return found


def test_a_copy_with_other_names_is_alike_and_another_solution_is_not(tmp_path: Path) -> None:
    found = alike(prints(tmp_path, ann=ANN, bob=renamed(ANN), dan=DAN))
    assert found == {"ann": [("bob", 1.0)], "bob": [("ann", 1.0)]}


def test_order_comments_and_texts_do_not_matter(tmp_path: Path) -> None:
    head, *functions = re.split(r"(?m)^(?=def )", ANN)
    other = head + "".join(reversed(functions)) + "# mine\n"
    other = other.replace("    k = int(", '    "Of my own."\n    k = int(')
    ((name, share),) = alike(prints(tmp_path, ann=ANN, bob=other))["ann"]
    assert (name, share) == ("bob", 1.0)


def test_a_part_that_was_changed_leaves_it_alike(tmp_path: Path) -> None:
    other = renamed(ANN).replace(
        "return min(30, max(1, number))", "return sorted((1, number, 30))[1]"
    )
    ((_, share),) = alike(prints(tmp_path, ann=ANN, bob=other))["ann"]
    assert 0.9 < share < 1


def test_starters_and_short_files_are_like_none(tmp_path: Path) -> None:
    starter = BLOOM.starter()
    short = starter.replace("raise NotImplementedError", "return 1 + 1", 1)
    found = prints(
        tmp_path, ann=starter, bob=starter, cem=short, dan=short, eve="def (", eli="def ("
    )
    assert all(len(one) < ENOUGH for one in found.values())
    assert not alike(found)


@pytest.mark.parametrize(
    ("line", "taken"),
    [
        (
            "from lsmkv.engine.filter.bloom import leveldb_hash",
            ["lsmkv.engine.filter.bloom.leveldb_hash"],
        ),
        ("import lsmkv.course.labs.bloom as b", ["lsmkv.course.labs.bloom"]),
        ("from lsmkv import BloomFilterPolicy", ["lsmkv.BloomFilterPolicy"]),
        (
            "def f():\n    from lsmkv.engine.format.log import frame",
            ["lsmkv.engine.format.log.frame"],
        ),
        ("m = __import__('ls' + 'mkv')", ["__import__"]),
        ("import importlib", ["importlib"]),
        ("import math, bisect\nfrom lab1_keys import encode_varint", []),
    ],
)
def test_imports_beyond_the_starter(tmp_path: Path, line: str, taken: list[str]) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"{BLOOM.starter()}\n{line}\n")
    assert imported_beyond(str(path), BLOOM.starter()) == taken


def test_what_a_starter_imports_is_free(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    starter = find("log").starter()
    path.write_text(starter)
    assert imported_beyond(str(path), starter) == []
    assert imported_beyond(str(path), BLOOM.starter()) == ["lsmkv.course.given.crc32c"]
