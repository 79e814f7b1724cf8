"""Draws ``measuring.svg``: two equal things on a machine that drifts, run in three orders."""

from __future__ import annotations

from drawing import BOXES, MARGIN, bar, card, text

from lsmkv.course.labs.experimenting import alternate, conclude, ratio_interval
from lsmkv.course.labs.machines import Machine

ROUNDS = 6
STEP = (480 - 2 * MARGIN) / (2 * ROUNDS)
TOP, HEIGHT, RISE = 92, 112, 44
DRIFT = 0.05
ORDERS = (
    ("All of a, then all of b", ["a"] * ROUNDS + ["b"] * ROUNDS),
    ("In turn, a always first", ["a", "b"] * ROUNDS),
    ("In turn, every other round reversed", alternate("ab", ROUNDS)),
)


def draw() -> str:
    """Each order in a row: a bar for each run, as high as its cost, and what follows from them."""
    parts = [
        text(
            MARGIN, 56, "small muted", "Each run costs more than the one before it, whatever runs."
        )
    ]
    for number, (title, order) in enumerate(ORDERS):
        y = TOP + number * HEIGHT
        machine = Machine(lambda name: 1, drift=DRIFT)
        costs = [machine(name) for name in order]
        low, ratio, high = ratio_interval(machine.costs["a"], machine.costs["b"], 200, 12)
        found = f"a / b = {ratio:.2f} ({low:.2f} to {high:.2f}): {conclude(low, high)}"
        parts += [text(MARGIN, y, "head", title), text(MARGIN, y + 18, "small", found)]
        bottom = y + 30 + RISE
        for at, (name, cost) in enumerate(zip(order, costs, strict=True)):
            x = MARGIN + at * STEP
            tall = RISE * cost / (1 + DRIFT * (2 * ROUNDS - 1))
            kind = "strong" if name == "a" else "weak"
            parts.append(bar(x, bottom - tall, STEP - 8, tall, kind))
            parts.append(text(x + STEP / 2 - 4, bottom + 14, "small muted middle", name))
    return card(
        "Two equal things, measured in three orders",
        "Bars of twelve runs that grow from left to right. When all runs of a come first, or a is"
        " first in each round, a seems faster than b. When every other round is reversed, no"
        " difference is shown.",
        TOP + len(ORDERS) * HEIGHT - 10,
        parts,
        style=BOXES,
    )
