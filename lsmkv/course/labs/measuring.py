"""Lab 12: measuring.  The student's experiments run on real stores, and on machines with traps.

Nothing is judged by the clock: what is measured is counted, or computed from a seed.
"""

from __future__ import annotations

import contextlib
import random
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import TypeGuard

import lsmkv
from lsmkv.course.failure import CheckFailure, require, require_equal, require_refused, shown
from lsmkv.course.lab import Check, Lab
from lsmkv.course.labs.bloom import predicted_rate, some_keys
from lsmkv.course.labs.experimenting import (
    FASTER,
    UNDECIDED,
    alternate,
    conclude,
    draws,
    experiment,
    predict,
    ratio_interval,
    summarize,
)
from lsmkv.course.labs.machines import TRAPS, Machine, Trap

RESAMPLES = 200
SEED = 12


def summaries(code: ModuleType) -> str:
    """Medians and quartiles of samples of all sizes."""
    dice = random.Random(1)
    cases: list[list[float]] = [[7], [4, 1], [9, 1, 5], [3, 1, 4, 2], [5, 1, 4, 2, 900]]
    cases += [[dice.randrange(800) / 8 for _ in range(size)] for size in range(1, 30)]
    for samples in cases:
        given = list(samples)
        got = code.summarize(given)
        require(
            given == samples,
            f"summarize({shown(samples)}) has changed the list that it was given. The samples of"
            " two things belong together round by round: sort a copy, with sorted().",
        )
        require_numbers(
            got, summarize(samples), f"summarize({shown(samples)})", summary_hint(got, samples)
        )
    require_refused(lambda: code.summarize([]), "summarize([])")
    return f"{len(cases)} sets of samples"


def summary_hint(got: object, samples: Sequence[float]) -> str:
    """The likely cause of a wrong summary."""
    median, lower, upper = summarize(samples)
    middle = len(samples) // 2
    ordered = sorted(samples)
    if not is_triple(got):
        return "The result is (median, lower quartile, upper quartile)."
    if got == (lower, median, upper):
        return "The median comes first: (median, lower quartile, upper quartile)."
    if got[0] == statistics.fmean(samples) and got[0] != median:
        return "That is the mean, which one slow run can change a lot. Take the median."
    if got[0] != median and len(samples) % 2:
        return "With an odd number of samples, it is the middle one, once they are sorted."
    if got[0] != median:
        return "With an even number of samples, the median is the mean of the two in the middle."
    inclusive = ordered[: middle + 1], ordered[middle:]
    if got[1:] == tuple(statistics.median(half) for half in inclusive):
        return "With an odd number of samples, the middle one belongs to neither half."
    return "A quartile is the median of a half: of those below the middle, and those above it."


def orders(code: ModuleType) -> str:
    """Orders of runs."""
    for names, rounds in ((("a", "b"), 2), (("a", "b"), 5), ("xyz", 4), (("one",), 3), ("ab", 0)):
        expected = alternate(names, rounds)
        got = code.alternate(tuple(names), rounds)
        hint = f"There are {rounds} rounds, and each thing runs once in each of them."
        if got == list(names) * rounds:
            hint = (
                f"Here {names[0]!r} is first in every round, so the others always come later in a"
                " drift. Reverse the order in every other round: a b b a."
            )
        elif isinstance(got, list) and got == sorted(got) and len(got) == len(expected):
            hint = f"Here all runs of {names[0]!r} come before the others. Alternate them."
        elif got == alternate(names[::-1], rounds):
            hint = "The first round has the order that was given; the second is reversed."
        require_equal(got, expected, f"alternate({tuple(names)}, {rounds})", hint)
    return "5 orders"


