"""The machines: what a run costs on them, and which trap an experiment fell into."""

from __future__ import annotations

import pytest

from lsmkv.course.labs.experimenting import conclude, experiment, ratio_interval
from lsmkv.course.labs.machines import TRAPS, Machine, Trap

NAMES = ("a", "b")


def machine_of(trap: Trap) -> Machine:
    costs = {"a": trap.a, "b": trap.b}
    return Machine(costs.__getitem__, {"a": trap.cold}, trap.drift, trap.noise)


def test_a_run_costs_more_when_cold_and_later() -> None:
    machine = Machine(lambda name: 10, {"a": 1}, drift=0.5)
    assert [machine(name) for name in "abab"] == [20, 15, 20, 25]
    assert machine.runs == ["a", "b", "a", "b"]
    assert machine.costs == {"a": [20, 20], "b": [15, 25]}


def test_noise_is_the_same_every_time() -> None:
    noisy = [Machine(lambda name: 10, noise=0.1)("a") for _ in range(2)]
    assert noisy[0] == noisy[1] != 10
    assert 9 <= noisy[0] <= 11


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.title)
def test_a_sound_experiment_finds_the_truth(trap: Trap) -> None:
    machine = machine_of(trap)
    got = experiment(machine, NAMES, trap.rounds, trap.warmup)
    low, _, high = ratio_interval(got["a"], got["b"], 200, 12)
    assert conclude(low, high) == trap.truth
    assert machine.trap(got, NAMES, trap.rounds, trap.warmup) == ""


@pytest.mark.parametrize(
    ("order", "kept", "words"),
    [
        ("aaaabbbb", slice(1, None), "all runs of 'a' came before the first of 'b'"),
        ("abababab", slice(1, None), "'a' was first in every round"),
        ("abbaab", slice(0, None), "there was no warm-up"),
        ("abbaabba", slice(0, None), "the 1 warm-up rounds are kept"),
        ("abbaabba", slice(0, -1), "the last rounds were dropped"),
        ("baabbaab", slice(1, None), "must be that of alternate(names, 1 + 3)"),
        ("abbaabba", slice(None, 0, -1), "in the same order"),
        ("abbaabba", slice(2, None), "You dropped 2 samples of each, but must drop 1"),
    ],
)
def test_a_trap_is_named(order: str, kept: slice, words: str) -> None:
    machine = Machine(lambda name: 10, drift=0.1)
    for name in order:
        machine(name)
    got = {name: costs[kept] for name, costs in machine.costs.items()}
    assert words in machine.trap(got, NAMES, 3, 1)
