"""Which distribution this package comes from, by metadata made for the purpose."""

from __future__ import annotations

import json
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest
from processes import run_python

import lsmkv
from lsmkv.engine.env import installed
from lsmkv.engine.env.installed import (
    NOT_INSTALLED,
    Installation,
    Requirement,
    installation,
    requirements,
    version_of,
)

METADATA = """Metadata-Version: 2.1
Name: lsmkv
Version: 7.8.9
Requires-Dist: cramjam>=2.9
Requires-Dist: no_such-package; implementation_name == "cpython"
Requires-Dist: typer >=0.12 ; extra == "tools"
Requires-Dist: lsmkv[tools] ; extra == 'test'
"""


def distribution(place: Path, url: str = "", *, pure: bool = False) -> Path:
    """A distribution in a directory; with ``url``, a link to a tree."""
    folder = place / "lsmkv-7.8.9.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(METADATA)
    (folder / "WHEEL").write_text(f"Wheel-Version: 1.0\nRoot-Is-Purelib: {str(pure).lower()}\n")
    if url:
        origin = {"url": url, "dir_info": {"editable": True}}
        (folder / "direct_url.json").write_text(json.dumps(origin))
    return place


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this package is said to be, below a directory with a space in its name."""
    package = tmp_path / "a tree" / "lsmkv"
    package.mkdir(parents=True)
    monkeypatch.setattr(installed, "PACKAGE", str(package.resolve()))
    return package.parent


@pytest.mark.parametrize("pure", [True, False])
def test_an_installed_wheel(tree: Path, monkeypatch: pytest.MonkeyPatch, pure: bool) -> None:
    monkeypatch.syspath_prepend(str(distribution(tree, pure=pure)))
    assert installation() == Installation("wheel", "7.8.9")


def test_an_editable_install(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(distribution(tmp_path / "site", tree.as_uri(), pure=True)))
    assert installation() == Installation("editable", "7.8.9")


@pytest.mark.parametrize("url", ["", "file:///elsewhere", "https://example.org/lsmkv.git"])
def test_a_source_tree_does_not_take_the_version_of_another_copy(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.syspath_prepend(str(distribution(tmp_path / "site", url)))
    assert installation() == Installation("source", NOT_INSTALLED)
    assert requirements() == []


def test_unreadable_origins_are_passed_over(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = distribution(tmp_path / "site")
    monkeypatch.syspath_prepend(str(site))
    for text in ("", "{", "[]", "null", '{"url": "file:///x"}', '{"url": 1, "dir_info": []}'):
        (site / "lsmkv-7.8.9.dist-info" / "direct_url.json").write_text(text)
        assert installation().kind == "source"


def test_requirements_with_what_is_installed_of_them(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(distribution(tree)))
    assert requirements() == [
        Requirement("cramjam", "", metadata.version("cramjam")),
        Requirement("no_such-package", "", None),
        Requirement("typer", "tools", version_of("typer")),
    ]


def test_the_version_is_a_version() -> None:
    version = installation().version
    assert lsmkv.__version__ == version
    assert version == NOT_INSTALLED or re.match(r"\d+\.\d+\.\d+", version)
    assert "__version__" in dir(lsmkv)


def test_the_version_is_looked_up_when_it_is_asked_for() -> None:
    program = (
        "import sys, lsmkv\n"
        "assert 'importlib.metadata' not in sys.modules\n"
        "print(lsmkv.__version__)\n"
        "assert 'importlib.metadata' in sys.modules\n"
        "assert vars(lsmkv)['__version__'] == lsmkv.__version__\n"
    )
    path = [sys.path[0] or ".", *sys.path[1:]]
    start = f"import sys; sys.path[:] = {path!r}\n"
    done = run_python("-c", start + program)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{lsmkv.__version__}\n"
