"""Every test is run by ``make test``, by the rest of CI or by ``make weekly``; the lists of what
``make test`` leaves out name tests that are there, and leave it the time that it is to take."""

from __future__ import annotations

import re
import shlex
import tomllib
from functools import cache
from pathlib import Path

import pytest
from left_out import inside, left_out_of
from progress import folder_of

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"


def lines_of(file: str) -> list[str]:
    """The lines of a list of tests."""
    lines = (TESTS / file).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


LONG, WEEKLY, INTERPRETED = map(lines_of, ("long.txt", "weekly.txt", "interpreted.txt"))


def is_there(name: str) -> bool:
    """Whether a file, a folder or a function has tests."""
    path, _, function = name.partition("::")
    if not (ROOT / path).exists():
        return False
    source = (ROOT / path).read_text(encoding="utf-8") if function else ""
    return not function or bool(re.search(rf"(?m)^(?:async )?def {function}\(", source))


@pytest.mark.parametrize("line", [*LONG, *WEEKLY])
def test_a_line_names_tests_and_their_seconds(line: str) -> None:
    name, seconds = line.split(" ")
    assert int(seconds) > 0
    assert is_there(name)


@pytest.mark.parametrize("lines", [LONG, WEEKLY, INTERPRETED])
def test_the_lines_are_sorted_and_none_is_within_another(lines: list[str]) -> None:
    names = [line.split()[0] for line in lines]
    assert names == sorted(names)
    for name in names:
        assert not any(inside(name, other) for other in names if other != name)


def test_no_test_is_on_both_lists_for_its_time() -> None:
    assert not {line.split()[0] for line in LONG} & {line.split()[0] for line in WEEKLY}


@pytest.mark.parametrize("name", INTERPRETED)
def test_what_is_run_interpreted_alone_is_there(name: str) -> None:
    assert is_there(name)


def test_make_test_takes_at_most_five_minutes() -> None:
    """On two cores, with half a minute for the installation and the start."""
    seconds = dict(line.split() for line in lines_of("seconds.txt"))
    assert sum(map(float, seconds.values())) <= 2 * (300 - 30)
    files = [path for path in TESTS.rglob("test_*.py") if path.parent != TESTS]
    missing = {folder_of(path.relative_to(ROOT).as_posix()) for path in files} - set(seconds)
    long = {line.split()[0] for line in LONG}
    assert missing <= long | set(suites_of_their_own()), "pytest --record-seconds"


def test_a_run_of_a_part_names_what_it_leaves_out() -> None:
    names = ["tests/a", "tests/b/test_b.py", "tests/b/test_c.py::test_long"]

    def left_out(*arguments: str) -> list[int]:
        return [names.index(name) for name in left_out_of(names, arguments)]

    assert left_out("tests/a/test_a.py::test_x[1]") == [0]
    assert left_out("tests/b/") == [1, 2]
    assert left_out("tests/b/test_c.py", "tests/a") == [0, 2]
    assert left_out("tests/b/test_c.py::test_long[0]") == [2]
    assert left_out("tests/b/test_c.py::test_longer", "tests/b/test_b", "lsmkv") == []


# Which command runs a test

MAKEFILE = ROOT / "Makefile"
CI = ROOT / ".ci"
in_the_repository = pytest.mark.skipif(
    not MAKEFILE.is_file() or not CI.is_dir(), reason="the tests are not in the repository"
)
NEED_MORE = {
    "dask": "test-scale",
    "distributed": "test-scale",
    "moto": "test-scale",
    "pandas": "test-scale",
    "pyarrow": "test-scale",
    "celery": "test-queues",
    "rq": "test-queues",
    "griffe": "test-more",
    "ipykernel": "test-more",
    "lmdb": "test-more",
    "material": "test-more",
    "mkdocs": "test-more",
    "mypy": "test-more",
    "mypyc": "test-more",
    "nbclient": "test-more",
    "nbformat": "test-more",
    "pyright": "test-more",
    "rocksdict": "test-more",
    "yaml": "test-more",
}
"""Packages without which a test is skipped, and which ``make test`` does not install: the target
that runs these tests with them."""
PROVIDED = {"numpy", "starlette", "typer", "uvicorn", "hiredis", "lupa", "uvloop", "fsspec"} | {
    *("obstore", "matplotlib", "google_crc32c", "prometheus_client", "dogpile")
}
"""Those that ``make test`` installs by other names, or with others."""
SYSTEM = {"fcntl", "resource", "firefox", "lsmkv"}


