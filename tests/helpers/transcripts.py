r"""Transcripts: what clients ask a server, and what it answers, as text.

::

    == A title begins a test, with an empty store
    # A comment says why.
    SADD s b a b            => :2
    SMEMBERS s              => ["a", "b"]
    LPUSH s x | INCR s      => -WRONGTYPE ...
    other: SUBSCRIBE c      => >["subscribe", "c", :1]
    PUBLISH c hello         => :1
    other:                  => >["message", "c", "hello"]

Requests between ``|`` run one after the other, and each gets the answer; one with ``{1..5}`` in it
runs for each of these numbers.  A name and a colon stand
before what another client asks; without a request, they show what it has received since.

The answer has RESP's marks of types, with ``"..."`` for bulk strings, ``[...]`` for arrays,
``{...}`` for maps, ``nil`` and ``nil array`` for the nulls of RESP2, ``null`` for that of RESP3.
Several replies are separated by ``&``, and none is ``nothing``.  ``...`` stands for any end of an
answer.  A long answer stands below, in lines that begin with ``|`` and are joined by spaces.

After the title, words such as ``(raw)`` or ``(password=secret)`` say how the store is served.
``pytest FILES --rewrite`` plays the transcripts again and writes the answers that have changed.
"""

from __future__ import annotations

import inspect
import itertools
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import states
from serving import Client, an_engine

from lsmkv.server.quoting import quoted

_WIDTH = 100
_LINE = re.compile(r"(?:(?P<client>\w+):(?: |$))?(?P<requests>.*?)\s*=>(?: (?P<answer>.*))?")
_NUMBERS = re.compile(r"\{(\d+)\.\.(\d+)\}")
_AGGREGATES = {"*": "[{}]", "~": "~[{}]", ">": ">[{}]", "%": "{{{}}}"}


class TranscriptError(Exception):
    """A line of a transcript that cannot be read."""


def shown(data: bytes) -> str:
    """Replies, as a transcript has them."""
    found, at = [], 0
    while at < len(data):
        text, at = _shown(data, at)
        found.append(text)
    return " & ".join(found) or "nothing"


def _shown(data: bytes, at: int) -> tuple[str, int]:
    """The reply at a place, and where the next one begins."""
    end = data.index(b"\r\n", at)
    mark, line, at = chr(data[at]), data[at + 1 : end].decode("utf-8", "backslashreplace"), end + 2
    if mark == "_":
        return "null", at
    if line == "-1" and mark in "$*":
        return ("nil" if mark == "$" else "nil array"), at
    if mark in "$=":
        end = at + int(line)
        assert data[end : end + 2] == b"\r\n"
        return mark.replace("$", "") + quoted(data[at:end]), end + 2
    if mark not in _AGGREGATES:
        return mark + line, at
    parts: list[str] = []
    for _ in range(int(line) * (2 if mark == "%" else 1)):
        part, at = _shown(data, at)
        parts.append(part)
    if mark == "%":
        parts = [f"{key}: {value}" for key, value in zip(parts[::2], parts[1::2], strict=True)]
    return _AGGREGATES[mark].format(", ".join(parts)), at


def repeated(requests: str) -> Iterator[str]:
    """Requests that are separated by ``|``, each as often as its numbers say.

    >>> list(repeated("PING | XADD k {1..2}-{1..2} f v"))
    ['PING', 'XADD k 1-1 f v', 'XADD k 2-2 f v']
    """
    for request in requests.split(" | "):
        found = _NUMBERS.search(request)
        if found is None:
            yield request
        else:
            for number in range(int(found[1]), int(found[2]) + 1):
                yield request.replace(found[0], str(number))


