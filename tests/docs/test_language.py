"""The English of the project: words that it does not use, and sentences of a length to be read.

Prose is what a person reads: the documentation, and in the source docstrings, comments and strings
with words in them.  Code blocks and code in backticks are left out.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from documents import generated_pages
from parsed import parsed

ROOT = Path(__file__).parents[2]
LONGEST = 25
"""Words of a sentence."""
LONG_SENTENCES = Path(__file__).with_name("long_sentences.txt")
"""How many longer sentences each file of the documentation may have; the list only shrinks."""

NEVER = {
    r"in vain": "a false positive; a wasted read",
    r"keys that count": "sequential keys",
    r"anew": "again",
    r"at hand": "in memory",
    r"in earnest": "in production",
    r"save for": "except",
    r"whoever": "the caller",
    r"thereof": "of it",
    r"heeds?|heeded": "follow",
    r"dearest": "slowest",
    r"befalls?|befell": "happen",
    r"lest": "so that ... not",
    r"(?:what|one that) is none": "invalid",
    r"lets? go of": "releases",
    r"gives? free": "releases",
    r"(?:and|or) the like|its like|their kin": "name them",
    r"of the user's|of one's own": "the user's; a custom one",
    r"(?:is|are|was|were|cannot|can|to) be had": "is available",
    r"mend(?:s|ed|ing)?": "fixes; repairs",
    r"(?:is|are|was|were|be|been|being) told(?! (?:apart|from|to)\b)": "is reported; knows",
    r"every bar that": "every target that",
    r"colours?|coloured": "color",
    r"behaviours?": "behavior",
    r"neighbour(?:s|ing)?": "neighbor",
    r"(?:serial|recogn|organ|initial|normal|synchron)is(?:e|ed|es|ing)": "-ize: American spelling",
}
"""Phrases, and what to write instead."""
_NEVER = re.compile(rf"\b(?:{'|'.join(NEVER)})\b", re.IGNORECASE)
IDIOMS = {
    r"\b(?:go|goes|gone|went) with\b": "requires; cannot be combined with; is removed with",
    r"\b(?:is|are|was|were) used up\b": "is exhausted",
    r"\bgives? (?:\w+ ){1,3}free\b": "releases",
    r"\bof (?:anyone|anybody|somebody|nobody)'s\b": "user code",
    r"\bof (?:its|their) own(?! \w)": "its own; separate",
    r"\bdoes so for\b": "spares others a wait",
    r"\bbut for\b": "except for",
    r"\bby turns\b": "alternating",
    r"\bif need be\b": "if necessary",
    r"\b(?:in one breath|spells? of)\b": "in one step; a burst of",
    r"\bwhich had \d": "expected",
    r"\bmay not(?=[.;:]|\Z)": "the verb: may not write",
    r"\b(?:meanwhile|too)(?=[.;:)]|\Z)": "also, before the verb; during it",
}
"""The same for lsmkv's docstrings, comments and messages: a translation's idioms, as patterns."""
_IDIOMS = re.compile("|".join(IDIOMS), re.IGNORECASE)
_QUESTION = re.compile(r"\s*(?:What|Whether|Where|How|Who|Whose|When)\b")
"""A docstring that begins so names neither a thing nor an act: write "True if" or "Return"."""
_CODE = re.compile(r"``+.*?``+|`[^`\n]*`|<[^>\n]+>|\]\([^)]*\)|https?://\S+")


class Line(NamedTuple):
    """A line of prose."""

    number: int
    text: str


def of_markdown(text: str) -> Iterator[Line]:
    """The prose of a page: what stands outside its code blocks."""
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        begin = re.match(r" *(```+|~~~+)", line)
        if fence:
            if line.strip() == fence:
                fence = ""
        elif begin:
            fence = begin[1]
        else:
            yield Line(number, line)


def of_python(text: str) -> Iterator[Line]:
    """The prose of a module: its comments, and its strings that have words."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield Line(token.start[0], token.string)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            for offset, line in enumerate(node.value.splitlines()):
                if not line.lstrip().startswith((">>>", "...")):
                    yield Line(node.lineno + offset, line)


