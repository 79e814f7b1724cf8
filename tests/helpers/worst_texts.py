"""Feeds each regular expression of a source tree its worst texts: for ``tests/test_regexes.py``.

It prints how many texts were read.  The system ends it after a minute of processor time, which is
far more than what linear expressions take, and far less than others do.
"""

from __future__ import annotations

import contextlib
import re
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from regexes import pumps, uses

from lsmkv.course.predict.task import answer_in
from lsmkv.server.globs import matcher
from lsmkv.server.numbers import to_decimal, to_float
from lsmkv.server.quoting import split_words
from lsmkv.server.resp import CommandError
from lsmkv.server.scripts.frames import with_frames
from lsmkv.shards.remote.objects.store_errors import read_reply
from lsmkv.tools.inspect.plain import grouped

SECONDS = 60
LENGTH = 100_000
HUGE = 1_000_000


def read(pattern: str | bytes, flags: int, searches: bool) -> int:
    """How many texts an expression has read: each of its loops, with several ends."""
    compiled: re.Pattern[Any] = re.compile(pattern, flags)
    count = 0
    for before, again in pumps(pattern, flags, searches):
        for end in ("", "\0", "\n!", again[:-1] + "\x7f"):
            text = before + again * (LENGTH // len(again)) + end
            given: Any = text if isinstance(pattern, str) else text.encode("latin-1")
            for found in compiled.finditer(given) if searches else [compiled.fullmatch(given)]:
                del found
            count += 1
    return count


def call(function: Callable[[Any], object], given: Any) -> None:
    """These may refuse what they are given, with ``ValueError`` or the server's error."""
    with contextlib.suppress(ValueError, CommandError):
        function(given)


def main() -> None:
    """Read the worst texts with each expression, and with functions that use the other ones."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    total = 0
    for use in uses(Path(sys.argv[1])):
        if use.pattern is not None:
            with contextlib.suppress(ValueError):  # one that is not taken apart: called below
                total += read(use.pattern, use.flags, use.searches)
    for text in (b"return f(", b"return.", b"[=", b"--[=", b"--[=[]=", b'"\\"', b"[==[]=]=", b"--"):
        call(with_frames, b"return f()" + text * (HUGE // len(text)))
    for mark in (b"[", b"--["):
        call(with_frames, b"return f()" + mark + b"=" * HUGE + b"[" + (b"]" + b"=" * 999) * 999)
    for text in (b"a", b'"', b"a ", b'"\\"', b"'' ", b"\\", b"'\\'"):
        for end in (b"", b'"', b"'"):
            call(split_words, text * (HUGE // len(text)) + end)
    for number in (b"1", b"0.1", b"0x1", b"0x.1"):
        for function in (to_float, to_decimal):
            call(function, number + b"1" * HUGE + b"g")
            call(function, number + b"1" * HUGE)
    for reply in ("<Message>" + " " * HUGE + "<", '"message":' + " " * HUGE, "<Code>" + " " * HUGE):
        call(read_reply, "status code: 400 Bad: " + reply)
    for place in ("Error performing ", "Error performing a b in 1", "Generic ", "status code: "):
        call(read_reply, place * (HUGE // len(place)))
    call(matcher(b"*a" * 500 + b"*b"), b"a" * LENGTH)
    call(answer_in, "1" * HUGE)
    call(grouped, "'" * HUGE)
    sys.stdout.write(f"{total}\n")


if __name__ == "__main__":  # pytest imports it for its doctests
    main()