@cache
def recipe(target: str) -> str:
    """What a target of the Makefile runs, its variables for tests replaced."""
    text = MAKEFILE.read_text(encoding="utf-8").replace("\\\n", " ")
    variables = dict(re.findall(r"(?m)^([A-Z_]+) \??:?= ?(.*)$", text))
    found = re.search(rf"(?m)^{target}:.*\n((?:\t.*\n)*)", text)
    assert found is not None, target
    return re.sub(r"\$\((\w+)\)", lambda name: variables.get(name[1], name[0]), found[1])


@cache
def run_in_ci() -> set[str]:
    """The targets that ``.ci/run``, what it calls, and ``.ci/weekly`` make."""
    scripts = ("run", "browser", "docs", "scale", "server", "weekly")
    text = "".join((CI / name).read_text(encoding="utf-8") for name in scripts)
    commands = re.findall(r"(?m)^[^#\n]*\bmake ([^;\n]*)", text)
    words = set(" ".join(commands).split())
    return words & set(re.findall(r"(?m)^([a-z-]+):", MAKEFILE.read_text(encoding="utf-8")))


def suites_of_their_own() -> list[str]:
    """The folders of tests that pytest collects only where they are named."""
    source = (TESTS / "conftest.py").read_text(encoding="utf-8")
    listed = re.search(r"(?ms)^collect_ignore = \[(.*?)\]$", source)
    assert listed is not None
    return [f"tests/{name}" for name in re.findall(r'"([\w/]+)"', listed[1])]


@in_the_repository
@pytest.mark.parametrize(
    ("marks", "targets"),
    [
        (set(), ["test", "test-all"]),
        ({"long"}, ["test-all"]),
        ({"long", "weekly"}, ["weekly"]),
    ],
)
def test_a_test_is_run_by_the_targets_of_its_marks(marks: set[str], targets: list[str]) -> None:
    assert {*targets, "weekly", "test-all"} - {"test"} <= run_in_ci()
    names = {name: name in marks for name in ("long", "weekly")}
    ran = []
    for target in ("test", "test-all", "weekly"):
        command = recipe(target).replace("$(if $(findstring .py,),,not long)", "not long")
        expression = re.search(r'pytest .*-m "?([^"\n]+)"?', command)
        assert expression is not None
        assert "tests/" not in command
        if eval(expression[1], {}, names):
            ran.append(target)
    assert ran == targets


@in_the_repository
@pytest.mark.parametrize("folder", suites_of_their_own())
def test_a_suite_of_its_own_has_a_target_that_ci_makes(folder: str) -> None:
    if any((ROOT / folder).glob("test_*.py")):
        targets = [name for name in run_in_ci() if re.search(rf"{folder}(?!\S)", recipe(name))]
        assert targets, "name it in .ci/run or .ci/weekly"


@in_the_repository
@pytest.mark.parametrize(
    "switch", ["EXPECT_BROWSER", "EXPECT_REDIS", "EXPECT_SCALE", "MACOS_RULES", "DIST"]
)
def test_what_a_test_waits_for_is_set_by_a_target_that_ci_makes(switch: str) -> None:
    assert any(f"LSMKV_{switch}=" in recipe(name) for name in run_in_ci())


@in_the_repository
def test_a_test_that_needs_a_package_is_run_where_that_is_installed() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = extras["project"]["optional-dependencies"]["test"]
    installed = {re.split(r"[^\w-]", one)[0].lower().replace("-", "_") for one in wanted}
    for path in TESTS.rglob("test_*.py"):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(tuple(f"{one}/" for one in suites_of_their_own())):
            continue
        source = path.read_text(encoding="utf-8")
        for package in re.findall(r'importorskip\(\s*"(\w+)', source):
            if package.lower() in installed | PROVIDED | SYSTEM:
                continue
            assert package in NEED_MORE, f"which target runs {name} with {package}?"
            target = NEED_MORE[package]
            assert target in run_in_ci()
            named = [word.partition("::")[0] for word in shlex.split(recipe(target))]
            assert any(inside(name, one) for one in named), (
                f"{name} needs {package}: name it in make {target}"
            )


@in_the_repository
def test_contributing_names_what_runs_the_tests() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for words in ("make test ", "make test-all", "make weekly", ".ci/run", ".ci/weekly"):
        assert words in page, words
