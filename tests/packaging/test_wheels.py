"""What is published for whom: the settings of cibuildwheel, and the checks of a package index."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from processes import run_python

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSIONS = ["3.11", "3.12", "3.13", "3.14"]
PLATFORMS = {
    "linux": [
        f"{libc}_{processor}"
        for libc in ("manylinux", "musllinux")
        for processor in ("x86_64", "aarch64")
    ],
    "macos": ["macosx_x86_64", "macosx_arm64"],
    "windows": ["win_amd64"],
}


def run_module(module: str, *arguments: str) -> str:
    """What a tool prints, which must succeed."""
    pytest.importorskip(module)
    done = run_python("-m", module, *arguments, cwd=ROOT, env={**os.environ, "NO_COLOR": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_wheel_is_built_for_each_python_and_platform(platform: str) -> None:
    found = run_module("cibuildwheel", "--print-build-identifiers", "--platform", platform).split()
    expected = [
        f"cp{version.replace('.', '')}-{tag}" for version in VERSIONS for tag in PLATFORMS[platform]
    ]
    assert sorted(found) == sorted(expected)


def test_a_wheel_that_is_not_compiled_is_not_published() -> None:
    settings = PROJECT["tool"]["cibuildwheel"]
    assert settings["environment"]["LSMKV_MYPYC"] == "1"
    assert settings["test-environment"]["LSMKV_EXPECT_COMPILED"] == "1"
    assert settings["test-environment"]["PYTHONSAFEPATH"] == "1"


def test_each_wheel_runs_the_tests_of_what_is_compiled() -> None:
    command = PROJECT["tool"]["cibuildwheel"]["test-command"]
    named = {word.removeprefix("{project}/") for word in command.split() if "{project}" in word}
    assert all((ROOT / name).exists() for name in named)
    rooms = [room for room in PROJECT["tool"]["lsmkv"]["compiled"] if not room.endswith(".py")]
    assert {f"tests/{room}" for room in rooms} <= named
    says = {"tests/test_build.py", "tests/test_surface.py", "tests/engine/test_errors.py"}
    assert says <= named


def test_the_classifiers_name_the_pythons_that_have_wheels() -> None:
    start = "Programming Language :: Python :: 3."
    classifiers = PROJECT["project"]["classifiers"]
    named = [f"3.{text.removeprefix(start)}" for text in classifiers if text.startswith(start)]
    assert named == VERSIONS
    assert PROJECT["project"]["requires-python"] == f">={VERSIONS[0]}"


@pytest.mark.parametrize(
    ("implementation", "platform", "machine", "expected"),
    [
        ("cpython", "linux", "x86_64", True),
        ("cpython", "linux", "aarch64", True),
        ("cpython", "darwin", "arm64", True),
        ("cpython", "darwin", "x86_64", True),
        ("cpython", "win32", "AMD64", True),
        ("cpython", "win32", "ARM64", False),
        ("cpython", "linux", "i686", False),
        ("cpython", "linux", "riscv64", False),
        ("cpython", "freebsd14", "amd64", False),
        ("pypy", "linux", "x86_64", False),
    ],
)
def test_google_crc32c_is_asked_for_where_it_has_wheels(
    implementation: str, platform: str, machine: str, expected: bool
) -> None:
    required = map(Requirement, PROJECT["project"]["dependencies"])
    (marker,) = [one.marker for one in required if one.name == "google-crc32c"]
    assert marker is not None
    environment = {
        "implementation_name": implementation,
        "sys_platform": platform,
        "platform_machine": machine,
    }
    assert marker.evaluate(environment) is expected


def test_an_index_takes_the_distributions(distributions: Path) -> None:
    found = sorted(map(str, distributions.glob("lsmkv-*")))
    assert "PASSED" in run_module("twine", "check", "--strict", *found)


def test_the_wheels_hold_what_a_wheel_should(distributions: Path) -> None:
    run_module("check_wheel_contents", *map(str, distributions.glob("lsmkv-*.whl")))