def findings(path: Path, text: str) -> list[str]:
    lines = of_python(text) if path.suffix == ".py" else of_markdown(text)
    return [
        f"{path}:{line.number}: {found[0]!r}"
        for line in lines
        for found in _NEVER.finditer(_CODE.sub(" ", line.text))
    ]


def sentences(text: str) -> Iterator[str]:
    """The sentences of a page's paragraphs and lists; tables and headings have none."""
    paragraph: list[str] = []
    for _, line in [*of_markdown(text), Line(0, "")]:
        if not line.strip() or re.match(r" *(?:[-*|#]|\d+\.) ?", line):
            yield from re.split(r"(?<=[.!?:;])[)*_\"]*\s+", " ".join(paragraph))
            paragraph = []
        if line.strip() and not re.match(r" *(?:[|#<]|!\[|---)", line):
            paragraph.append(re.sub(r"^ *(?:[-*]|\d+\.) ", "", line).strip())


def is_long(sentence: str) -> bool:
    plain = re.sub(r"`[^`]*`", "code", sentence)
    plain = re.sub(r"\]\([^)]*\)", "", plain)
    return len(re.findall(r"[^\W\d_][\w'-]*", plain)) > LONGEST


def pages() -> list[Path]:
    """The documentation that is written by hand."""
    written = {*(ROOT / "docs").rglob("*.md")} - {*generated_pages()}
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(written)]


def all_prose() -> list[Path]:
    code = [path for room in ("lsmkv", "tests", "examples") for path in (ROOT / room).rglob("*.py")]
    return [*pages(), ROOT / "CHANGELOG.md", *sorted(code)]


needs_checkout = pytest.mark.skipif(
    not (ROOT / "docs").is_dir(), reason="the documentation is not beside the tests"
)


