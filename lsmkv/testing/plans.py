"""The events in the runs of a seed besides their schedule: calls that fail, and crashes."""

from __future__ import annotations

import errno
import os
import random
from dataclasses import dataclass

from lsmkv.testing.durable import NameModel, Tails
from lsmkv.testing.faulty import FaultyEnv

_ERRORS = (errno.EIO, errno.ENOSPC)


@dataclass(frozen=True)
class Crash:
    """The end of a life: after its n-th call of the file system."""

    after: int
    names: NameModel | None
    """The unsynced names that a power cut leaves; None if the process is killed."""
    tails: Tails
    seed: int

    @property
    def how(self) -> str:
        """The kind of crash, in two words."""
        return "killed" if self.names is None else "power cut"

    def restart(self, env: FaultyEnv) -> FaultyEnv:
        """The file system with which the next life begins."""
        if self.names is None:
            return env.kill()
        return env.power_cut(self.names, random.Random(self.seed), tails=self.tails)

    def __str__(self) -> str:
        if self.names is None:
            return "killed"
        return f"a power cut (names: {self.names.value}; content: {self.tails.value})"


@dataclass(frozen=True)
class Fault:
    """A call of the file system that fails in one life."""

    life: int
    call: int
    code: int
    sticky: bool
    short: bool

    def arm(self, env: FaultyEnv) -> None:
        """Make the call fail."""
        error = OSError(self.code, os.strerror(self.code))
        env.fail_at(self.call, error, sticky=self.sticky, short=self.short)

    def __str__(self) -> str:
        text = f"file system call {self.call} fails: {os.strerror(self.code)}"
        return text + (", and so do all later ones" if self.sticky else "")


@dataclass(frozen=True)
class Plan:
    """The crashes and faults of one run."""

    crashes: tuple[Crash, ...] = ()
    fault: Fault | None = None


def draw_plan(seed: int, calls: int, crashes: int, faults: bool) -> Plan:
    """The plan of a seed, for a program that makes about this many calls in a life.

    Some runs have fewer crashes, and some no fault, so that such runs are tested as well.
    """
    rng = random.Random(f"{seed} plan")
    lives = tuple(_draw_crash(rng, calls) for _ in range(rng.randint(min(crashes, 1), crashes)))
    fault = None
    if faults and rng.random() < 0.8:
        fault = Fault(
            rng.randint(0, len(lives)),
            rng.randint(1, max(1, calls)),
            rng.choice(_ERRORS),
            rng.random() < 0.3,
            rng.random() < 0.5,
        )
    return Plan(lives, fault)


def _draw_crash(rng: random.Random, calls: int) -> Crash:
    names = rng.choice((None, *NameModel))
    return Crash(
        rng.randint(1, max(1, calls)), names, rng.choice(list(Tails)), rng.randrange(1 << 30)
    )
