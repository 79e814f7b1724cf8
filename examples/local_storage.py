"""What web pages keep in a browser's Local Storage, read while the browser runs.

    python examples/local_storage.py ["~/.config/chromium/Default/Local Storage/leveldb" [ORIGIN]]

Without arguments it makes a small sample in Chromium's layout and reads that.  Opened with
``read_only=True``, a store is not locked and nothing is written: the browser notices nothing.  What
pages wrote in the last seconds may still be in the browser's memory.  docs/other-programs.md
describes the keys, and IndexedDB's, which are more.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import lsmkv


def text(stored: bytes) -> str:
    """A name or a value: its first byte is the encoding of the rest."""
    if stored[:1] == b"\x01":
        return stored[1:].decode("latin-1")
    if stored[:1] == b"\x00":
        return stored[1:].decode("utf-16-le", errors="replace")  # JavaScript's text may be broken
    raise ValueError(f"neither UTF-16 nor Latin-1: {stored[:20]!r}")


def origins(db: lsmkv.DB) -> Iterator[str]:
    """The origins that have items, with one seek each."""
    with db.iterator(prefix=b"_", include_value=False) as keys:
        for key in keys:
            origin = key[1:].partition(b"\0")[0]
            yield origin.decode()
            keys.seek(b"_%b\x01" % origin)  # the byte that comes after the NUL


def items(db: lsmkv.DB, origin: str) -> Iterator[tuple[str, str]]:
    """Names and values of one origin."""
    for name, value in db.prefixed_db(b"_%b\0" % origin.encode()):
        yield text(name), text(value)


def main(path: Path, wanted: str | None) -> None:
    with lsmkv.DB(path, read_only=True) as db:
        print("version of the layout:", db.get(b"VERSION", b"none").decode())
        for origin in [wanted] if wanted else origins(db):
            found = list(items(db, origin))
            print(f"{origin}: {len(found)} items")
            for name, value in found:
                # A page chose these texts: repr() keeps control characters away from the terminal.
                shown = repr(value)
                print(f"    {name!r} = {shown if len(shown) <= 60 else shown[:56] + ' ...'}")


def make_sample(path: Path) -> None:
    """Two sites, and a frame of the second one in the first, as Chromium writes them."""
    with lsmkv.DB(path, create_if_missing=True) as db, db.write_batch() as batch:
        batch.put(b"VERSION", b"1")
        for origin, name, value in (
            (b"https://example.org", b"\x01color", b"\x01blue"),
            (b"https://example.org", b"\x01name", b"\x00" + "Ольга".encode("utf-16-le")),
            (b"https://other.example", b"\x01cart", b"\x01" + b"[1, 2, 3], " * 9),
            (b"https://other.example/^0https://example.org", b"\x01id", b"\x01\x1b[31m42"),
        ):
            batch.put(b"_%b\0%b" % (origin, name), value)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]).expanduser(), sys.argv[2] if len(sys.argv) > 2 else None)
    else:
        with tempfile.TemporaryDirectory() as directory:
            make_sample(Path(directory, "leveldb"))
            main(Path(directory, "leveldb"), None)
