"""A shared store on a full disk: errors have a number, and nothing acknowledged is lost."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from processes import ENVIRON


@pytest.mark.parametrize("case", ["goes on", "is killed"])
def test_an_owner_on_a_full_disk(case: str, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    mounting = f"mount -t tmpfs -o size=4m tmpfs {place}"
    own = ["unshare", "-m", "sh", "-ec"]
    if shutil.which("unshare") is None or (
        subprocess.run([*own, mounting], check=False, capture_output=True).returncode
    ):
        pytest.skip("no file system can be mounted here")
    script = str(Path(__file__).with_name("full_store_child.py"))
    child = subprocess.run(
        [*own, f'{mounting}; "$@"', "sh", sys.executable, "-P", script, case, str(place)],
        check=False, capture_output=True, text=True, env=ENVIRON,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr
    seen = json.loads(child.stdout)
    assert seen["refused"] > 0
    assert seen["taken"] == 300
