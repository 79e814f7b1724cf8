"""Two consistent backups of a store while it is being written.

    python examples/backup_while_writing.py [DIRECTORY]

A thread moves coins between a hundred accounts without a pause, and records each move in the same
batch.  A backup as of one moment has the first moves without a gap, and the balances that result
from them.  (A file-by-file copy may have neither, or may not open.)

``db.checkpoint`` makes a second store.  It shares the tables by hard links, so it takes almost no
time and space, and must be copied elsewhere to survive a failure of the disk.  A snapshot's
iterator reads all keys: that takes longer for a larger store, but its copy can go anywhere and have
any format.  Writes continue during both.
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
    """Moves coins until it is stopped."""

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
        """Wait until it has made this many more moves."""
        until = self.moves + moves
        while self.moves < until and self.is_alive():
            time.sleep(0.01)


def verify(pairs: Iterable[tuple[bytes, bytes]]) -> int:
    """Repeat all moves, and compare the balances.  Returns the number of moves."""
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
            before = bank.moves
            with db.snapshot() as moment:
                after = bank.moves + 1  # one may be written and not counted yet
                print(f"a snapshot, taken between moves {before:,} and {after:,}")
                bank.make(1000)  # the snapshot does not see these
                with lsmkv.open(path / "copy", "n") as copy:
                    copy.update(moment.iterator(fill_cache=False))
            bank.make(1000)
        finally:
            bank.stop.set()
            bank.join()
        print(f"the bank: {verify(db):,} moves, and the balances match")
    for backup in ("checkpoint", "copy"):
        with lsmkv.DB(path / backup, read_only=True) as db:
            db.check()  # reads every block
            print(f"the {backup}: {verify(db):,} moves, and the balances match")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as directory:
            main(Path(directory))
