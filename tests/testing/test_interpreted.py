"""A child process that runs the sources, whatever is compiled."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path

import pytest

import lsmkv
from lsmkv.testing.interpreted import ChildFailedError, run_interpreted


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module outside of the package, which the child finds by ``sys.path``."""
    (tmp_path / "asked_in_a_child.py").write_text(
        textwrap.dedent(
            """
            import gc, os, sys
            from lsmkv.testing.interpreted import ChildFailedError, import_package, in_copy

            EARLY = "lsmkv.engine.db" in sys.modules

            def main(request):
                package = import_package()
                if request == "files":
                    ours = [m for name, m in sys.modules.items() if name.startswith("lsmkv")]
                    endings = {os.path.splitext(m.__file__)[1] for m in ours}
                    return [package.COMPILED, sorted(endings), EARLY, gc.isenabled()]
                if request == "parents":
                    import lsmkv.engine.util
                    return [lsmkv.engine.util.threads.__name__, lsmkv.testing.interpreted.__name__]
                if request == "hash":
                    return hash(b"bytes")
                if request == "copies":
                    kept = []
                    def call():
                        kept.append(1)
                        return kept
                    return [in_copy(call), in_copy(call), kept]
                if request == "failing copy":
                    try:
                        in_copy(lambda: 1 / 0)
                    except ChildFailedError as error:
                        return str(error)
                if request == "printing":
                    print("printed")
                    return "answer"
                raise ValueError(request)
            """
        )
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return "asked_in_a_child"


def test_every_module_comes_from_its_source(module: str) -> None:
    assert run_interpreted(module, "files") == [False, [".py"], False, False]
    assert isinstance(lsmkv.COMPILED, bool)


def test_modules_are_attributes_of_their_packages(module: str) -> None:
    assert run_interpreted(module, "parents") == [
        "lsmkv.engine.util.threads",
        "lsmkv.testing.interpreted",
    ]


def test_hashes_are_the_same_in_every_child(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "5")
    first = run_interpreted(module, "hash")
    monkeypatch.delenv("PYTHONHASHSEED")
    assert run_interpreted(module, "hash") == first
    assert "PYTHONHASHSEED" not in os.environ


@pytest.mark.skipif(sys.platform == "win32", reason="no process can be copied")
def test_a_copy_leaves_the_child_as_it_was(module: str) -> None:
    assert run_interpreted(module, "copies") == [[1], [1], []]
    assert run_interpreted(module, "failing copy") == "a copy has ended with 1"


def test_what_a_child_prints_is_no_answer(module: str) -> None:
    assert run_interpreted(module, "printing") == "answer"


def test_a_child_that_raises_is_an_error(module: str) -> None:
    with pytest.raises(ChildFailedError, match="has ended with 1"):
        run_interpreted(module, "nonsense")
