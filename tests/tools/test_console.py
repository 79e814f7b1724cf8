"""What commands print, and lines that are folded to a terminal; packages that are missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import lsm_bytes, on_terminal

import lsmkv
from lsmkv.tools.console import needing, write_json
from lsmkv.tools.text import fold

LINE = "000005.ldb  ok       level 2, 1,020 of 1,024 blocks, 241,643 entries, 123.4 MiB"


@pytest.mark.parametrize("width", [40, 60, 79, 80, 120])
def test_a_folded_line_keeps_figures_with_their_units(width: int) -> None:
    lines = fold(LINE, width, 21).split("\n")
    assert " ".join(line.strip() for line in lines) == LINE
    assert max(map(len, lines)) <= max(width, 46)
    assert all(line.startswith(" " * 21) for line in lines[1:])
    assert not any(line.strip().startswith(("blocks", "entries", "MiB")) for line in lines)
    assert (len(lines) == 1) == (width >= len(LINE))


def test_verify_folds_its_lines_on_a_terminal_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"k", b"v")
        db.flush()
    piped = lsm_bytes("verify", tmp_path / "db").out
    status, shown = on_terminal("verify", tmp_path / "db", columns=50)
    assert status == 0
    assert max(map(len, piped.splitlines())) > 50
    assert max(map(len, shown.splitlines())) <= 50
    assert shown.split() == piped.decode().split()


@pytest.mark.parametrize(
    ("packages", "extra", "message"),
    [
        (("hiredis",), "server", "it needs hiredis: pip install '.[server]' in lsmkv's checkout"),
        (("a", "hiredis"), "x", "it needs a and hiredis: pip install '.[x]' in lsmkv's checkout"),
        (("hiredis",), "", "it needs hiredis: pip install hiredis"),
    ],
)
def test_a_missing_package_is_named_with_what_installs_it(
    packages: tuple[str, ...], extra: str, message: str
) -> None:
    with pytest.raises(ValueError) as caught, needing("it", *packages, extra=extra):  # noqa: PT011
        raise ImportError("none", name="hiredis.sub")
    assert str(caught.value) == message


def test_another_import_that_fails_is_a_fault() -> None:
    with pytest.raises(ImportError), needing("it", "hiredis"):
        raise ImportError("none", name="lsmkv.server")


def test_json_is_one_line_or_indented(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    write_json({"path": "é"})
    write_json({"path": None}, indent=2)
    assert capsysbinary.readouterr().out == b'{"path": "\\u00e9"}\n{\n  "path": null\n}\n'
