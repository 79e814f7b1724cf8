"""diskcache's own tests against :class:`lsmkv.Cache`: ``python diskcache_suite.py SOURCE``.

``SOURCE`` is its source package of 5.6.3, which ``make test-diskcache`` downloads.  It is unpacked
into a temporary directory; ``as_diskcache.py`` puts lsmkv's classes in place of its own.  Two lists
name the tests that are not run: those whose bodies name its SQL, its connections or its files
(``diskcache_left_out.txt``), and those of what lsmkv has not (``diskcache_has_more.txt``).  The
package has no settings for its tests of Django, so they are here.  Further arguments are pytest's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SUITES = ("core", "deque", "djangocache", "fanout", "index", "recipes")
LEFT_OUT = HERE / "diskcache_left_out.txt"
HAS_MORE = HERE / "diskcache_has_more.txt"

DJANGO = {
    "__init__.py": "",
    "settings.py": """\
SECRET_KEY = "a secret of the tests"
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = ["tests"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
CACHES = {"default": {"BACKEND": "diskcache.DjangoCache", "LOCATION": "/nowhere"}}
""",
    "models.py": """\
import datetime
from django.db import models

def expensive_calculation():
    expensive_calculation.num_runs += 1
    return datetime.datetime.now()

class Poll(models.Model):
    question = models.CharField(max_length=200)
    pub_date = models.DateTimeField(default=expensive_calculation)
""",
    "conftest.py": """\
import pytest
from django.apps import apps
from django.core.management import call_command

@pytest.fixture(scope="session", autouse=True)
def tables():
    if apps.ready:
        call_command("migrate", run_syncdb=True, verbosity=0)
""",
}
"""What the tests of its backend import: an app with a model, and a database in memory."""


def left_out(path: Path) -> dict[str, str]:
    """The tests that a list names, and why they are not run."""
    lines = path.read_text(encoding="utf-8").splitlines()
    parts = [line.partition("  ") for line in lines if line and not line.startswith("#")]
    return {name: reason for name, _, reason in parts}


def run(source: Path, arguments: list[str]) -> int:
    """Run the tests; pytest's result."""
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(source) as archive:
            archive.extractall(place, filter="data")
        (root,) = Path(place).iterdir()
        (root / "diskcache").rename(root / "not imported")
        for name, text in DJANGO.items():
            (root / "tests" / name).write_text(text, encoding="utf-8")
        path = os.pathsep.join([str(HERE), str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(root)]
        command += ["-p", "as_diskcache", "-p", "no:cacheprovider", "-W", "ignore"]
        command += [*arguments, *(f"tests/test_{name}.py" for name in SUITES)]
        environment = os.environ | {"PYTHONPATH": path}
        return subprocess.run(command, check=False, cwd=root, env=environment).returncode


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]).resolve(), sys.argv[2:]))