def intervals(code: ModuleType) -> str:
    """Ratios and their intervals, number for number."""
    dice = random.Random(3)
    missed = 0
    equal = 100
    few = [([3.0, 5.0, 4.0], [10.0, 10.0, 10.0]), ([40.0, 90.0, 60.0, 50.0], [50.0, 45.0, 80, 40])]
    pairs = few + [
        ([dice.uniform(9, 11) for _ in range(10)], [dice.uniform(9, 11) for _ in range(10)])
        for _ in range(equal)
    ]
    once, again = (  # ten, since intervals from other dice may be equal by chance
        [code.ratio_interval(list(a), list(b), RESAMPLES, SEED) for a, b in pairs[-10:]]
        for _ in range(2)
    )
    require(
        once == again,
        "ratio_interval returned something else when it was called again with the same samples and"
        " the same seed. Draw from a random.Random(seed) that each call creates.",
    )
    for number, (a, b) in enumerate(pairs):
        resamples = RESAMPLES if number % 2 else 130
        call = f"ratio_interval({shown_list(a)}, {shown_list(b)}, {resamples}, {number})"
        got = code.ratio_interval(list(a), list(b), resamples, number)
        hint = interval_hint(got, a, b, resamples, number)
        require_numbers(got, ratio_interval(a, b, resamples, number), call, hint)
        missed += number >= len(few) and conclude(got[0], got[2]) != UNDECIDED
    require_refused(lambda: code.ratio_interval([], [], 100, 1), "ratio_interval([], [], 100, 1)")
    require_refused(
        lambda: code.ratio_interval([1], [1, 2], 100, 1), "ratio_interval([1], [1, 2], 100, 1)"
    )
    return (
        f"{len(pairs)} intervals; of {equal} comparisons of equal things,"
        f" {missed} still show a difference"
    )


def interval_hint(
    got: object, a: Sequence[float], b: Sequence[float], resamples: int, seed: int
) -> str:
    """The likely cause of a wrong interval."""
    if not is_triple(got):
        return "The result is (low, ratio, high)."
    low, ratio, high = got
    ratios = [one / other for one, other in zip(a, b, strict=True)]
    expected = ratio_interval(a, b, resamples, seed)
    medians = sorted(
        statistics.median([ratios[number] for number in drawn])
        for drawn in draws(len(a), resamples, seed)
    )
    if not near(ratio, expected[1]):
        known = {
            ratio_interval(b, a, resamples, seed)[1]: "That is b over a. The ratio is a over b.",
            statistics.median(a) / statistics.median(b): "That is the ratio of the medians. Divide"
            " round by round first: then a disturbance of both runs of a round cancels.",
            statistics.fmean(ratios): "That is the mean of the ratios. Take their median.",
            statistics.median(medians): "That is the median of the resamples. `ratio` is the median"
            " of a[i] / b[i] of your rounds, not of the resamples.",
        }
        sentences = (words for value, words in known.items() if near(value, ratio))
        return next(
            sentences, "It is the median of a[i] / b[i] of your rounds, not of the resamples."
        )
    if near(low, ratio) and near(high, ratio):
        return "Draw with replacement: a round may occur several times, and another not at all."
    if near(low, medians[0]) and near(high, medians[-1]):
        return "Those are the extremes. Leave out the lowest and the highest 1 of 40."
    twice = resamples // 20
    if near(low, medians[twice]) and near(high, medians[-1 - twice]):
        return "That leaves out 5 % at each end. Leave out 2.5 %: resamples // 40."
    if near(low, expected[0]):
        return "The upper end is the median with the number resamples - 1 - cut, from 0."
    return (
        "A resample is as many ratios as there are rounds, drawn one by one with"
        " dice.randrange(rounds), and all resamples draw from the same dice."
    )


def conclusions(code: ModuleType) -> str:
    """Intervals on either side of 1, and around it."""
    inside = "The interval contains 1, which means no effect. So refuse to conclude."
    cases = (
        (0.7, 0.9, "All of the interval is below 1: a costs less than b."),
        (1.1, 1.5, "All of the interval is above 1: a costs more than b."),
        (0.5, 1.01, inside),
        (0.99, 3.0, inside),
        (0.9, 1.0, f"Its end is 1. {inside}"),
        (1.0, 1.2, f"Its end is 1. {inside}"),
        (1.0, 1.0, inside),
        (0.999, 0.9999, "A small effect is an effect: its size is another question."),
    )
    for low, high, hint in cases:
        require_equal(
            code.conclude(low, high), conclude(low, high), f"conclude({low}, {high})", hint
        )
    return f"{len(cases)} intervals"


