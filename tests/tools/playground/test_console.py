from __future__ import annotations

import pytest

from lsmkv.tools.playground.console import LONGEST, Console


def printed(source: str, console: Console | None = None) -> tuple[bool, str]:
    texts: list[str] = []
    done = (Console() if console is None else console).run(source, texts.append)
    return done, "".join(texts)


def test_values_of_expressions_are_printed() -> None:
    assert printed("1 + 1\nNone\n'a'; 'b'\nx = 3\nx") == (True, "2\n'a'\n'b'\n3\n")


def test_blocks_and_decorators_stay_whole() -> None:
    source = (
        "def same(one):\n    return one\n\n@same\ndef f():\n\n    return 7\nfor i in range(2):\n"
    )
    assert printed(source + "    f() + i\n") == (True, "7\n8\n")


def test_names_stay() -> None:
    console = Console()
    assert printed("db = lsmkv.DB(':memory:'); db.put(b'a', b'b')", console) == (True, "")
    assert printed("db.get(b'a')\ndb.close()", console) == (True, "b'b'\n")


def test_the_first_failure_ends_it() -> None:
    done, text = printed("print(1)\n1 // 0\nprint(2)\n")
    assert not done
    assert text.startswith("1\nTraceback (most recent call last):")
    assert text.rstrip().endswith("ZeroDivisionError: integer division or modulo by zero")


@pytest.mark.parametrize("source", ["1 +", "def f(:\n", "\0"])
def test_what_is_not_python_is_reported(source: str) -> None:
    done, text = printed(source)
    assert not done
    assert "Error" in text


def test_lengths_are_limited() -> None:
    with pytest.raises(ValueError, match="at most 100,000 characters"):
        printed("#" * (LONGEST + 1))
    done, text = printed("for i in range(3): print('x' * 60_000)")
    assert done
    assert len(text) < LONGEST + 100
    assert text.endswith("characters)\n")


def test_lines_are_written_whole() -> None:
    """Each piece costs the page a message, and ``print`` writes the end of a line by itself."""
    texts: list[str] = []
    assert Console().run("for i in range(3): print(i, i)\nprint('end', end='')", texts.append)
    assert texts == ["0 0\n", "1 1\n", "2 2\n", "end"]
