"""Who goes on: any thread, the one of the highest priority, or the one that is forced."""

from __future__ import annotations

import itertools
import random

import pytest

from lsmkv.testing.scheduler import Scheduler, Strategy, Thread
from lsmkv.testing.strategies import AsForced, Priorities, RandomWalk


def order(strategy: Strategy, threads: int = 3, steps: int = 4) -> str:
    """The numbers of the threads in the order of their steps; 1 is the one that starts them."""
    scheduler = Scheduler(strategy, 1000)
    seen: list[str] = []

    def work() -> None:
        for _ in range(steps):
            assert scheduler.current is not None
            seen.append(str(scheduler.current.number))
            scheduler.step("works")

    def main() -> None:
        for _ in range(threads):
            scheduler.start(work, (), "thread")

    scheduler.run(main)
    assert scheduler.failure is None
    return "".join(seen)


def test_without_forced_switches_a_thread_runs_to_its_end() -> None:
    assert order(AsForced()) == "222233334444"


def test_a_forced_switch_is_named_by_the_decision_of_a_thread() -> None:
    assert order(AsForced([(2, 2, 4), (4, 1, 3)])) == "224333344422"
    assert order(AsForced([(2, 2, 9)])) == "222233334444", "there is no such thread"


def test_a_random_walk_gives_every_thread_its_turns() -> None:
    orders = [order(RandomWalk(random.Random(seed))) for seed in range(100)]
    assert len(set(orders)) > 45
    assert orders.count("222233334444") > 5, "in some runs few switches are forced"
    assert order(RandomWalk(random.Random(7))) == order(RandomWalk(random.Random(7)))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_priorities_change_as_often_as_the_depth_says(depth: int) -> None:
    orders = {order(Priorities(random.Random(seed), depth, 12)) for seed in range(300)}
    changes = {sum(a != b for a, b in itertools.pairwise(one)) for one in orders}
    assert max(changes) <= 2 + 2 * (depth - 1)  # two ends of threads, and each change twice
    if depth == 1:
        assert len(orders) == 6  # every order of three threads


def test_a_mistake_of_depth_two_is_found_as_often_as_promised() -> None:
    """Only one order of two steps is wrong: PCT promises it in 1 of n * length runs."""
    wrong = sum(
        order(Priorities(random.Random(seed), 2, 8), 2) == "23333222" for seed in range(400)
    )
    assert wrong >= 400 / (2 * 8) / 2


def test_a_strategy_chooses_among_those_that_can_run() -> None:
    threads = [Thread(number, "t", None) for number in (3, 5)]
    for strategy in (RandomWalk(random.Random(1)), Priorities(random.Random(1), 2, 5)):
        assert {strategy.choose(threads[0], threads[0], threads) for _ in range(20)} <= set(threads)