# The experiment.


def require_samples(got: object, names: Sequence[str], what: str) -> dict[str, list[float]]:
    """Fail unless an experiment returned samples of these things."""
    good = (
        isinstance(got, dict)
        and set(got) == set(names)
        and all(isinstance(samples, list) for samples in got.values())
    )
    require(good, f"{what}: a dict with a list for each of {names} must be returned, not {got!r}.")
    assert isinstance(got, dict)
    for name in names:
        wrong = [cost for cost in got[name] if not is_number(cost)]
        require(not wrong, f"{what}: {wrong[:1]} is among the samples, but is not a number.")
    return got


def experiments(code: ModuleType) -> str:
    """Check the runs, their order, and the samples that are kept."""
    cases = ((("a", "b"), 4, 0), (("a", "b"), 4, 2), (("a", "b", "c"), 3, 1), (("b", "a"), 2, 3))
    for names, rounds, warmup in cases:
        # Each run costs one less than the one before it.
        machine, reference = (Machine(lambda name: 64, drift=-1 / 64) for _ in range(2))
        call = f"experiment(run, {names}, {rounds}, {warmup})"
        got = require_samples(code.experiment(machine, names, rounds, warmup), names, call)
        expected = experiment(reference, names, rounds, warmup)
        trap = machine.trap(got, names, rounds, warmup)
        require(
            machine.runs == reference.runs,
            f"{call} must run {' '.join(reference.runs)},\nbut yours ran"
            f" {' '.join(machine.runs) or 'nothing'}.\n{trap}",
        )
        for name in names:
            require(
                got[name] == expected[name],
                f"{call}: the samples of {name!r} must be {expected[name]}, but yours are"
                f" {got[name]}.\n{trap}",
            )
    return f"{len(cases)} experiments"


def traps(code: ModuleType) -> str:
    """Conclusions from the student's experiments, on machines that mislead."""
    for trap in TRAPS:
        costs = {"a": trap.a, "b": trap.b}
        machine = Machine(costs.__getitem__, {"a": trap.cold}, trap.drift, trap.noise)
        got = code.experiment(machine, ("a", "b"), trap.rounds, trap.warmup)
        samples = require_samples(got, ("a", "b"), trap.title)
        require_conclusion(machine, samples, ("a", "b"), trap.rounds, trap.warmup, trap)
    return f"{len(TRAPS)} machines"


def require_conclusion(
    machine: Machine,
    samples: Mapping[str, Sequence[float]],
    names: tuple[str, str],
    rounds: int,
    warmup: int,
    trap: Trap,
) -> None:
    """Fail unless the samples lead to the right conclusion; the message names the trap."""
    a, b = (samples[name] for name in names)
    require(
        len(a) == len(b) > 0,
        f"{trap.title}: there are {len(a)} samples of {names[0]!r} and {len(b)} of {names[1]!r}.",
    )
    low, ratio, high = ratio_interval(a, b, RESAMPLES, SEED)
    found = conclude(low, high)
    if found != trap.truth:
        raise CheckFailure(
            f"{trap.title}: the right conclusion is {trap.truth!r}. Your samples lead to"
            f" {found!r}: the ratio is {ratio:.3f} ({low:.3f} to {high:.3f}).\n"
            + machine.trap(samples, names, rounds, warmup)
        )


# Real stores.

TABLES = 5
KEYS = 300
GETS = 100
BITS = 6
RATE = predicted_rate(BITS, lsmkv.BloomFilterPolicy(BITS).probes)
ROUNDS, WARMUP = 12, 2


def add_table(db: lsmkv.DB, number: int) -> None:
    """Add a table that covers the whole range of keys, so that none is skipped for its range."""
    for key in (b"!", *some_keys(number, KEYS), b"~"):
        db.put(key, b"value")
    db.flush()


