"""LCS: the longest common subsequence of two strings."""

from __future__ import annotations

from lsmkv.server.numbers import to_int
from lsmkv.server.options import Options
from lsmkv.server.registry import command
from lsmkv.server.resp import CommandError, Reply, syntax_error
from lsmkv.server.session import Session
from lsmkv.server.subsequence import CommonSubsequence

_MOST = 512 * 2**20 // 4
"""Redis keeps a number of 4 bytes for each pair of bytes, in a separate string."""


@command("LCS", -3, "readonly", group="string")
def lcs(session: Session, args: list[bytes]) -> Reply:
    """Return the longest common subsequence of two strings, its length, or where its parts are."""
    space, database = session.space, session.database
    try:
        a, b = [space.string(database, key) or b"" for key in args[1:3]]
    except CommandError:
        raise CommandError("ERR The specified keys must contain string values") from None
    words: set[bytes] = set()
    least = 0
    options = Options(args[3:])
    for word in options:
        if word in (b"IDX", b"LEN", b"WITHMATCHLEN"):
            words.add(word)
        elif word == b"MINMATCHLEN" and options.left:
            least = to_int(options.value())
        else:
            raise syntax_error()
    if {b"IDX", b"LEN"} <= words:
        raise CommandError("ERR If you want both the length and indexes, please just use IDX.")
    if (len(a) + 1) * (len(b) + 1) > _MOST:
        raise CommandError(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
        )
    found = CommonSubsequence(a, b)
    if b"LEN" in words:
        return found.length
    matches = found.matches()
    if b"IDX" not in words:
        return b"".join(a[one.first : one.first + one.length] for one in reversed(matches))
    shown = [
        [
            [one.first, one.first + one.length - 1],
            [one.second, one.second + one.length - 1],
            *([one.length] if b"WITHMATCHLEN" in words else []),
        ]
        for one in matches
        if one.length >= least
    ]
    return {b"matches": shown, b"len": found.length}
