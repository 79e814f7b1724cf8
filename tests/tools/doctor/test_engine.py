"""What is said of the engine that is installed."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

import lsmkv
from lsmkv.engine.env.installed import Installation, Requirement, version_of
from lsmkv.tools.doctor import engine as engine_module
from lsmkv.tools.doctor.engine import crc32c_text, engine, version_text, why_pure


def test_the_engine_that_runs_these_tests() -> None:
    found = engine()
    assert found.version == lsmkv.__version__
    assert found.compiled is lsmkv.COMPILED
    assert (found.pure is None) is lsmkv.COMPILED
    assert found.codecs == {"snappy": True, "zstd": True}
    assert found.crc32c in ("google-crc32c", "crc32c", "crcmod", "lsmkv")
    assert ".".join(map(str, sys.version_info[:3])) in found.python
    assert set(found.extras) == {"tools", "server", "remote", "plot"}


def test_packages_are_those_that_the_distribution_names(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = [
        Requirement("cramjam", "", "2.9"),
        Requirement("rich", "tools", "13.0"),
        Requirement("uvloop", "server", None),
        Requirement("ruff", "dev", "1.0"),
    ]
    monkeypatch.setattr(engine_module, "requirements", lambda: needed)
    found = engine()
    assert found.dependencies == {"cramjam": "2.9"}
    assert found.extras == {
        "tools": {"rich": "13.0"},
        "server": {"uvloop": None},
        "remote": {},
        "plot": {},
    }


def test_a_codec_that_fails_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(data: bytes, kind: int) -> bytes:
        if kind == 1:
            raise RuntimeError("built for another processor")
        return b"wrong"

    monkeypatch.setattr(engine_module, "decompress", broken)
    assert engine().codecs == {"snappy": False, "zstd": False}


@pytest.mark.parametrize(
    ("installed", "implementation", "what", "do"),
    [
        (Installation("wheel", "1"), "PyPy", "this is PyPy", "CPython"),
        (Installation("source", "1"), "CPython", "not installed", "pip install ."),
        (Installation("editable", "1"), "CPython", "as it is being edited", "without -e"),
        (Installation("wheel", "1"), "CPython", "no C compiler", "LSMKV_MYPYC=1"),
    ],
)
def test_why_an_engine_is_pure(
    installed: Installation, implementation: str, what: str, do: str
) -> None:
    advice = why_pure(installed, implementation)
    assert what in advice.what
    assert do in advice.do


def test_the_version_in_lines() -> None:
    lines = version_text().splitlines()
    kind = "compiled" if lsmkv.COMPILED else "pure Python"
    assert lines[0] == f"lsmkv {lsmkv.__version__} ({kind})"
    assert lines[1].startswith(engine().python)
    assert lines[2].startswith(f"snappy and zstd by cramjam {version_of('cramjam')}; CRC-32C by ")
    assert lines[3:] == [line for line in lines if line.startswith("not compiled: ")]
    assert len(lines) == (3 if lsmkv.COMPILED else 4)


def test_the_machine_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def node() -> str:
        raise AssertionError("the name of the machine was asked for")

    monkeypatch.setattr("platform.node", node)
    engine()


def test_a_free_threaded_interpreter_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ModuleType("settings")
    settings.get_config_var = lambda name: name == "Py_GIL_DISABLED"  # type: ignore[attr-defined]
    monkeypatch.setattr(engine_module, "sysconfig", settings)
    assert engine().python.endswith(", free-threaded")


def test_crcmod_has_the_version_of_the_package_that_it_comes_from() -> None:
    text = crc32c_text(engine()._replace(crc32c="crcmod"))
    there = version_of("crcmod-plus")
    assert text == ("crcmod" if there is None else f"crcmod-plus {there}")
    assert crc32c_text(engine()._replace(crc32c="lsmkv")) == "lsmkv"
