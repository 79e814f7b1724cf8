"""Draws ``top.svg``: the screen of ``lsmkv top`` beside a real store that is read and written.

``make pictures`` runs it, and it takes most of a minute: the figures are those of this machine.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import tempfile
import threading
import time
from pathlib import Path

import lsmkv
from lsmkv.engine.env.local import LocalEnv
from lsmkv.tools.top.app import TopApp
from lsmkv.tools.top.watch import Watch

PICTURE = Path(__file__).resolve().parent / "top.svg"
SIZE = (80, 24)
SECONDS = 45.0
KEYS = 40_000


def work(path: str, done: threading.Event) -> None:
    """Read and write a store, now more and now less, until it is done."""
    choose = random.Random(1)
    options: lsmkv.OptionArguments = {"write_buffer_size": 1 << 20, "lru_cache_size": 2 << 20}
    with lsmkv.DB(path, create_if_missing=True, publish_stats=True, **options) as db:
        for n in range(KEYS):
            db.put(b"user:%06d" % n, choose.randbytes(60))
        while not done.is_set():
            for _ in range(choose.randrange(40)):
                key = int(choose.expovariate(8 / KEYS))
                db.get(b"user:%06d" % key)
                db.get(b"user:%06d:seen" % key)
                db.put(b"user:%06d" % choose.randrange(KEYS), choose.randbytes(60))
            with db.write_batch() as batch:
                for _ in range(5):
                    batch.put(b"log:%020d" % time.time_ns(), choose.randbytes(20))
            with db.iterator(prefix=b"user:%04d" % choose.randrange(KEYS // 100)) as users:
                next(users, None)
            time.sleep(0.004)


async def watch(path: str) -> str:
    """The screen after a while, as SVG."""
    with LocalEnv().open_directory(path) as directory:
        app = TopApp(Watch(directory))
        async with app.run_test(size=SIZE) as pilot:
            await pilot.pause(SECONDS)
            return app.export_screenshot()


def tidied(picture: str) -> str:
    """The picture with the reader's own fonts: it asks no other server for any."""
    picture = re.sub(r"(?s)<!--.*?-->\s*", "", picture)
    picture = re.sub(r"(?s)@font-face \{.*?\}\s*", "", picture)
    picture = re.sub(r"terminal-\d+-", "top-", picture)
    return picture.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, monospace")


def main() -> None:
    """Draw the picture."""
    done = threading.Event()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        worker = threading.Thread(target=work, args=("inventory", done))
        worker.start()
        try:
            while not os.path.exists("inventory/STATS.json"):
                time.sleep(0.1)
            picture = asyncio.run(watch("inventory"))
        finally:
            done.set()
            worker.join()
    PICTURE.write_text(tidied(picture), encoding="utf-8")


if __name__ == "__main__":
    main()
