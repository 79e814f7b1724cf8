"""The language of transcripts (tests/helpers/transcripts.py): read, compared, rewritten."""

from __future__ import annotations

from pathlib import Path

import pytest
import states
from transcripts import Transcript, TranscriptError, shown

TEXT = """\
== One client
# A comment.
SET k 'a "b"'        => +OK
GET k | GETDEL k     => "a \\"b\\""
GET k                => nil
HELLO 3              => {"server": "redis", ...
INCR k x             => -ERR ...

== Two clients (password=p)
AUTH p               => +OK
other: AUTH p        => +OK
other: SUBSCRIBE c d => ["subscribe", "c", :1] & ["subscribe", "d", :2]
PUBLISH c m          => :1
other:               => ["message", "c", "m"]
CONFIG GET maxclients timeout slowlog-max-len slowlog-log-slower-than =>
| ["maxclients", "10000", "slowlog-log-slower-than", "10000", "slowlog-max-len", "128", "timeout",
| "0"]
"""


def written(tmp_path: Path, text: str) -> Transcript:
    path = tmp_path / "asked.txt"
    path.write_text(text, encoding="utf-8")
    return Transcript(path)


def play(transcript: Transcript) -> None:
    for section in transcript.sections:
        section.play()


def test_a_transcript_is_played(tmp_path: Path) -> None:
    first, second = written(tmp_path, TEXT).sections
    assert (str(first), str(second)) == ("One client", "Two clients")
    assert second.settings == {"password": "p"}
    first.play()
    second.play()


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (":1\nother:", ":2\nother:"),
        ("| GETDEL k", "| GETDEL j"),
        ('"subscribe", "d", :2]', '"subscribe", "d", :3]'),
        ("=> nil", "=> nil array"),
        ('| "0"]', '| "1"]'),
        ("-ERR ...", "-WRONG ..."),
        ('["message", "c", "m"]', "nothing"),
    ],
)
def test_a_wrong_answer_is_noticed(tmp_path: Path, right: str, wrong: str) -> None:
    assert TEXT.count(right) == 1
    transcript = written(tmp_path, TEXT.replace(right, wrong))
    with pytest.raises(pytest.fail.Exception, match=r"asked\.txt:\d+: .*\nit answers "):
        play(transcript)


@pytest.mark.parametrize("text", ["GET k => nil", "== A title\nGET k", "== A title\n"])
def test_what_is_no_transcript_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises((TranscriptError, AssertionError), match=r"asked\.txt:\d"):
        written(tmp_path, text).sections[0].play()


def test_answers_are_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "rewriting", True)
    wrong = TEXT.replace("=> nil", "=>").replace(":1\nother:", ":7\nother:")
    wrong = wrong.replace('| "0"]\n', "").replace('"timeout",', '"none"]')
    transcript = written(tmp_path, wrong)
    play(transcript)
    assert transcript.path.read_text(encoding="utf-8") == TEXT


def test_marks_of_types_are_shown() -> None:
    data = b"*2\r\n$-1\r\n:-5\r\n%1\r\n+a\r\n#t\r\n~1\r\n,1.5\r\n_\r\n*-1\r\n=5\r\ntxt:a\r\n*0\r\n"
    assert shown(data) == ('[nil, :-5] & {+a: #t} & ~[,1.5] & null & nil array & ="txt:a" & []')
    assert shown(b"") == "nothing"
