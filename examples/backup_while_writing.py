"""Two backups of a store that is being written to, each as of one moment, and proven so.

    python examples/backup_while_writing.py [DIRECTORY]

A thread moves coins between a hundred accounts without a pause, and writes down each move, in one
batch.  A backup as of one moment has the first moves without a gap, and balances that follow from
them.  (A copy of the files, one by one, has neither, or does not open.)

``db.checkpoint`` makes a second store.  It shares the tables by hard links, so it takes next to no
time and room, and must be copied elsewhere to survive the disk.  A snapshot's iterator goes through
the keys: that takes as long as the store is large, and its copy can go anywhere and have any form.
Writing goes on during both.
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import lsmkv

ACCOUNTS, COINS = 100, 1000


def account(number: int) -> bytes:
    return b"account:%03d" % number


class Bank(threading.Thread):
    """Moves coins until it is told to stop."""

    def __init__(self, db: lsmkv.DB) -> None:
        super().__init__()
        self.moves = 0
        self.stop = threading.Event()
        self._db = db
        with db.write_batch() as batch:
            for number in range(ACCOUNTS):
                batch.put(account(number), b"%d" % COINS)

    def run(self) -> None:
        chance = random.Random(1)
        while not self.stop.is_set():
            one, other = (account(number) for number in chance.sample(range(ACCOUNTS), 2))
            of_one, of_other = int(self._db.get(one, b"")), int(self._db.get(other, b""))
            coins = chance.randint(0, of_one)
            with self._db.write_batch() as batch:
                batch.put(one, b"%d" % (of_one - coins))
                batch.put(other, b"%d" % (of_other + coins))
                batch.put(b"move:%09d" % self.moves, b"%b %b %d" % (one, other, coins))
            self.moves += 1

    def make(self, moves: int) -> None:
        """Wait until it has made so many more."""
        until = self.moves + moves
        while self.moves < until and self.is_alive():
            time.sleep(0.01)


def verify(pairs: Iterable[tuple[bytes, bytes]]) -> int:
    """Make all moves again, and compare the balances; how many moves there were."""
    content = dict(pairs)
    balances = {account(number): COINS for number in range(ACCOUNTS)}
    moves = len(content) - ACCOUNTS
    for number in range(moves):
        one, other, coins = content[b"move:%09d" % number].split()
        balances[one] -= int(coins)
        balances[other] += int(coins)
    for name, balance in balances.items():
        if int(content[name]) != balance:
            raise SystemExit(f"{name.decode()} has {int(content[name])} coins, not {balance}")
    return moves


def main(path: Path) -> None:
    with lsmkv.DB(path / "bank", create_if_missing=True, error_if_exists=True) as db:
        bank = Bank(db)
        bank.start()
        try:
            bank.make(1000)
            db.checkpoint(path / "checkpoint")
            with db.snapshot() as moment:
                bank.make(1000)  # the snapshot does not see these
                with lsmkv.open(path / "copy", "n") as copy:
                    copy.update(moment.iterator(fill_cache=False))
            bank.make(1000)
        finally:
            bank.stop.set()
            bank.join()
        print(f"the bank: {verify(db):,} moves, and the balances follow from them")
    for backup in ("checkpoint", "copy"):
        with lsmkv.DB(path / backup, read_only=True) as db:
            db.check()  # reads every block
            print(f"the {backup}: {verify(db):,} moves, and the balances follow from them")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as directory:
            main(Path(directory))