class Transcript:
    """A file of transcripts, and the answers that are new."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = path.read_text(encoding="utf-8").splitlines()
        self.sections: list[Section] = []
        self.answers: dict[int, str] = {}
        """By the number of the line that has been asked."""
        for number, line in enumerate(self.lines, 1):
            if line.startswith("== "):
                self.sections.append(Section(self, number, line[3:]))
            elif line and not line.startswith(("# ", "| ")):
                if not self.sections:
                    raise TranscriptError(f"{path}:{number}: a title comes first")
                self.sections[-1].steps.append(Step(number, self.joined(number)))

    def joined(self, number: int) -> str:
        """A line with the lines of its answer below it."""
        below = itertools.takewhile(lambda line: line.startswith("| "), self.lines[number:])
        return " ".join([self.lines[number - 1], *(line[2:] for line in below)])

    def rewrite(self, number: int, answer: str) -> None:
        """Write the answer to a line."""
        self.answers[number] = answer
        written: list[str] = []
        for at, line in enumerate(self.lines, 1):
            if at in self.answers:
                before = line.partition("=>")[0] + "=>"
                written += laid_out(before, self.answers[at])
            elif not line.startswith("| ") or not self._is_answered_anew(at):
                written.append(line)
        self.path.write_text("\n".join(written) + "\n", encoding="utf-8")

    def _is_answered_anew(self, number: int) -> bool:
        """Whether the answer that a line is a part of is replaced."""
        while self.lines[number - 1].startswith("| "):
            number -= 1
        return number in self.answers


class Step(NamedTuple):
    """A line that is played: its number, and its text."""

    number: int
    line: str


class Section:
    """A test: a title, and lines that are played one after the other."""

    def __init__(self, transcript: Transcript, number: int, title: str) -> None:
        self.transcript = transcript
        self.number = number
        self.title, _, how = title.partition(" (")
        words = (word.partition("=") for word in how.removesuffix(")").split(", ") if word)
        self.settings: dict[str, Any] = {name: value or True for name, _, value in words}
        self.steps: list[Step] = []

    def __str__(self) -> str:
        return self.title

    def play(self) -> None:
        """Ask everything, and compare the answers, or write them."""
        path = self.transcript.path
        assert self.steps, f"{path}:{self.number}: nothing is asked"
        with an_engine(**self.settings) as engine:
            clients: dict[str, Client] = {}
            for number, line in self.steps:
                found = self._parsed(number, line)
                client = clients.setdefault(found["client"] or "", Client(engine))
                answers = {shown(client.asked(one)) for one in repeated(found["requests"])}
                answer, expected = " or ".join(sorted(answers)), found["answer"] or ""
                if answer == expected or (
                    expected.endswith("...") and answer.startswith(expected[:-3])
                ):
                    continue
                if not states.rewriting:
                    pytest.fail(f"{path}:{number}: {line}\nit answers {answer}", pytrace=False)
                self.transcript.rewrite(number, answer)

    def requests(self) -> Iterator[tuple[str, str]]:
        """The client of each request, and the request."""
        for number, line in self.steps:
            found = self._parsed(number, line)
            for request in repeated(found["requests"]):
                yield found["client"] or "", request

    def _parsed(self, number: int, line: str) -> re.Match[str]:
        found = _LINE.fullmatch(line)
        if found is None:
            path = self.transcript.path
            raise TranscriptError(f"{path}:{number}: not a request, =>, an answer: {line}")
        return found


def laid_out(before: str, answer: str) -> list[str]:
    """The lines of a request, up to ``=>``, with its answer."""
    if len(before) + 1 + len(answer) <= _WIDTH:
        return [f"{before} {answer}"]
    below = textwrap.wrap(answer, _WIDTH - 2, break_long_words=False, break_on_hyphens=False)
    return [before, *(f"| {line}" for line in below)]


def transcript(name: str) -> pytest.MarkDecorator:
    """Call a test for each section of ``testdata/<name>``, beside the test's own file."""
    caller = inspect.stack()[1].filename
    sections = Transcript(Path(caller).parent / "testdata" / name).sections
    assert sections, f"{name} has no section"
    return pytest.mark.parametrize("section", sections, ids=str)
