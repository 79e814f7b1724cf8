"""Several processes that read and write one store: what each has counted, all see.

    python examples/shared_counter.py

starts four processes that count the words of some texts, each with the store open.  In the middle
it kills the one that owns the store: another one takes over, and no count is lost.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import time
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import lsmkv

TEXTS = [
    "the quick brown fox jumps over the lazy dog",
    "the early bird catches the worm",
    "a bird in the hand is worth two in the bush",
    "let sleeping dogs lie",
]


def count(path: str, texts: SimpleQueue[str | None]) -> None:
    """Count the words of the texts that come, until None does."""
    with lsmkv.SharedDB(path, create_if_missing=True) as store:
        while (text := texts.get()) is not None:
            for word in text.split():
                store.update(word.encode(), lambda old: b"%d" % (int(old or 0) + 1))
            store.update(b"#texts", lambda old: b"%d" % (int(old or 0) + 1))


def owner_of(path: str) -> int:
    """The process that owns the store, once there is one."""
    while True:
        try:
            return int(Path(path, "LOCK").read_text())
        except (FileNotFoundError, ValueError):
            time.sleep(0.01)


def main() -> None:
    """Let three processes count each text six times, while a fourth owns the store for a while."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "words")
        queues = [context.SimpleQueue() for _ in range(4)]
        processes = [context.Process(target=count, args=(path, queue)) for queue in queues]
        for process in processes:
            process.start()
        owner = owner_of(path)
        with lsmkv.SharedDB(path, may_own=False) as store:
            for queue, process in zip(queues, processes, strict=True):
                if process.pid != owner:
                    for text in TEXTS * 6:
                        queue.put(text)
            while int(store.get(b"#texts", b"0")) < 20:
                time.sleep(0.001)
            os.kill(owner, signal.SIGKILL)
            print("killed the owner")
            for queue in queues:
                queue.put(None)
            for process in processes:
                process.join()
        with lsmkv.SharedDB(path) as store:
            print(f"{int(store.get(b'#texts'))} texts were counted, by three processes")
            counted = {word: int(number) for word, number in store if not word.startswith(b"#")}
        words = sorted(counted, key=lambda word: (-counted[word], word))
        for word in words[:3]:
            print(f"{word.decode():>6} {counted[word]}")


if __name__ == "__main__":
    main()
