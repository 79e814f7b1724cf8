"""No text makes a regular expression of ``lsmkv/`` slow: each is linear, and is fed its loops."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from processes import WITH_HELPERS, run_python
from regexes import Trap, Use, trap, uses

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "lsmkv"

ARGUED: dict[str, str] = {
    "server/scripts/frames.py": "its last branch takes any byte, so no place is tried twice;"
    " each of the others reads to the end of what it takes;"
    " the marks of a bracket are read once for each ]",
    "server/hyperloglog.py": "what it refers to is one byte, which is tried three times at most",
    "server/quoting.py": "the next match begins where the last one ended,"
    " and a failed one is the last",
}
"""Linear for a reason that the structure does not show."""
BUILT: dict[str, str] = {
    "server/globs.py": "the pieces between stars, each of a fixed length",
    "server/requests.py": "a byte and six digits",
}
"""Put together when the program runs."""
WORST = ROOT / "tests" / "helpers" / "worst_texts.py"


@pytest.fixture(scope="module")
def found() -> list[Use]:
    return uses(SOURCES)


def test_every_expression_is_linear(found: list[Use]) -> None:
    slow, argued, built = [], [], []
    for use in found:
        module = use.where.partition(":")[0]
        if use.pattern is None:
            built.append(module)
            continue
        why = _refused(use.pattern, use.flags, use.searches)
        if why is not None and module in ARGUED:
            argued.append(module)
        elif why is not None:
            slow.append((use.where, use.pattern, why))
    assert slow == []
    assert argued == sorted(ARGUED)
    assert sorted(set(built)) == sorted(BUILT)


def _refused(pattern: str | bytes, flags: int, searches: bool) -> Trap | str | None:
    try:
        return trap(pattern, flags, searches)
    except ValueError as error:
        return str(error)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of processor time")
def test_each_reads_its_worst_texts(found: list[Use]) -> None:
    """In a process that is ended after a minute of processor time: it takes some seconds."""
    run = run_python("-P", str(WORST), str(SOURCES), env=WITH_HELPERS)
    assert (run.returncode, run.stderr) == (0, "")
    assert int(run.stdout) >= 2 * len(found)


SLOW = [
    (r"<Message>\s*([^<]+?)\s*</Message>", 0, "match"),
    (r"(a*)*b", 0, "match"),
    (r"(a|a)*b", 0, "match"),
    (r"(a|b|ab)*c", 0, "match"),
    (r"(a(|x?))*b", 0, "match"),
    (r"(?:x{1,3})*y", 0, "match"),
    (r"[0-9]+\.?[0-9]*", 0, "fullmatch"),
    (r"\s+$", 0, "search"),
    (r"\d+x", 0, "search"),
    (r"a(?:.*b)?", 0, "search"),
    (r"'.*'", 0, "search"),
    (r"(?m)^x[^y]*y", 0, "search"),
    (rb"\x00*\x00", 0, "search"),
    (r"é*É", re.IGNORECASE, "search"),
    (r"a{65,}b", 0, "search"),
]
LINEAR = [
    (r"<Message>([^<]+)</Message>", 0, "search"),
    (r"(ab|a)*c", 0, "match"),
    (r"\s+$", 0, "match"),
    (r"[0-9]+(?:\.[0-9]*)?", 0, "fullmatch"),
    (r"'[^']*'", 0, "fullmatch"),
    (r"\s+", 0, "search"),
    (r"^\s+$", 0, "search"),
    (r"(?m)^\S+ x", 0, "search"),
    (r"(?<!\d)\d+x", 0, "search"),
    (r"[0-9a-f]{8,64}", 0, "search"),
    (r"é*E", re.IGNORECASE, "match"),
]


@pytest.mark.parametrize(("pattern", "flags", "function"), SLOW)
def test_a_slow_expression_is_found(pattern: str | bytes, flags: int, function: str) -> None:
    found = trap(pattern, flags, function == "search")
    assert found is not None
    assert found.again


@pytest.mark.parametrize(("pattern", "flags", "function"), LINEAR)
def test_a_linear_expression_is_not(pattern: str, flags: int, function: str) -> None:
    assert trap(pattern, flags, function == "search") is None


@pytest.mark.parametrize("pattern", [r"(a)\1*", r"(?=a*b)a", r"(?i:a)", r"a++b"])
def test_what_is_not_taken_apart_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        trap(pattern, 0, False)


def test_the_uses_in_a_module_are_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(
        "import re\n"
        "_A = re.compile('a', re.DOTALL)\n"
        "_B: object = re.compile(b'b')\n"
        "PUBLIC = re.compile('p')\n"
        "def f(x):\n"
        "    re.sub('s', '', x, flags=re.I | re.M)\n"
        "    re.fullmatch('f', x)\n"
        "    re.match(x, x)\n"
        "    _A.match(x), _A.fullmatch(x), _B.match(x), _B.match(x, 1), PUBLIC.match(x)\n",
        encoding="utf-8",
    )
    found = {str(use.pattern): (use.where, use.flags, use.searches) for use in uses(tmp_path)}
    assert found == {
        "a": ("one.py:2", re.DOTALL, False),
        "b'b'": ("one.py:3", 0, True),
        "p": ("one.py:4", 0, True),
        "s": ("one.py:6", re.IGNORECASE | re.MULTILINE, True),
        "f": ("one.py:7", 0, False),
        "None": ("one.py:8", 0, False),
    }


@pytest.mark.parametrize(
    "line",
    ["from re import match", "import re as other", "import fnmatch", "import re; f = re.search"],
)
def test_no_other_way_to_them_is_allowed(tmp_path: Path, line: str) -> None:
    (tmp_path / "one.py").write_text(line + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"one\.py:1"):
        uses(tmp_path)