def open_store(bits: int) -> lsmkv.DB:
    """An empty store that keeps no blocks in memory, so that each one needed is read."""
    return lsmkv.DB(
        ":memory:",
        bloom_filter_bits=bits,
        filter_layout="table" if bits else None,
        lru_cache_size=0,
        seek_compaction=False,
    )


def filled_store(bits: int) -> lsmkv.DB:
    """A store of five tables that all cover the same range."""
    db = open_store(bits)
    for number in range(TABLES):
        add_table(db, number)
    return db


def block_reads(db: lsmkv.DB, keys: Sequence[bytes]) -> int:
    """Blocks that the Gets of some keys read."""
    before = db.stats()
    for key in keys:
        db.get(key)
    return (db.stats() - before).blocks_read


def absent_keys(batch: int) -> list[bytes]:
    """Keys that no table holds."""
    return some_keys(1000 + batch, GETS)


def oldest_keys(batch: int) -> list[bytes]:
    """Keys that only the oldest table holds."""
    return random.Random(batch).sample(some_keys(0, KEYS), GETS)


@dataclass
class Reads:
    """The measurement: the block reads of a batch of Gets.

    The first run of each store reads the first batch of keys, the second run the second, and so on,
    so all stores read the same keys in a round.
    """

    stores: Mapping[str, lsmkv.DB]
    batch: Callable[[int], list[bytes]]
    runs: Counter[str] = field(default_factory=Counter)

    def __call__(self, name: str) -> float:
        """Read the next batch of keys of a store."""
        number = self.runs[name]
        self.runs[name] += 1
        return block_reads(self.stores[name], self.batch(number))


def predictions(code: ModuleType) -> str:
    """The formula, then block reads counted in stores of one table to five."""
    for tables, rate in ((4, 0.25), (0, 0.25), (1, 0.0), (4, 1.0), (7, 0.0084), (1000, 0.5)):
        require_predicted(code.predict(tables, rate), tables, rate)
    sentences: list[str] = []
    with open_store(BITS) as db:
        for number in range(TABLES):
            add_table(db, number)
            counted = block_reads(db, some_keys(0, KEYS)) / KEYS
            predicted = code.predict(number, RATE)
            require(
                abs(counted - predicted) < 0.1,
                f"Below {number} tables, a Get read {counted:.3f} blocks, but predict({number},"
                f" {RATE:.4f}) says {predicted:.3f}.",
            )
            sentences.append(f"{counted:.2f} (predicted {predicted:.2f})")
    return "blocks a Get below 0 to 4 tables: " + ", ".join(sentences)


def require_predicted(got: object, tables: int, rate: float) -> None:
    """Fail unless this is the number of blocks that a Get is expected to read."""
    hint = (
        "Each of the tables that lack the key costs a read with the probability of the rate;"
        " the block that holds the key is always read: one more."
    )
    if is_number(got) and near(got, tables * rate):
        hint = "The block that holds the key is also read: one more."
    elif is_number(got) and near(got, (tables + 1) * rate):
        hint = "The filter of the table that holds the key never says no: its read is certain."
    require_number(got, predict(tables, rate), f"predict({tables}, {rate:g})", hint)


def in_the_engine(code: ModuleType) -> str:
    """Two experiments that find an effect and its size, and one that must find none."""
    sentences: list[str] = []
    with contextlib.ExitStack() as opened:
        pairs = {"filters": BITS, "none": 0, "twin": BITS}
        stores = {name: opened.enter_context(filled_store(bits)) for name, bits in pairs.items()}
        on_off = ("filters", "none")
        questions: tuple[tuple[str, Callable[[int], list[bytes]], Callable[[], float]], ...] = (
            ("absent keys", absent_keys, lambda: RATE),
            ("keys of the oldest table", oldest_keys, lambda: oldest_ratio(code)),
        )
        for what, batch, predicted in questions:
            low, ratio, high = found_by(code, Reads(stores, batch), on_off, what)
            expected = predicted()
            require(
                abs(ratio / expected - 1) < 0.25,
                f"{what}: the stores read {ratio:.4f} ({low:.4f} to {high:.4f}) times as many"
                f" blocks with filters, and {expected:.4f} is predicted from your predict.",
            )
            sentences.append(
                f"{what}: {ratio:.3f} ({low:.3f} to {high:.3f}), predicted {expected:.3f}"
            )
        low, ratio, high = found_none(code, Reads(stores, absent_keys))
    sentences.append(
        f"two equal stores: {ratio:.3f} ({low:.3f} to {high:.3f}), no difference shown"
    )
    return "block reads with filters over those without: " + "; ".join(sentences)