@needs_checkout
def test_no_page_docstring_comment_or_message_has_these_words() -> None:
    found = [
        finding
        for path in all_prose()
        if path.resolve() != Path(__file__).resolve()
        for finding in findings(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


@needs_checkout
def test_no_docstring_or_help_is_a_genitive() -> None:
    """ "The bytes of all inputs", not "Of all inputs": it is read without the name above it."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value[:40]!r}"
        for path in sorted((ROOT / "lsmkv").rglob("*.py"))
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if re.fullmatch(r"Of [a-z][^,:]*", node.value)
    ]
    assert not found, "\n".join(found)


def docstrings(tree: ast.Module) -> Iterator[Line]:
    """Every string that stands alone: of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield Line(value.lineno, value.value)


def questions(tree: ast.Module) -> list[str]:
    """The docstrings that begin with a question word, with their lines."""
    return [
        f"{line.number}: {line.text.strip()[:40]!r}"
        for line in docstrings(tree)
        if _QUESTION.match(line.text)
    ]


def idioms(text: str) -> list[str]:
    """The idioms in a module's comments and strings, each string read as a whole."""
    whole = [
        Line(token.start[0], token.string)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    ]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            prose = re.sub(r"(?m)^ *(?:>>>|\.\.\.).*$", "", node.value)
            whole.append(Line(node.lineno, " ".join(_CODE.sub("code", prose).split())))
    return [
        f"{line.number}: {found[0]!r}" for line in whole for found in _IDIOMS.finditer(line.text)
    ]


def without_code(page: str) -> str:
    """The prose of a page on one line, with "code" where there is code or an address."""
    return " ".join(_CODE.sub("code", re.sub(r"(?s)```.*?```", "", page)).split())


def modules() -> list[Path]:
    package = ROOT / "lsmkv"
    return sorted(package.rglob("*.py"))


@needs_checkout
def test_no_docstring_begins_with_a_question_word() -> None:
    """ "True if it is damaged", not "Whether it is damaged": the thing, the act, or the value."""
    found = [
        f"{path.relative_to(ROOT)}:{one}" for path in modules() for one in questions(parsed(path))
    ]
    assert not found, "\n".join(found)


@needs_checkout
def test_no_docstring_comment_or_message_of_lsmkv_has_these_idioms() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{one}"
        for path in modules()
        for one in idioms(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


@needs_checkout
def test_no_page_has_these_idioms() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {text[max(0, one.start() - 40) : one.end()]!r}"
        for path in pages()
        for text in [without_code(path.read_text(encoding="utf-8"))]
        for one in _IDIOMS.finditer(text)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "planted",
    ["--a goes with --b", "ids are used up", "it gives the lock free", "a finalizer of anyone's",
     "a thread of its own", "It does so for many", "all but for one", "by turns", "if need be",
     "in one breath", "5 bytes, which had 7", "and this one may not", "others wait meanwhile",
     "and the last, too"],
)  # fmt: skip
def test_each_idiom_is_found(planted: str) -> None:
    assert len(_IDIOMS.findall(without_code(f"Some words: {planted}."))) == 1
    assert idioms(f'def f():\n    """Some words: {planted}."""\n')
    assert not _IDIOMS.search(without_code(f"```text\n{planted}.\n```"))


@needs_checkout
def test_long_sentences_become_fewer() -> None:
    """``long_sentences.txt`` says how many each page has: not more, and not fewer any longer."""
    lines = LONG_SENTENCES.read_text(encoding="utf-8").splitlines()
    listed = {name: int(number) for number, name in (line.split(" ", 1) for line in lines)}
    counted = {
        path.relative_to(ROOT).as_posix(): sum(
            is_long(sentence) for sentence in sentences(path.read_text(encoding="utf-8"))
        )
        for path in pages()
    }
    counted = {name: number for name, number in counted.items() if number}
    more = {name: number for name, number in counted.items() if number > listed.get(name, 0)}
    assert not more, f"sentences of more than {LONGEST} words were added: {more}"
    assert counted == listed, "lower the numbers of long_sentences.txt to these"


def test_the_check_finds_what_it_should() -> None:
    page = "Read it anew.\n\n```\nanew\n```\nThe `anew` of [x](anew) is told.\nIt is told to go.\n"
    assert findings(Path("page.md"), page) == ["page.md:1: 'anew'", "page.md:6: 'is told'"]
    module = "def f():\n    # in vain\n    x = 'anew'\n    return 'read anew', 'renewed thing'\n"
    assert findings(Path("m.py"), module) == ["m.py:2: 'in vain'", "m.py:4: 'anew'"]


def test_question_words_and_idioms_are_found() -> None:
    module = (
        '"""How it works."""\n\n\ndef f():\n    """Return what it has.\n\n    Whether."""\n\n\n'
        'x = 1\n"""\nWhose x it is."""\ny = "What is y?"\n'
    )
    assert questions(ast.parse(module)) == ["1: 'How it works.'", "11: 'Whose x it is.'"]
    module = (
        "def f():\n"
        '    """It has a lock of\n    its own, too.\n\n    >>> f() # of its own\n    """\n'
        "    # of its own choice, and too late; it may not go; this goes with it\n"
        "    raise E(f'no owner, and {1} may not')\n"
    )
    assert idioms(module) == [
        "7: 'goes with'",
        "2: 'of its own'",
        "2: 'too'",
        "8: 'may not'",
    ]


def test_a_sentence_is_counted_once_and_whole() -> None:
    many = " ".join(["word"] * 26)
    page = f"# {many}\n\n{many}.\nShort one. {many}\n\n- item\n- {many}\n\n| {many} |\n"
    assert [is_long(sentence) for sentence in sentences(page)].count(True) == 3
