"""What is sent to the process that owns a store for others, and what cannot be."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from processes import run_python

from lsmkv import SharedDB


class Local:
    """An order that cannot be sent to another process."""

    name = "test.Local"

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def compare(self, a: bytes, b: bytes) -> int:
        return (a > b) - (a < b)


def test_an_option_that_no_other_process_can_have(path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be sent to another process"):
        SharedDB(path, owner="process", create_if_missing=True, comparator=Local())
    with pytest.raises(ValueError, match="owner must be"):
        SharedDB(path, owner="thread")  # type: ignore[arg-type]


def test_an_option_of_the_program_that_starts_it(tmp_path: Path, path: Path) -> None:
    done = run_python(
        "-c",
        "import sys, lsmkv\n"
        "class Order:\n"
        "    name = 'order'\n"
        "    def compare(self, a, b): return (a > b) - (a < b)\n"
        "try:\n"
        "    lsmkv.SharedDB(sys.argv[1], owner='process', create_if_missing=True,\n"
        "                   comparator=Order(), bloom_filter_bits=0)\n"
        "except ValueError as error:\n"
        "    print(error)\n",
        str(path),
    )
    assert "cannot be loaded in another process" in done.stdout, done.stderr
