"""A custom policy: loaded from a file, and not trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.tools.lab.own import OwnPolicy, PolicyError, load_policy

FUNCTIONS = """
from lsmkv import BloomFilterPolicy

def create_filter(keys, bits_per_key):
    assert type(keys) is list
    return BloomFilterPolicy(bits_per_key).create_filter(keys)

def key_may_match(key, filter_data):
    return BloomFilterPolicy().key_may_match(key, filter_data)
"""
CLASS = """
from lsmkv import BloomFilterPolicy

class Mine:
    def __init__(self, bits):
        self.policy = BloomFilterPolicy(bits)

    def create_filter(self, keys):
        return self.policy.create_filter(keys)

    def key_may_match(self, key, filter_data):
        return self.policy.key_may_match(key, filter_data)

def make(bits):
    assert type(bits) in (int, float)
    return Mine(bits)

ready = Mine(7)
number = 7
raises = lambda bits: 1 / 0
none = lambda bits: bits
"""
KEYS = [b"ant", b"bee"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(FUNCTIONS)
    return path


@pytest.mark.parametrize("bits", [10, 12.5])
def test_functions_are_a_policy(file: Path, bits: float) -> None:
    policy = load_policy(str(file))(bits)
    data = policy.create_filter(KEYS)
    assert data == BloomFilterPolicy(bits).create_filter(KEYS)
    assert [policy.key_may_match(key, data) for key in (b"ant", b"cow")] == [True, False]


@pytest.mark.parametrize(("name", "bits"), [("Mine", 12), ("make", 12), ("ready", 7)])
def test_a_name_is_a_policy_or_makes_one(file: Path, name: str, bits: int) -> None:
    file.write_text(CLASS)
    policy = load_policy(f"{file}:{name}")(12)
    assert policy.create_filter(KEYS) == BloomFilterPolicy(bits).create_filter(KEYS)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nothing", "mine.py has no nothing"),
        ("number", "number of .*mine.py is no filter policy"),
        ("raises", "your policy raised ZeroDivisionError: division by zero"),
        ("none", "none of .*mine.py is no filter policy: it has no create_filter"),
    ],
)
def test_what_is_no_policy_is_refused(file: Path, name: str, words: str) -> None:
    file.write_text(CLASS)
    with pytest.raises((ValueError, PolicyError), match=words):
        load_policy(f"{file}:{name}")(10)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def create_filter(keys, bits): ...", "needs the functions create_filter and key_may_"),
        ("1 / 0", "the file cannot be run: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "the file cannot be run: SystemExit: 3"),
        ("def (", "the file cannot be run: SyntaxError"),
    ],
)
def test_a_file_without_a_policy_is_refused(file: Path, source: str, words: str) -> None:
    file.write_text(source)
    with pytest.raises(ValueError, match=words):
        load_policy(str(file))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.py"):
        load_policy(str(tmp_path / "none.py"))


def fails(*_: Any) -> bytes:
    raise KeyError("x")


@pytest.mark.parametrize(
    ("create", "ask", "words"),
    [
        (fails, lambda key, data: True, "your create_filter raised KeyError: 'x'"),
        (lambda keys: b"", fails, "your key_may_match raised KeyError: 'x'"),
        (lambda keys: "text", lambda key, data: True, "your create_filter returned str, not bytes"),
        (
            lambda keys: b"",
            lambda key, data: key == b"ant",
            "a false negative: your key_may_match says no to b'bee'",
        ),
    ],
)
def test_a_policy_is_not_trusted(create: Any, ask: Any, words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        OwnPolicy(create, ask).create_filter(KEYS)
