"""diskcache's own tests against :class:`lsmkv.Cache`: ``python diskcache_suite.py SOURCE``.

``SOURCE`` is its source package of 5.6.3, which ``make test-diskcache`` downloads.  It is unpacked
into a temporary directory; ``as_diskcache.py`` puts lsmkv's classes in place of its own, and
``diskcache_left_out.txt`` lists the tests that are not run.  Further arguments are pytest's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
FILES = ("tests/test_core.py",)
LEFT_OUT = HERE / "diskcache_left_out.txt"


def left_out() -> list[str]:
    """The tests that are not run."""
    lines = LEFT_OUT.read_text(encoding="utf-8").splitlines()
    return [line.split()[0] for line in lines if line and not line.startswith("#")]


def run(source: Path, arguments: list[str]) -> int:
    """Run the tests; pytest's result."""
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(source) as archive:
            archive.extractall(place, filter="data")
        (root,) = Path(place).iterdir()
        (root / "diskcache").rename(root / "not imported")
        path = os.pathsep.join([str(HERE), str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(root)]
        command += ["-p", "as_diskcache", "-p", "no:cacheprovider", "-W", "ignore"]
        command += [f"--deselect={name}" for name in left_out()]
        command += [*arguments, *FILES]
        environment = os.environ | {"PYTHONPATH": path}
        return subprocess.run(command, check=False, cwd=root, env=environment).returncode


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]).resolve(), sys.argv[2:]))