def oldest_ratio(code: ModuleType) -> float:
    """Reads with filters over those without, for keys of the oldest table, by the student."""
    with_filters, without = code.predict(TABLES - 1, RATE), code.predict(TABLES - 1, 1.0)
    for got, rate in ((with_filters, RATE), (without, 1.0)):
        require_predicted(got, TABLES - 1, rate)
    return float(with_filters / without)


def found_by(
    code: ModuleType, reads: Reads, names: tuple[str, str], what: str
) -> tuple[float, float, float]:
    """The effect that the student's experiment finds; its samples are what the stores read."""
    machine = Machine(reads)
    got = code.experiment(machine, names, ROUNDS, WARMUP)
    samples = require_samples(got, names, f"Gets of {what}")
    expected = experiment(Reads(reads.stores, reads.batch), names, ROUNDS, WARMUP)
    for name in names:
        require(
            samples[name] == expected[name],
            f"Gets of {what}, {ROUNDS} rounds after {WARMUP} of warm-up: the samples of"
            f" {name!r} must be\n{expected[name]},\nand yours are\n{samples[name]}.\n"
            + machine.trap(samples, names, ROUNDS, WARMUP),
        )
    a, b = (samples[name] for name in names)
    interval = code.ratio_interval(a, b, RESAMPLES, SEED)
    call = f"ratio_interval of {what}, {RESAMPLES} resamples, seed {SEED},"
    hint = interval_hint(interval, a, b, RESAMPLES, SEED)
    low, ratio, high = require_numbers(interval, ratio_interval(a, b, RESAMPLES, SEED), call, hint)
    require_equal(code.conclude(low, high), FASTER, f"conclude of {what}")
    return low, ratio, high


def found_none(code: ModuleType, reads: Reads) -> tuple[float, float, float]:
    """Two equal stores, on a machine with noise, a drift and a cold start."""
    names = ("filters", "twin")
    trap = Trap(
        "Two equal stores, 'filters' and 'twin'; the first two runs of 'filters' are cold, reads"
        " become slower, and there is noise",
        1, 1, UNDECIDED, ROUNDS, WARMUP,
    )  # fmt: skip
    machine = Machine(reads, {"filters": WARMUP}, drift=0.01, noise=0.02)
    samples = require_samples(code.experiment(machine, names, ROUNDS, WARMUP), names, trap.title)
    require_conclusion(machine, samples, names, ROUNDS, WARMUP, trap)
    low, ratio, high = code.ratio_interval(samples["filters"], samples["twin"], RESAMPLES, SEED)
    hint = f"The interval is {low:.3f} to {high:.3f}, and contains 1."
    require_equal(code.conclude(low, high), UNDECIDED, "conclude of two equal stores", hint)
    return low, ratio, high


# Numbers in messages.


