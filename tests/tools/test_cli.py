"""The command line: stdout, stderr, exit status, and files on disk."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Done, fails
from commands import lsm_bytes as lsm

import lsmkv
from lsmkv.tools.app import GROUPS
from lsmkv.tools.doctor.engine import version_text

HOME = str(Path(lsmkv.__file__).parents[1])
ENVIRONMENT = os.environ | {"PYTHONPATH": HOME, "COLUMNS": "80"}
COMMAND = [sys.executable, "-W", "error", "-m", "lsmkv"]


def start(*arguments: str | Path, **streams: Any) -> subprocess.Popen[bytes]:
    """Run a command in a process of its own."""
    return subprocess.Popen([*COMMAND, *map(str, arguments)], env=ENVIRONMENT, **streams)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with three records, two of them hard to print."""
    path = tmp_path / "store"
    with lsmkv.DB(path, create_if_missing=True) as db:
        db.put(b"a", "café".encode())
        db.put(b"b\n", b"\x1b[31m")
        db.put(b"\xff", b"\\")
        db.flush()
    return path


def records(path: Path) -> list[tuple[bytes, bytes]]:
    with lsmkv.DB(path) as db:
        return list(db)


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(option: str) -> None:
    with start(option, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as done:
        out, _ = done.communicate()
    assert out.decode() == f"{version_text()}\n"
    assert done.returncode == 0


def test_the_exit_status_of_a_process(store: Path) -> None:
    for key, status in (("a", 0), ("none", 1)):
        with start("get", store, key, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
            done.communicate()
        assert done.returncode == status


NAMES = [name for members in GROUPS.values() for name in members]


def test_help_shows_the_commands_in_groups() -> None:
    found: dict[str, list[str]] = {}
    for line in lsm("--help").out.decode().splitlines():
        if line.startswith("╭─ "):
            group = line.split()[1]
            found[group] = []
        elif name := re.match("│ ([a-z][a-z-]+) ", line):
            found[group].append(name[1])
    first_words = {
        group: list(dict.fromkeys(name.split()[0] for name in members))
        for group, members in GROUPS.items()
    }
    assert found == {"Options": []} | first_words


def test_help_of_a_command_with_commands_shows_them() -> None:
    help_text = lsm("bulk", "--help").out.decode()
    assert re.findall("│ ([a-z]+) ", help_text) == ["build", "list", "prune", "diff"]
    help_text = lsm("course", "--help").out.decode()
    assert re.findall("│ ([a-z]+) ", help_text) == ["new", "show", "check", "plot", "grade"]


def completed(*words: str) -> list[str]:
    """What bash offers for the last word."""
    program = "import sys; sys.argv[0] = 'lsmkv'; from lsmkv.tools.cli import main; main()"
    asked = {
        "_LSMKV_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["lsmkv", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, env=ENVIRONMENT | asked, check=True
    )
    return done.stdout.decode().split()


def test_shell_completion_of_commands_and_options() -> None:
    assert sorted(completed("ex")) == ["explain", "export"]
    assert completed("demo", "--layout", "b") == ["block", "both", "block64"]
    assert "--prefix" in completed("count", "--")


def test_every_command_prints_json(tmp_path: Path) -> None:
    for name in NAMES:
        assert "--json" in lsm(*name.split(), "--help").out.decode(), name
    where = tmp_path / "db"

    def said(*arguments: str | Path, status: int = 0, stdin: bytes = b"") -> list[Any]:
        done = lsm(*arguments, "--json", stdin=stdin)
        assert done.status == status
        return [json.loads(line) for line in done.out.splitlines()]

    path = str(where)
    put = said("put", where, "k", "v\u00e9", "--create")
    assert put == [{"path": path, "key": "k", "bytes": 3}]
    assert said("put", where, "ff", "00", "--hex") == [{"path": path, "key_hex": "ff", "bytes": 1}]
    assert said("get", where, "k") == [{"key": "k", "value": "v\u00e9"}]
    assert said("get", where, "none", status=1) == [{"key": "none", "value": None}]
    assert said("scan", where) == [
        {"key": "k", "value": "v\u00e9"},
        {"key_base64": "/w==", "value": "\0"},
    ]
    keys = [{"key_hex": "6b"}, {"key_hex": "ff"}]
    assert said("scan", where, "--keys-only", "--hex") == keys
    assert said("keys", where, "--hex") == keys
    assert said("count", where) == [{"path": path, "keys": 2}]
    (loaded,) = said("load", where, "-", stdin=b"a\tb\n\nc\n")
    assert (loaded["records"], loaded["blank_lines"]) == (2, 1)
    assert said("delete", where, "k") == [{"path": path, "key": "k"}]
    fails(lsm("get", where, "k", "--raw", "--json"), "not both")


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help(name: str) -> None:
    done = lsm(*name.split(), "--help")
    assert done.status == 0
    assert name in done.out.decode()
    *above, own = name.split()
    assert own in lsm(*above, "--help").out.decode()


def test_a_wrong_call_is_status_2() -> None:
    for arguments in (["frobnicate"], ["get"], ["scan", "x", "--limit", "-1"], ["get", "x", "--y"]):
        done = lsm(*arguments)
        assert done.status == 2
        assert done.out == b""
        assert "Traceback" not in done.err
    assert "frobnicate" in lsm("frobnicate").err


# put and get


def test_put_and_get(store: Path) -> None:
    assert lsm("put", store, "ключ", "значение") == Done(0, b"", "")
    assert lsm("get", store, "ключ") == Done(0, "значение\n".encode(), "")
    assert lsm("put", store, "ключ", "") == Done(0, b"", "")
    assert lsm("get", store, "ключ") == Done(0, b"\n", "")


def test_a_value_from_stdin_is_kept_byte_for_byte(store: Path) -> None:
    value = bytes(range(256)) + b"\n"
    assert lsm("put", store, "k", "-", stdin=value).status == 0
    assert lsm("get", store, "k").out == value + b"\n"
    assert lsm("get", store, "k", "--raw").out == value
    assert lsm("get", store, "6b", "--hex").out == value.hex().encode() + b"\n"


def test_keys_and_values_in_hexadecimal(store: Path) -> None:
    assert lsm("put", store, "00ff", "0A0b", "--hex") == Done(0, b"", "")
    assert lsm("put", store, "00fe", "-", "--hex", stdin=b"01 02\n") == Done(0, b"", "")
    assert dict(records(store))[b"\x00\xff"] == b"\n\x0b"
    assert dict(records(store))[b"\x00\xfe"] == b"\x01\x02"
    for arguments in (["zz", "00"], ["00", "0"], ["00", "-"]):
        fails(lsm("put", store, *arguments, "--hex", stdin=b"0 0 0"), "not hexadecimal")
    fails(lsm("get", store, "zz", "--hex"), "not hexadecimal: 'zz'")


def test_a_key_that_is_not_utf8(store: Path) -> None:
    assert lsm("get", store, os.fsdecode(b"\xff")).out == b"\\\n"


def test_a_miss_is_status_1(store: Path) -> None:
    assert lsm("get", store, "no\x1bkey") == Done(1, b"", "lsmkv: no\\x1bkey: no such key\n")


def test_delete(store: Path) -> None:
    assert lsm("delete", store, "a") == Done(0, b"", "")
    assert lsm("get", store, "a").status == 1
    assert lsm("delete", store, "a") == Done(0, b"", "")
    assert lsm("delete", store, "ff", "--hex") == Done(0, b"", "")
    assert records(store) == [(b"b\n", b"\x1b[31m")]


# scan, keys and count


def test_scan_prints_one_safe_line_for_each_record(store: Path) -> None:
    expected = "a\tcafé\nb\\n\t\\x1b[31m\n\\xff\t\\\\\n"
    assert lsm("scan", store) == Done(0, expected.encode(), "")


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ([], ["a", "ab", "b", "c"]),
        (["--start", "ab"], ["ab", "b", "c"]),
        (["--stop", "b"], ["a", "ab"]),
        (["--start", "ab", "--stop", "c"], ["ab", "b"]),
        (["--prefix", "a"], ["a", "ab"]),
        (["--prefix", "x"], []),
        (["--reverse"], ["c", "b", "ab", "a"]),
        (["--reverse", "--limit", "2"], ["c", "b"]),
        (["--limit", "0"], []),
        (["--start", "6162", "--stop", "63", "--hex"], ["6162", "62"]),
    ],
)
def test_scan_of_a_range(tmp_path: Path, options: list[str], keys: list[str]) -> None:
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db:
        for key in (b"a", b"ab", b"b", b"c"):
            db.put(key, b"value")
    expected = Done(0, "".join(f"{key}\n" for key in keys).encode(), "")
    assert lsm("scan", tmp_path / "db", "--keys-only", *options) == expected
    assert lsm("keys", tmp_path / "db", *options) == expected
    if not {"--reverse", "--limit"} & set(options):
        expected = Done(0, f"{len(keys)}\n".encode(), "")
        assert lsm("count", tmp_path / "db", *options) == expected
    is_hex = "--hex" in options
    values = lsm("scan", tmp_path / "db", *options).out.decode().splitlines()
    assert values == [f"{key}\t{b'value'.hex() if is_hex else 'value'}" for key in keys]


