"""``make release``: what it refuses, what it builds and checks, and the tag that it makes.

In a repository made for the purpose, whose Makefile stands in for the build and the checks.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / ".ci" / "release"

pytestmark = [
    pytest.mark.skipif(not SCRIPT.is_file(), reason="the tests are not in the repository"),
    pytest.mark.skipif(not shutil.which("git") or not shutil.which("make"), reason="needs both"),
]

CHANGELOG = """# Changelog

## [Unreleased]

## [1.2.3] - 2026-01-02

### Added
- # This, which begins with a mark that git would take for a comment.

## [1.2.2] - 2026-01-01

### Fixed
- That.

[Unreleased]: ../../compare/v1.2.3...HEAD
[1.2.3]: ../../releases/tag/v1.2.3
[1.2.2]: ../../releases/tag/v1.2.2
"""
MAKEFILE = """
wheel:
\trm -rf dist
\tmkdir dist
\ttouch dist/lsmkv-1.2.3.tar.gz dist/lsmkv-1.2.3-py3-none-any.whl
check-dist:
\tls dist | grep -c lsmkv-1.2.3
\ttest ! -e dist/lsmkv-1.2.3-broken-none-any.whl
"""


class Repository:
    """A clean clone that is ready to be released."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / ".ci").mkdir(parents=True)
        shutil.copy(SCRIPT, path / ".ci" / "release")
        self.write("pyproject.toml", '[project]\nname = "lsmkv"\nversion = "1.2.3"\n')
        self.write("CHANGELOG.md", CHANGELOG)
        self.write("Makefile", MAKEFILE)
        self.write(".gitignore", "dist/\n__pycache__/\n")
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit()

    def write(self, name: str, text: str) -> None:
        (self.path / name).write_text(text)

    def replace(self, name: str, old: str, new: str) -> None:
        text = (self.path / name).read_text()
        assert old in text
        self.write(name, text.replace(old, new, 1))

    def git(self, *arguments: str) -> str:
        command = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *arguments]
        done = subprocess.run(command, cwd=self.path, check=True, capture_output=True, text=True)
        return done.stdout

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=All", "--no-gpg-sign")

    def release(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, ".ci/release", *arguments],
            cwd=self.path,
            check=False,
            capture_output=True,
            text=True,
            env={
                "PATH": self.git("--exec-path").strip() + ":/usr/local/bin:/usr/bin:/bin",
                "PYTHONPATH": str(self.path),
                "HOME": str(self.path),
                "GIT_COMMITTER_NAME": "A",
                "GIT_COMMITTER_EMAIL": "a@example.org",
            },
        )

    def refuses(self, *reasons: str, arguments: tuple[str, ...] = ("1.2.3",)) -> None:
        done = self.release(*arguments)
        assert done.returncode == 1
        for reason in reasons:
            assert reason in done.stderr
        assert done.stderr.count("release: ") == len(reasons)
        assert self.git("tag") == ""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "clone")


def test_a_release_is_built_checked_and_tagged(repository: Repository) -> None:
    done = repository.release("1.2.3")
    assert done.returncode == 0, done.stderr
    assert "2\n" in done.stdout
    assert "git push origin main v1.2.3" in done.stdout
    assert repository.git("tag") == "v1.2.3\n"
    message = repository.git("tag", "--list", "--format=%(contents)", "v1.2.3")
    assert message.startswith("lsmkv 1.2.3\n\n### Added\n- # This")
    assert "That" not in message
    assert repository.git("remote") == ""  # nothing is pushed


def test_check_looks_at_the_files_alone(repository: Repository) -> None:
    repository.write("new", "")
    done = repository.release("--check", "1.2.3")
    assert (done.returncode, done.stdout) == (0, "pyproject.toml and CHANGELOG.md say 1.2.3\n")
    assert not (repository.path / "dist").exists()
    repository.refuses("says version 1.2.3", "is 1.2.3", arguments=("--check", "1.2.4"))


@pytest.mark.parametrize("arguments", [(), ("1.2",), ("v1.2.3",), ("1.2.3", "1.2.4"), ("--check",)])
def test_a_version_is_asked_for(repository: Repository, arguments: tuple[str, ...]) -> None:
    repository.refuses("give one version", arguments=arguments)


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("pyproject.toml", "1.2.3", "1.2.2", "says version 1.2.2"),
        ("CHANGELOG.md", "## [1.2.3]", "## [1.2.4]", "newest release in CHANGELOG.md is 1.2.4"),
        ("CHANGELOG.md", " - 2026-01-02", " - 2999-01-02", "dates 1.2.3 2999-01-02"),
        ("CHANGELOG.md", " - 2026-01-02", "", "dates 1.2.3 not at all"),
        ("CHANGELOG.md", "[Unreleased]\n", "[Unreleased]\n\n### Fixed\n- X\n", "Unreleased"),
        ("CHANGELOG.md", "[1.2.3]: ", "[1.2.5]: ", "no link"),
        ("CHANGELOG.md", "- # This", "This", "says nothing of 1.2.3"),
        ("Makefile", "touch dist/", "touch dist/lsmkv-1.2.2.tar.gz dist/", "lsmkv-1.2.2.tar.gz"),
        ("Makefile", "dist/lsmkv-1.2.3.tar.gz ", "", "dist holds"),
        ("Makefile", "rm -rf dist", "false", "make wheel has failed"),
        ("Makefile", "1.2.3-py3", "1.2.3-broken", "make check-dist has failed"),
        ("Makefile", "rm -rf dist", "touch new", "changed files"),
    ],
)
def test_what_is_not_ready_is_not_tagged(
    repository: Repository, name: str, old: str, new: str, reason: str
) -> None:
    repository.replace(name, old, new)
    repository.commit()
    repository.refuses(reason)


def test_changes_and_other_branches_are_refused(repository: Repository) -> None:
    repository.git("switch", "--quiet", "--create", "other")
    repository.write("new", "")
    repository.refuses("the branch is other", "not committed")


def test_a_version_is_released_once(repository: Repository) -> None:
    assert repository.release("1.2.3").returncode == 0
    done = repository.release("1.2.3")
    assert done.returncode == 1
    assert "there is a tag v1.2.3" in done.stderr
