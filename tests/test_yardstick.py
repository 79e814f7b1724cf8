"""The mistakes of ``tests/yardstick`` apply to the source as it is; ``make yardstick`` plants them.

A failure here after a change of the engine means: restate the mistake in ``mistakes.py``.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import schedules
import sharing_kills
from mistake import PARTS, Mistake
from mistakes import MISTAKES
from mutants import MOST_SWITCHES, MUTANTS, PAGE, SECONDS, page, read_outcomes
from parsed import parsed
from plant import (
    LONG,
    RESULTS,
    SHORT,
    CannotPlantError,
    Result,
    functions_in,
    planted,
    read_results,
    suites_left,
    widening,
    write_results,
)

SOURCES = Path(__file__).parents[1] / "lsmkv"
if not SOURCES.is_dir():
    pytest.skip("the tests are not beside the source", allow_module_level=True)

FUNCTIONS = functions_in(SOURCES, parsed)


@pytest.mark.parametrize(
    "mistake", dict.fromkeys((*MISTAKES, *MUTANTS)), ids=lambda mistake: mistake.name
)
def test_a_mistake_applies_once_and_compiles(mistake: Mistake) -> None:
    path, text = planted(mistake, FUNCTIONS)
    assert text != path.read_text(encoding="utf-8")
    compile(text, str(path), "exec")


def test_there_are_enough_and_no_two_are_the_same() -> None:
    assert len(MISTAKES) >= 60
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES)
    places = {(mistake.function, mistake.right, mistake.wrong) for mistake in MISTAKES}
    assert len(places) == len(MISTAKES)


def test_every_part_has_at_least_three() -> None:
    parts = Counter(mistake.part for mistake in MISTAKES)
    assert set(parts) == set(PARTS)
    assert min(parts.values()) >= 3


def test_there_are_enough_mistakes_of_concurrency_and_no_two_are_the_same() -> None:
    assert len(MUTANTS) >= 30
    assert len({mistake.name for mistake in MUTANTS}) == len(MUTANTS)
    places = {(mistake.function, mistake.right, mistake.wrong) for mistake in MUTANTS}
    assert len(places) == len(MUTANTS)


@pytest.mark.parametrize("name", [mistake.name for mistake in MUTANTS])
def test_the_simulation_has_found_it_in_ten_minutes_by_a_schedule_of_one_screen(name: str) -> None:
    outcome = read_outcomes()[name]
    assert outcome.kind in ("error", "deadlock", "lost wake-up", "endless")
    assert outcome.seconds <= SECONDS == 600
    assert outcome.needed <= MOST_SWITCHES
    assert outcome.lines <= 40
    assert outcome.test != "-", "its test file was not tried"


def test_the_page_lists_them() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "say python tests/stress/mutants.py --page"


def test_the_page_sums_up_the_schedules_of_the_engine() -> None:
    text = schedules.PAGE.read_text(encoding="utf-8")
    assert schedules.page(text) == text
    tried = schedules.read_tried().values()
    assert sum(one.runs for one in tried) > 0
    assert sum(one.violations for one in tried) == len(schedules.FIXED)


def test_schedules_add_up_over_sittings(tmp_path: Path) -> None:
    file = tmp_path / "schedules.txt"
    tried = schedules.read_tried(file)
    assert set(schedules.totals(tried).values()) == {(0, 0)}
    modes = list(tried)
    for _ in range(400):
        mode = schedules.next_mode(tried)
        tried[mode] = tried[mode]._replace(runs=tried[mode].runs + 40)
    schedules.write_tried(tried, file)
    assert schedules.read_tried(file) == tried
    (at_locks, _), (at_lines, _) = schedules.totals(tried).values()
    assert at_locks + at_lines == 16_000
    assert 10 < at_locks / at_lines < 25  # 190,000 to 10,000
    ends = [tried[mode].first + schedules.TARGETS[schedules.LOCKS] for mode in modes]
    assert all(end < tried[mode].first for end, mode in zip(ends, modes[1:], strict=False))


def test_the_page_sums_up_the_kills_of_owners() -> None:
    text = sharing_kills.PAGE.read_text(encoding="utf-8")
    assert sharing_kills.page(text) == text, "say python tests/stress/sharing_kills.py --page"
    sittings = sharing_kills.read_sittings()
    assert sum(one.owners for one in sittings) > 0
    assert sum(one.violations for one in sittings) == 0


def test_kills_add_up_over_sittings(tmp_path: Path) -> None:
    file = tmp_path / "kills.txt"
    assert sharing_kills.read_sittings(file) == []
    first = sharing_kills.Sitting(sharing_kills.next_seed([]), *[0] * 7)
    figures = {"kills of owners": 2, "kills": 3, "stops": 1, "writes": 10, "reads": 20}
    for _ in range(4):
        first = sharing_kills.after_store(first, figures, 0)
    assert first[1:] == (4, 8, 12, 4, 40, 80, 0)
    second = sharing_kills.Sitting(sharing_kills.next_seed([first]), *[0] * 7)
    assert second.first == first.first + 4
    sharing_kills.write_sittings([first, second], file)
    assert sharing_kills.read_sittings(file) == [first, second]


def test_the_results_name_known_mistakes_only() -> None:
    assert set(read_results(RESULTS)) <= {mistake.name for mistake in MISTAKES}


def test_a_mistake_is_refused_unless_its_place_is_certain(tmp_path: Path) -> None:
    (tmp_path / "course").mkdir()
    (tmp_path / "course" / "printing.py").write_text("def once(): return 1 < 2\n")
    (tmp_path / "one.py").write_text(
        "class A:\n    def f(self):\n        return 1 < 2\n\nx = 1 < 2"
    )
    (tmp_path / "two.py").write_text("def twice(): return 1 < 2 or 1 < 2\n\ndef g(): pass\n")
    (tmp_path / "three.py").write_text("def g(): pass\n\ndef once(): return 1 < 2\n")
    functions = functions_in(tmp_path)

    def plant(function: str, right: str) -> str:
        mistake = Mistake("a name", PARTS[0], function, right, "1 <= 2", "harm")
        return planted(mistake, functions)[1]

    changed = plant("A.f", "1 < 2")
    assert changed == "class A:\n    def f(self):\n        return 1 <= 2\n\nx = 1 < 2"
    assert plant("once", "1 < 2") == "def g(): pass\n\ndef once(): return 1 <= 2\n"
    for function, right in (("f", "1 < 2"), ("g", "pass"), ("twice", "1 < 2"), ("A.f", "3")):
        with pytest.raises(CannotPlantError):
            plant(function, right)


def test_the_tests_near_a_mistake_run_first() -> None:
    near, room, engine, others = widening("tests/engine/format/test_log.py")
    assert near == ["tests/engine/format/test_log.py"]
    assert room == ["tests/engine/format", "--ignore=tests/engine/format/test_log.py"]
    tried = ["--ignore=tests/engine/format/test_log.py", "--ignore=tests/engine/format"]
    assert engine == ["tests/engine", *tried]
    assert others == [*tried, "--ignore=tests/engine"]
    assert widening("tests/test_plyvel.py")[1:] == [["--ignore=tests/test_plyvel.py"]]


def test_a_run_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    file = tmp_path / "results.txt"
    assert read_results(file) == {}
    first, second, third = (mistake.name for mistake in MISTAKES[:3])
    results = [
        Result(third, LONG, "", 900),
        Result(first, SHORT, "tests/test_a.py::test_b[c | d] (it hangs)", 12),
        Result(second, SHORT, "", 300),
    ]
    write_results(file, [*results, Result("a mistake of the past", SHORT, "", 1)])
    read = read_results(file)
    assert list(read) == [first, second, third]
    assert sorted(read.values()) == sorted(results)
    assert suites_left(None, (SHORT, LONG)) == (SHORT, LONG)
    assert suites_left(read[first], (SHORT, LONG)) == ()
    assert suites_left(read[second], (SHORT, LONG)) == (LONG,)
    assert suites_left(read[second], (SHORT,)) == ()
    assert suites_left(read[third], (SHORT, LONG)) == ()
