"""Full-text search of a folder: an inverted index, AND queries, and updates by modification time.

    python examples/folder_search.py [FOLDER INDEX WORD...]

Reads the files of FOLDER that are new or changed since the last run, and prints those that contain
all of the words, best first.  Without arguments it uses a few sample files.

Under ``w:WORD NUL NAME`` stands how often a word is in a file, so the files with a word are one
range.  Under ``f:NAME`` stands what a file looked like and which words it had: that is needed to
take them out again.  Under ``n`` stands how many files there are, since a search should not have to
count them.  All three change in one batch, so after a crash no file is half in the index.  One
program updates an index at a time.
"""

from __future__ import annotations

import json
import math
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TypedDict

import lsmkv


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


class Known(TypedDict):
    """What the index stores about a file."""

    seen: list[int]  # its modification time and its size
    words: dict[str, int]


class Index:
    """The words of a folder's text files."""

    def __init__(self, db: lsmkv.DB, folder: Path) -> None:
        self._db = db
        self._folder = folder

    def update(self, pattern: str = "**/*.txt") -> tuple[list[str], list[str]]:
        """Update the index.  Returns the names of the files that were read, and of the removed
        ones."""
        read, there = [], set()
        for path in sorted(self._folder.glob(pattern)):
            name = path.relative_to(self._folder).as_posix()
            there.add(name)
            status = path.stat()
            seen = [status.st_mtime_ns, status.st_size]
            known = self._known(name)
            if known is None or known["seen"] != seen:
                counts = Counter(words(path.read_text(encoding="utf-8", errors="replace")))
                self._replace(name, known, {"seen": seen, "words": dict(counts)})
                read.append(name)
        names = [key[2:].decode() for key in self._db.iterator(prefix=b"f:", include_value=False)]
        gone = [name for name in names if name not in there]
        for name in gone:
            self._replace(name, self._known(name), None)
        return read, gone

    def search(self, query: str) -> list[tuple[str, float]]:
        """The files that contain all words, with their scores, best first.

        A word counts for more if fewer files contain it, and if it is more frequent in the file.
        """
        scores: dict[str, float] = {}
        total = self._total()
        for number, word in enumerate(sorted(set(words(query)))):
            prefix = f"w:{word}\0".encode()
            files = {
                key[len(prefix) :].decode(): int(count)
                for key, count in self._db.iterator(prefix=prefix)
            }
            weight = math.log(1 + total / len(files)) if files else 0
            scores = {
                name: scores.get(name, 0) + weight * (1 + math.log(count))
                for name, count in files.items()
                if number == 0 or name in scores
            }
        return sorted(scores.items(), key=lambda found: (-found[1], found[0]))

    def _total(self) -> int:
        """The number of files in the index."""
        return int(self._db.get(b"n", b"0"))

    def _known(self, name: str) -> Known | None:
        value = self._db.get(f"f:{name}".encode())
        return None if value is None else json.loads(value)

    def _replace(self, name: str, old: Known | None, new: Known | None) -> None:
        """Remove a file's old words, and add its new ones."""
        with self._db.write_batch() as batch:
            for word in old["words"] if old else ():
                batch.delete(f"w:{word}\0{name}".encode())
            for word, count in new["words"].items() if new else ():
                batch.put(f"w:{word}\0{name}".encode(), b"%d" % count)
            if new:
                batch.put(f"f:{name}".encode(), json.dumps(new).encode())
            else:
                batch.delete(f"f:{name}".encode())
            batch.put(b"n", b"%d" % (self._total() + bool(new) - bool(old)))


def main(folder: Path, path: Path, query: str) -> None:
    with lsmkv.DB(path, create_if_missing=True) as db:
        index = Index(db, folder)
        read, gone = index.update()
        print(f"{query} (files read: {len(read)}, gone: {len(gone)})")
        for name, score in index.search(query):
            print(f"{score:8.2f}  {name}")


def sample(folder: Path) -> None:
    """Make three files to search in."""
    texts = {
        "ant.txt": "The ant keeps her winter store in summer. The ant is small.",
        "bee.txt": "The bee keeps no store but honey, and honey keeps.",
        "cat.txt": "A cat keeps her own counsel, and no store.",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 3:
        main(Path(sys.argv[1]), Path(sys.argv[2]), " ".join(sys.argv[3:]))
    else:
        with tempfile.TemporaryDirectory() as directory:
            texts, index = Path(directory, "texts"), Path(directory, "index")
            texts.mkdir()
            sample(texts)
            main(texts, index, "store keeps honey")
            main(texts, index, "keeps store")
            (texts / "cat.txt").write_text("A cat stores no honey.", encoding="utf-8")
            (texts / "bee.txt").unlink()
            main(texts, index, "keeps store")
            main(texts, index, "honey")
