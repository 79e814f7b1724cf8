"""What a type checker makes of lsmkv: ``typing/uses_everything.py`` says what it must."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

USES = Path(__file__).parent / "typing" / "uses_everything.py"


def check(path: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--warn-unreachable"),
            *("--config-file", "", "--follow-imports", "silent", "--ignore-missing-imports"),
            *("--cache-dir", str(cache), str(path)),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
    )


def test_types_are_precise(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    result = check(USES, tmp_path / "cache")
    assert result.returncode == 0, result.stdout + result.stderr
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        USES.read_text().replace('db.get(b"k"), bytes | None)', 'db.get(b"k"), bytes)')
    )
    result = check(wrong, tmp_path / "cache")
    assert result.returncode == 1
    assert "assert-type" in result.stdout


def test_every_public_name_exists() -> None:
    import lsmkv

    for name in lsmkv.__all__:
        assert hasattr(lsmkv, name)
