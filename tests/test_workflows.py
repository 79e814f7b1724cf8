"""``.github``: the least permissions, pinned actions, and commands that there are.

``make check-workflows`` has actionlint and the schemas judge the same files.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
if not GITHUB.is_dir():
    pytest.skip("the tests are not in the repository", allow_module_level=True)

WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w-]+/[\w-]+@(v\d+|[0-9a-f]{40})")
# What PyPI's documentation says to use: a branch that its makers keep at the newest release of v1.
ALSO_PINNED = {"pypa/gh-action-pypi-publish@release/v1"}
MORE_PERMISSIONS = {
    ("wheels.yml", "publish"): {"id-token": "write"},
    ("docs.yml", "deploy"): {"pages": "write", "id-token": "write"},
}


def load(path: Path) -> dict[str, Any]:
    """A workflow; its key ``on`` is a boolean to YAML 1.1."""
    text = path.read_text(encoding="utf-8")
    return {"on" if key is True else key: value for key, value in yaml.safe_load(text).items()}


every_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_there_are_four() -> None:
    assert [path.name for path in WORKFLOWS] == ["ci.yml", "docs.yml", "weekly.yml", "wheels.yml"]


@every_workflow
def test_permissions_are_the_least(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job.get("permissions") == MORE_PERMISSIONS.get((path.name, name)), name
    assert "pull_request_target" not in workflow["on"]
    assert "secrets." not in path.read_text(encoding="utf-8")


@every_workflow
def test_jobs_end_and_do_not_pile_up(path: Path) -> None:
    workflow = load(path)
    assert "github.ref" in workflow["concurrency"]["group"]
    # A publication or deployment that has begun is not cut short.
    cancelled = workflow["concurrency"]["cancel-in-progress"]
    assert cancelled == "${{ github.event_name == 'pull_request' }}"
    assert all(job["timeout-minutes"] for job in workflow["jobs"].values())


@every_workflow
def test_actions_are_pinned_and_get_no_credentials(path: Path) -> None:
    for step in steps(load(path)):
        action = step.get("uses")
        if action is None:
            continue
        assert PINNED.fullmatch(action) or action in ALSO_PINNED, action
        if action.startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@every_workflow
def test_what_is_run_is_there(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for step in steps(load(path)):
        for target in re.findall(r"\bmake ([\w-]+)", step.get("run", "")):
            assert re.search(rf"(?m)^{target}:", makefile), target
        for script in re.findall(r"\.ci/([\w-]+)", step.get("run", "")):
            assert (ROOT / ".ci" / script).is_file(), script


def parts_of(name: str) -> list[str]:
    """The parts of the matrix of a workflow."""
    parts: list[str] = load(GITHUB / "workflows" / name)["jobs"]["parts"]["strategy"]["matrix"][
        "part"
    ]
    return parts


def test_every_part_of_the_matrix_is_there() -> None:
    for part in parts_of("ci.yml"):
        assert (ROOT / ".ci" / part).is_file()


def test_what_is_run_weekly_is_all_parts_of_its_script() -> None:
    """But for the other Pythons, which CI has in a matrix of its own."""
    script = (ROOT / ".ci" / "weekly").read_text(encoding="utf-8")
    parts = re.findall(r"(?m)^(\w+)\(\) \{", script)
    assert f'"${{@:-{" ".join(parts)}}}"' in script
    assert parts_of("weekly.yml") == [part for part in parts if part != "others"]


def test_every_python_that_is_supported_is_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    supported = re.findall(r"Python :: (3\.\d+)\b", "\n".join(project["classifiers"]))
    assert supported
    jobs = load(GITHUB / "workflows" / "ci.yml")["jobs"]
    assert set(supported) <= set(jobs["test"]["strategy"]["matrix"]["python"])


def test_a_tag_alone_publishes_and_after_all_checks() -> None:
    workflow = load(GITHUB / "workflows" / "wheels.yml")
    assert workflow["on"]["push"] == {"tags": ["v*"]}
    publish, check = workflow["jobs"]["publish"], workflow["jobs"]["check"]
    assert publish["needs"] == "check"
    no_part_of_a_release = {"newest-mypyc"}
    others = set(workflow["jobs"]) - {"check", "publish"} - no_part_of_a_release
    assert set(check["needs"]) == others
    assert publish["if"] == "github.event_name == 'push' && github.ref_type == 'tag'"
    assert publish["environment"]["name"] == "pypi"
    assert not any("run" in step for step in publish["steps"])


def test_reports_of_bugs_ask_for_what_is_needed() -> None:
    bug = yaml.safe_load((GITHUB / "ISSUE_TEMPLATE" / "bug.yml").read_text(encoding="utf-8"))
    labels = {field["attributes"].get("label", "") for field in bug["body"]}
    assert {"lsmkv doctor --json DIR", "lsmkv stats DIR"} <= labels
    template = (GITHUB / "pull_request_template.md").read_text(encoding="utf-8")
    assert "lsmkv doctor --json" in template
    assert "lsmkv stats" in template
    config = yaml.safe_load((GITHUB / "ISSUE_TEMPLATE" / "config.yml").read_text(encoding="utf-8"))
    assert config == {"blank_issues_enabled": False}


def test_hooks_run_what_make_lint_runs() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    local = {hook["id"]: hook["entry"] for hook in hooks["repos"][-1]["hooks"]}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    checked = re.search(r"(?ms)^lint:.*?^\t\$\(BIN\)/(mypy [^\n]*)$", makefile)
    assert checked is not None
    assert local["mypy"] == f".venv/bin/{checked[1]}"
    assert {"ruff-check", "ruff-format"} <= set(local)
