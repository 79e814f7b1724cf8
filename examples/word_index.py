"""A search index over a few texts, as one would write it for plyvel.

    python examples/word_index.py

Put ``import plyvel`` instead of the import below, and it runs on C++ LevelDB with the same
output: nothing else has to change.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable

from lsmkv import plyvel

TEXTS = {
    b"ant": "The ant keeps her winter store in summer.",
    b"bee": "The bee keeps no store but honey, and honey keeps.",
    b"cat": "A cat keeps her own counsel.",
}


class Index:
    """Texts under ``t/``, and ``w/word NUL text`` for every word of every text."""

    def __init__(self, db: plyvel.DB) -> None:
        self._db = db
        self._texts = db.prefixed_db(b"t/")
        self._words = db.prefixed_db(b"w/")

    def add(self, name: bytes, text: str) -> None:
        """Store a text and its words together, or not at all."""
        with self._db.write_batch(transaction=True, sync=True) as batch:
            batch.put(b"t/" + name, text.encode())
            for word in words(text):
                batch.put(b"w/%b\0%b" % (word, name), b"")

    def find(self, word: bytes) -> list[bytes]:
        """The names of the texts with this word."""
        keys = self._words.iterator(prefix=word + b"\0", include_value=False)
        return [key.partition(b"\0")[2] for key in keys]

    def words_from(self, first: bytes, count: int) -> list[bytes]:
        """So many different words, from the first that is not before this one."""
        found: list[bytes] = []
        with self._words.iterator(start=first, include_value=False) as keys:
            while len(found) < count:
                key = next(keys, None)
                if key is None:
                    break
                found.append(key.partition(b"\0")[0])
                keys.seek(found[-1] + b"\1")
        return found

    def last_text(self) -> bytes:
        """The name that sorts last."""
        for name in self._texts.iterator(reverse=True, include_value=False):
            return bytes(name)
        raise LookupError("no texts")


def words(text: str) -> Iterable[bytes]:
    """Each word once."""
    return {word.encode() for word in re.findall(r"\w+", text.lower())}


def main(directory: str) -> None:
    """Fill an index, ask it, and change it under a snapshot's eyes."""
    try:
        plyvel.DB(directory)
    except plyvel.Error:
        print("nothing there yet")
    db = plyvel.DB(directory, create_if_missing=True, bloom_filter_bits=10)
    index = Index(db)
    for name, text in TEXTS.items():
        index.add(name, text)
    print("keeps:", index.find(b"keeps"))
    print("keep:", index.find(b"keep"))
    print("from h:", index.words_from(b"h", 4))
    print("last:", index.last_text())

    before = db.snapshot()
    db.delete(b"t/cat")
    print("cat now:", db.get(b"t/cat"), "- before:", before.get(b"t/cat"))
    before.close()

    try:
        with db.write_batch(transaction=True) as batch:
            batch.delete(b"t/bee")
            raise KeyError("changed my mind")
    except KeyError:
        print("bee:", db.get(b"t/bee", b"gone"))

    with db.raw_iterator() as cursor:
        cursor.seek(b"t/b")
        print("at:", cursor.key())
        cursor.prev()
        cursor.prev()
        try:
            cursor.value()
        except plyvel.IteratorInvalidError:
            print("nothing before the first")

    db.compact_range(start=b"", stop=b"\xff")
    print("files at level 0:", db.get_property(b"leveldb.num-files-at-level0"))
    db.close()
    try:
        db.get(b"t/ant")
    except RuntimeError:
        print("closed:", db.closed)
    plyvel.destroy_db(directory)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(directory + "/index")