def test_count_of_more_keys_than_one_step_takes(tmp_path: Path) -> None:
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db, db.write_batch() as batch:
        for number in range(20_001):
            batch.put(b"%05d" % number, b"")
    assert lsm("count", tmp_path / "db") == Done(0, b"20001\n", "")


@pytest.mark.parametrize("command", ["scan", "keys", "count"])
def test_a_prefix_excludes_other_bounds(store: Path, command: str) -> None:
    fails(lsm(command, store, "--prefix", "a", "--stop", "b"), "--prefix", "--stop")


def test_scan_into_a_closed_pipe_exits_like_sigpipe(tmp_path: Path) -> None:
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db:
        for number in range(5000):
            db.put(b"%05d" % number, bytes(100))
    with start("scan", tmp_path / "db", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as scan:
        assert scan.stdout is not None
        assert scan.stderr is not None
        assert scan.stdout.readline().startswith(b"00000\t")
        scan.stdout.close()
        assert scan.stderr.read() == b""
    assert scan.returncode == 128 + signal.SIGPIPE


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", [["get", "a"], ["scan"], ["stats"]])
def test_stdout_on_a_full_disk_is_an_error(store: Path, command: list[str]) -> None:
    name, *rest = command
    with (
        open("/dev/full", "wb") as full,
        start(name, store, *rest, stdout=full, stderr=subprocess.PIPE) as done,
    ):
        _, err = done.communicate()
    assert done.returncode == 2
    assert err == b"lsmkv: No space left on device\n"


def test_control_characters_are_escaped_on_a_terminal(store: Path) -> None:
    for options, expected in (([], b"\\x1b[31m\r\n"), (["--raw"], b"\x1b[31m")):
        terminal, end = os.openpty()
        with start("get", store, "b\n", *options, stdout=end) as done:
            pass
        os.close(end)
        assert os.read(terminal, 100) == expected
        os.close(terminal)
        assert done.returncode == 0


def test_progress_is_drawn_on_a_terminal_at_stderr(tmp_path: Path) -> None:
    terminal, end = os.openpty()
    load = start(
        "load",
        tmp_path / "db",
        "-",
        "--create",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=end,
    )
    with load:
        out, _ = load.communicate(b"key\tvalue\n")
    os.close(end)
    shown = os.read(terminal, 10_000)
    os.close(terminal)
    assert out == b""
    assert b"Loading" in shown
    assert b"1 record loaded" in shown


# load


def test_load_from_a_file(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_bytes(b"b\tsecond\na\tfirst\n\nalone\n")
    done = lsm("load", tmp_path / "db", lines, "--create")
    assert done.status == 0
    assert done.out == b""
    assert done.err.startswith("lsmkv: 3 records loaded in ")
    assert "1 blank line left out" in done.err
    assert records(tmp_path / "db") == [(b"a", b"first"), (b"alone", b""), (b"b", b"second")]


@pytest.mark.parametrize("how", ["--escaped", "--hex"])
def test_load_reads_what_scan_prints(store: Path, tmp_path: Path, how: str) -> None:
    printed = lsm("scan", store, *(["--hex"] if how == "--hex" else []))
    assert lsm("load", tmp_path / "copy", "-", "--create", how, stdin=printed.out).status == 0
    assert records(tmp_path / "copy") == records(store)


def test_load_names_a_bad_line_and_puts_those_before_it(store: Path) -> None:
    done = lsm("load", store, "-", "--hex", stdin=b"00\t01\nxyz\n")
    assert done.status == 2
    told, error = done.err.splitlines()
    assert told.startswith("lsmkv: 1 record loaded")
    assert error == "lsmkv: line 2: not hexadecimal: 'xyz'"
    assert lsm("get", store, "00", "--hex").out == b"01\n"
    fails(lsm("load", store, "-", "--hex", "--escaped"), "--escaped", "--hex")


def test_load_of_a_file_that_cannot_be_read(store: Path, tmp_path: Path) -> None:
    fails(lsm("load", store, tmp_path / "none"), "none: No such file or directory")
    fails(lsm("load", store, tmp_path), "Is a directory")
    fails(lsm("load", tmp_path / "new", tmp_path / "none", "--create"), "none")
    assert not (tmp_path / "new").exists()


# Stores that are missing, in use or damaged


READERS: list[Callable[[Path], list[str | Path]]] = [
    lambda path: ["get", path, "k"],
    lambda path: ["delete", path, "k"],
    lambda path: ["scan", path],
    lambda path: ["keys", path],
    lambda path: ["count", path],
    lambda path: ["explain", path, "k"],
    lambda path: ["stats", path],
    lambda path: ["put", path, "k", "v"],
    lambda path: ["load", path, "-"],
]


@pytest.mark.parametrize("command", READERS)
def test_nothing_creates_a_store_by_accident(
    command: Callable[[Path], list[str | Path]], tmp_path: Path
) -> None:
    done = lsm(*command(tmp_path / "none"))
    fails(done, f"{tmp_path / 'none'}: no database here")
    # The commands that can create a store say how.
    assert ("--create" in done.err) == (command(tmp_path)[0] in ("put", "load"))
    assert not (tmp_path / "none").exists()
    (tmp_path / "empty").mkdir()
    fails(lsm(*command(tmp_path / "empty")), "no database here")
    assert list((tmp_path / "empty").iterdir()) == []


def test_the_error_says_why_a_store_cannot_be_created(tmp_path: Path) -> None:
    deep = tmp_path / "missing" / "store"
    fails(lsm("put", "--create", deep, "k", "v"), f"{deep}: the directory above it does not exist")
    done = lsm("put", "--create", "", "k", "v")
    fails(done, "'': ")
    assert "no database here" not in done.err


def test_create_makes_a_store(tmp_path: Path) -> None:
    assert lsm("put", tmp_path / "db", "k", "v", "--create") == Done(0, b"", "")
    assert records(tmp_path / "db") == [(b"k", b"v")]


def test_a_file_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    fails(lsm("get", tmp_path / "file", "k"), "file: Not a directory")


def test_a_store_in_use_can_be_read_but_not_written(store: Path) -> None:
    with lsmkv.DB(store) as db:
        fails(lsm("put", store, "a", "b"), str(store), "in use", "held by this process")
        db.put(b"new", b"one")
        assert lsm("get", store, "new") == Done(0, b"one\n", "")


def test_a_damaged_table_is_named(store: Path) -> None:
    (table,) = store.glob("*.ldb")
    content = bytearray(table.read_bytes())
    content[5] ^= 0xFF
    table.write_bytes(content)
    fails(lsm("get", store, "a"), table.name, "offset 0")


def test_a_damaged_current_is_named(store: Path) -> None:
    (store / "CURRENT").write_bytes(b"nonsense\n")
    fails(lsm("scan", store), "CURRENT")


# Signals


def test_ctrl_c_ends_a_load_without_a_traceback(tmp_path: Path) -> None:
    # A shell's background job ignores SIGINT, and its children inherit that.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from lsmkv.tools.cli import main\n"
        "sys.exit(main())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, "load", str(tmp_path / "db"), "-", "--create"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as load:
        assert load.stdin is not None
        assert load.stderr is not None
        # This is more than a pipe and a batch hold: once it is written, the load has begun.
        load.stdin.write(b"".join(b"%d\n" % number for number in range(100_000)))
        load.stdin.flush()
        load.send_signal(signal.SIGINT)
        err = load.stderr.read().decode()
    assert load.returncode == 130
    assert "Traceback" not in err
    assert err.endswith("lsmkv: interrupted\n")
    assert len(records(tmp_path / "db")) > 0


WAITING = (
    "import signal, sys\n"
    "from lsmkv.tools import cli, load\n"
    "def load_lines(*_):\n"
    "    try:\n"
    "        print('ready', flush=True)\n"
    "        while True:\n"
    "            signal.pause()\n"
    "    finally:\n"
    "        print('cleaned up', flush=True)\n"
    "load.load_lines = load_lines\n"
)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_and_sighup_run_the_finally_blocks(tmp_path: Path, number: signal.Signals) -> None:
    # As a terminal starts it, even if the suite runs under nohup.
    heard = f"signal.signal({int(number)}, signal.SIG_DFL)"
    program = f"{WAITING}{heard}\nsys.exit(cli.main())"
    with subprocess.Popen(
        [sys.executable, "-c", program, "load", str(tmp_path / "db"), "/dev/null", "--create"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as load:
        assert load.stdout is not None
        assert load.stdout.readline() == b"ready\n"
        load.send_signal(number)
        out, err = load.communicate()
    assert load.returncode == 128 + number
    assert out == b"cleaned up\n"
    assert b"Traceback" not in err
    assert records(tmp_path / "db") == []  # it was closed


def test_sighup_is_ignored_under_nohup(tmp_path: Path) -> None:
    program = f"{WAITING}signal.signal(signal.SIGHUP, signal.SIG_IGN)\nsys.exit(cli.main())"
    with subprocess.Popen(
        [sys.executable, "-c", program, "load", str(tmp_path / "db"), "/dev/null", "--create"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as load:
        assert load.stdout is not None
        assert load.stdout.readline() == b"ready\n"
        load.send_signal(signal.SIGHUP)
        load.send_signal(signal.SIGTERM)
        load.communicate()
    assert load.returncode == 128 + signal.SIGTERM


# Only what is asked for


def test_a_command_imports_its_own_modules_only(store: Path) -> None:
    program = (
        "import sys\n"
        "from lsmkv.tools.cli import main\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    print(*sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "get", store, "a"],
        capture_output=True,
        env=ENVIRONMENT,
        check=True,
    )
    value, modules = done.stdout.decode().splitlines()
    assert value == "café"
    imported = set(modules.split())
    assert {"typer", "lsmkv.tools.commands"} < imported
    others = {"rich", "textual", "starlette", "asyncio", "sqlite3", "lsmkv.shards", "lsmkv.repair"}
    assert not imported & others
    tools = {name.split(".")[2] for name in imported if name.startswith("lsmkv.tools.")}
    assert tools == {"app", "arguments", "cli", "commands", "console", "signals", "text"}


def test_an_unknown_command_is_met_with_its_neighbours() -> None:
    done = lsm("bulk", "lst")
    assert done.status == 2
    assert "Did you mean 'list'?" in done.err
    assert "No such command 'bulk list'" in lsm("bulk list").err


# Without the extra


def without(missing: str, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Run a command as if a package were not installed."""
    program = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from lsmkv.tools.cli import main\n"
        "sys.exit(main())"
    )
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        env=ENVIRONMENT,
        check=False,
    )


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_doctor_reports_the_same(missing: str, store: Path) -> None:
    text, fields = without(missing, "doctor", store), without(missing, "doctor", "--json", store)
    assert (text.returncode, text.stderr) == (fields.returncode, fields.stderr) == (0, b"")
    # The room that is free changes as others write.
    reports = [
        re.sub(r"(?m)^  free .*$", "", out.decode())
        for out in (text.stdout, lsm("doctor", store).out)
    ]
    engines = [report.split("extra 'tools'")[0] for report in reports]
    places = [report.split("\n\n")[1] for report in reports]
    assert engines[0] == engines[1]
    assert places[0] == places[1]
    own = json.loads(fields.stdout)
    assert own.keys() == json.loads(lsm("doctor", "--json", store).out).keys()
    assert own["directory"]["holds_store"]


def test_without_the_extra_doctor_has_the_same_statuses_and_help(tmp_path: Path) -> None:
    missing = without("typer", "doctor", tmp_path / "none")
    assert missing.returncode == lsm("doctor", tmp_path / "none").status == 1
    assert b"Traceback" not in missing.stderr
    described = without("typer", "doctor", "--help")
    assert described.returncode == 0
    assert b"usage: lsmkv doctor [-h] [--json] [DIR]" in described.stdout
    assert without("typer", "doctor", "--nonsense").returncode == 2


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_one_line_says_how_to_get_it(missing: str) -> None:
    done = without(missing, "demo")
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1
    assert b"pip install '.[tools]' in lsmkv's checkout" in done.stderr


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_without_the_extra_the_version_is_printed(option: str) -> None:
    done = without("typer", option)
    assert done.returncode == 0
    assert done.stdout.startswith(f"lsmkv {lsmkv.__version__} (".encode())
    assert done.stderr == b""