def is_number(value: object) -> TypeGuard[float]:
    """True if a value is a number; an int is accepted for a float."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_triple(value: object) -> TypeGuard[tuple[float, float, float]]:
    """True if a value is a tuple of three numbers."""
    return isinstance(value, tuple) and len(value) == 3 and all(map(is_number, value))


def near(one: float, other: float) -> bool:
    """Equal except for the last digits, in which equivalent computations may differ."""
    return abs(one - other) <= 1e-9 * max(1.0, abs(one), abs(other))


def require_number(got: object, expected: float, call: str, hint: str) -> None:
    """Fail unless a call returned this number."""
    if not (is_number(got) and near(got, expected)):
        sentences, returned = f"{expected:g}", shown(got)
        if is_number(got):
            sentences, returned = in_one_format((expected,), (got,))
        raise CheckFailure(
            f"{call} must be {sentences}, but your code returned {returned}.\n{hint}"
        )


def require_numbers(
    got: object, expected: tuple[float, float, float], call: str, hint: str
) -> tuple[float, float, float]:
    """Fail unless a call returned these three numbers."""
    if not (is_triple(got) and all(map(near, got, expected))):
        sentences, returned = f"({', '.join(f'{number:g}' for number in expected)})", shown(got)
        if is_triple(got):
            sentences, returned = in_one_format(expected, got)
        raise CheckFailure(
            f"{call} must be {sentences}, but your code returned {returned}.\n{hint}"
        )
    return expected


def in_one_format(one: tuple[float, ...], other: tuple[float, ...]) -> tuple[str, str]:
    """Numbers in a message, both to six digits, or to as many as distinguish them."""
    for form in ("g", ".12g", ".17g"):
        sentences = [
            ", ".join(f"{number:{form}}" for number in numbers) for numbers in (one, other)
        ]
        if sentences[0] != sentences[1]:
            break
    if len(one) > 1:
        sentences = [f"({numbers})" for numbers in sentences]
    return sentences[0], sentences[1]


def shown_list(numbers: Sequence[float]) -> str:
    """Numbers in a message, to three digits."""
    return f"[{', '.join(f'{number:.3g}' for number in numbers)}]"


def drawing() -> str:
    """An interval, from samples that two stores made, step by step."""
    rounds, resamples, seed = 6, 80, 5
    with filled_store(BITS) as filters, filled_store(0) as none:
        reads = Reads({"a": filters, "b": none}, lambda batch: oldest_keys(batch)[:20])
        samples = experiment(reads, ("a", "b"), rounds, 2)
    a, b = samples["a"], samples["b"]
    ratios = [one / other for one, other in zip(a, b, strict=True)]
    lines = [
        "block reads of 20 Gets, a: with filters, b: without",
        "",
        "round    " + "".join(f"{number:7}" for number in range(rounds)),
        "a        " + "".join(f"{cost:7}" for cost in a),
        "b        " + "".join(f"{cost:7}" for cost in b),
        "a / b    " + "".join(f"{ratio:7.3f}" for ratio in ratios),
        f"their median, the ratio: {statistics.median(ratios):.4f}",
        "",
        f"{resamples} resamples, seed {seed}",
        "resample  rounds drawn   their median",
    ]
    medians: list[float] = []
    for number, drawn in enumerate(draws(rounds, resamples, seed)):
        medians.append(statistics.median([ratios[one] for one in drawn]))
        if number < 3 or number == resamples - 1:
            lines.append(f"{number:8}  {' '.join(map(str, drawn))}    {medians[-1]:.4f}")
        elif number == 3:
            lines.append("     ...")
    medians.sort()
    cut = resamples // 40
    ends = " ".join(f"{one:.4f}" for one in medians[: cut + 1])
    others = " ".join(f"{one:.4f}" for one in medians[-cut - 1 :])
    low, _, high = ratio_interval(a, b, resamples, seed)
    lines += [
        "",
        f"medians sorted: {ends} ... {others}",
        f"cut = {resamples} // 40 = {cut}: the interval is {low:.4f} to {high:.4f}"
        f" (numbers {cut} and {resamples - 1 - cut}): {conclude(low, high)}",
    ]
    return "\n".join(lines) + "\n"


LAB = Lab(
    number=12,
    slug="measuring",
    title="Measuring",
    functions=("summarize", "alternate", "ratio_interval", "conclude", "experiment", "predict"),
    checks=(
        Check("median and quartiles", summaries),
        Check("the order of the runs", orders),
        Check("the ratio and its interval", intervals),
        Check("the conclusion", conclusions),
        Check("the experiment", experiments),
        Check("planted traps", traps),
        Check("the prediction", predictions),
        Check("in the real engine", in_the_engine),
    ),
    drawing=drawing,
)
