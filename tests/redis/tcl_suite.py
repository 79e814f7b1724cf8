"""Redis' own test suite, in Tcl, against a server that runs: ``make test-redis-tcl SUITE=DIR``.

DIR is the source tree of Redis 7.0 (``apt-get source redis``), of which nothing stands here.  The
suite's external mode is made for servers like this one, with two exceptions, which are changed in a
copy of it: it sets the sizes up to which Redis keeps collections compact, which no other server
has, and leaves some settings and users of one unit to the next.  It leaves out the units about
users: of these the tests run that need no server with settings of its own.  Tests of DEBUG,
replication, eviction and encodings are left out by the suite's own options, and so is one that
leaves the connection in a transaction where a command that it needs is missing.

    python tests/redis/tcl_suite.py DIR [PORT [UNIT...]]

prints how many tests of each unit pass, and those that do not.  Without a port it starts a server
of a new store.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from redis_servers import Lsmkv

UNITS = """
protocol keyspace scan info-command type/string type/incr type/list type/list-2 type/list-3 type/set
type/zset type/hash type/stream type/stream-cgroups sort expire other multi quit pubsub slowlog
introspection introspection-2 limits querybuf wait functions scripting acl acl-v2
"""
_OPTIONS = ["--durable", "--clients", "1", "--ignore-encoding", "--ignore-digest"]
_OPTIONS += ["--tags", "-needs:debug -needs:repl -needs:config-maxmemory"]
_OPTIONS += ["--skiptest", "command stats for MULTI"]
_FUNCTION_FLUSH = "    r function flush\n"
_START_OVER = "    r config set maxmemory 0\n    r acl deluser bob\n"
_OVERRIDE = "        r config set $param $val\n"
_REQUEST = '    [srv $level "client"] {*}$args\n}\n'
_SKIPPED = "acl external:skip"
_NO_SIZES = """\
    if {[string match -nocase {config set *-max-*} [lrange $args 0 2]] && \
        [regexp {(ziplist|listpack|intset)} [lindex $args 2]]} { return OK }
    if {[string match -nocase {config set list-compress-depth} [lrange $args 0 2]]} { return OK }
"""
_SECONDS = 600


def _copied(source: Path, target: Path) -> None:
    """A copy of the suite that asks for nothing that only Redis has."""
    shutil.copytree(source / "tests", target / "tests")
    (target / "tests" / "tmp").mkdir(exist_ok=True)
    server = target / "tests" / "support" / "server.tcl"
    text = server.read_text()
    assert _FUNCTION_FLUSH in text
    assert _OVERRIDE in text
    text = text.replace(_FUNCTION_FLUSH, _FUNCTION_FLUSH + _START_OVER)
    server.write_text(text.replace(_OVERRIDE, "        catch {r config set $param $val}\n"))
    helper = target / "tests" / "test_helper.tcl"
    for unit in ("acl", "acl-v2"):
        path = target / "tests" / "unit" / f"{unit}.tcl"
        first, _, others = path.read_text().partition("\nset server_path")
        assert _SKIPPED in first
        assert others
        path.write_text(first.replace(_SKIPPED, "acl"))
    text = helper.read_text()
    assert _REQUEST in text
    helper.write_text(text.replace(_REQUEST, _NO_SIZES + _REQUEST))


def run(suite: Path, port: int, units: list[str]) -> int:
    """Run units one after the other; how many tests failed."""
    failures: list[str] = []
    passed = 0
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        _copied(suite, directory)
        for unit in units:
            base = str(21000 + port % 40 * 600)
            command = ["tclsh", "tests/test_helper.tcl", "--host", "127.0.0.1"]
            command += ["--port", str(port), "--baseport", base, "--portcount", "500"]
            command += ["--single", f"unit/{unit}", *_OPTIONS]
            try:
                done = subprocess.run(
                    command,
                    check=False,
                    cwd=directory,
                    capture_output=True,
                    text=True,
                    timeout=_SECONDS,
                )
                output = done.stdout
            except subprocess.TimeoutExpired as error:
                output = (error.stdout or b"").decode()
                output += f"\n[exception]: no end after {_SECONDS} seconds\n"
            output = re.sub(r"\x1b\[[0-9;]*m", "", output)
            good = len(re.findall(r"^\[ok\]", output, re.MULTILINE))
            bad = re.findall(r"^\[(?:err|exception)\]: .*(?:\n.*)?", output, re.MULTILINE)
            print(f"{unit:24} {good:4} pass, {len(bad):3} fail", flush=True)
            passed += good
            failures += [f"{unit}: {one}" for one in bad]
    print(f"{passed} pass, {len(failures)} fail")
    for failure in failures:
        print(f"- {failure}")
    return len(failures)


def main(words: list[str]) -> int:
    suite = Path(words[0])
    units = words[2:] or UNITS.split()
    if len(words) > 1:
        return run(suite, int(words[1]), units)
    with tempfile.TemporaryDirectory() as name:
        server = Lsmkv(Path(name) / "store")
        try:
            return run(suite, server.address, units)
        finally:
            server.stop()


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
