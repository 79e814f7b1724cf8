"""lsmkv.engine.format.filenames: LevelDB's names, formatted, parsed and refused; and CURRENT."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.engine.env.base import Directory
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.engine.format.filenames import (
    FileType,
    log_name,
    manifest_name,
    old_table_name,
    parse_filename,
    read_current,
    set_current,
    table_name,
    worker_table_name,
    worker_token,
)
from lsmkv.errors import CorruptionError
from lsmkv.testing.faulty import FaultyEnv


@pytest.fixture
def directory() -> Directory:
    return MemoryEnv().open_directory("db", create=True)


@pytest.mark.parametrize(
    ("name", "number", "kind"),
    [
        ("100.log", 100, FileType.LOG),
        ("0.log", 0, FileType.LOG),
        ("000000.log", 0, FileType.LOG),
        ("0.sst", 0, FileType.TABLE),
        ("0.ldb", 0, FileType.TABLE),
        ("100.dbtmp", 100, FileType.TEMPORARY),
        (".worker-0123456789abcdef-17.tmp", 0, FileType.TEMPORARY),
        ("CURRENT", 0, FileType.CURRENT),
        ("LOCK", 0, FileType.LOCK),
        ("LOG", 0, FileType.INFO_LOG),
        ("LOG.old", 0, FileType.INFO_LOG),
        ("STATS.json", 0, FileType.STATS),
        ("STATS.json.tmp", 0, FileType.STATS),
        ("TRACE", 0, FileType.TRACE),
        ("MANIFEST-2", 2, FileType.MANIFEST),
        ("MANIFEST-000007", 7, FileType.MANIFEST),
        ("9223372036854775807.log", 2**63 - 1, FileType.LOG),
    ],
)
def test_names_of_the_engine(name: str, number: int, kind: FileType) -> None:
    assert parse_filename(name) == (number, kind)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "foo",
        "foo-dx-100.log",
        "worker-0123456789abcdef-17.tmp",
        ".worker-0123456789abcde-17.tmp",
        ".worker-0123456789ABCDEF-17.tmp",
        ".worker-0123456789abcdef-.tmp",
        ".worker-0123456789abcdef-17.tmp.",
        ".worker-0123456789abcdef-\u0661.tmp",
        ".log",
        "manifest",
        "manifest-1",
        "CURREN",
        "CURRENTX",
        "current",
        "MANIFES",
        "MANIFEST",
        "MANIFEST-",
        "XMANIFEST-3",
        "MANIFEST-3x",
        "MANIFEST--3",
        "LOC",
        "LOCKx",
        "LO",
        "LOGx",
        "LOG.old2",
        "18446744073709551616.log",
        "184467440737095516150.log",
        "9223372036854775808.log",
        "MANIFEST-9223372036854775808",
        "100",
        "100.",
        "100.lop",
        "100.LOG",
        "-1.log",
        "+1.log",
        "1_0.log",
        " 1.log",
        "1.log\n",
        "1.log ",
        "MANIFEST-1\n",
        "CURRENT\n",
        "\u0661.log",  # an Arabic digit, which int() takes
        "\uff11\uff12.ldb",
        "MANIFEST-\u0663",
        "1\u00b2.log",
        "../1.log",
        "lost",
    ],
)
def test_names_that_are_not_the_engines(name: str) -> None:
    assert parse_filename(name) is None


@given(name=st.from_regex(r"(MANIFEST-)?\d{1,3}(\.(log|ldb|sst|dbtmp))?", fullmatch=True))
def test_digits_of_other_scripts_are_refused(name: str) -> None:
    parsed = parse_filename(name)
    if not name.isascii() or name.startswith("MANIFEST") == ("." in name):
        assert parsed is None
    else:
        assert parsed is not None
        assert parsed[0] == int(name.removeprefix("MANIFEST-").partition(".")[0])


@pytest.mark.parametrize("number", [1, 100, 999_999, 1_000_000, 2**32, 2**63 - 1])
def test_names_are_parsed_back(number: int) -> None:
    assert parse_filename(log_name(number)) == (number, FileType.LOG)
    assert parse_filename(table_name(number)) == (number, FileType.TABLE)
    assert parse_filename(old_table_name(number)) == (number, FileType.TABLE)
    assert parse_filename(manifest_name(number)) == (number, FileType.MANIFEST)


def test_six_digits_at_least() -> None:
    assert log_name(192) == "000192.log"
    assert table_name(200) == "000200.ldb"
    assert old_table_name(200) == "000200.sst"
    assert manifest_name(100) == "MANIFEST-000100"
    assert table_name(1_000_000) == "1000000.ldb"


# CURRENT


def write(directory: Directory, name: str, data: bytes) -> None:
    with directory.create(name) as file:
        file.append(data)


def test_current_is_set_and_read(directory: Directory) -> None:
    for number in (4, 9, 1_000_000):
        set_current(directory, number)
        assert directory.read_file("CURRENT", 64) == f"MANIFEST-{number:06d}\n".encode()
        assert read_current(directory) == manifest_name(number)
    assert directory.names() == ["CURRENT"]


def test_current_is_replaced_only_when_it_is_durable() -> None:
    env = FaultyEnv()
    set_current(env.open_directory("db", create=True), 7)
    assert env.history == ["open_directory", "create", "append", "sync", "rename", "dir_sync"]


def test_current_is_old_or_new_whatever_fails() -> None:
    done = 0
    for n in range(1, 7):
        env = FaultyEnv()
        directory = env.open_directory("db", create=True)
        set_current(directory, 1)
        env.fail_at(n, sticky=True)
        try:
            set_current(directory, 2)
        except OSError:
            assert n <= 5
        else:
            done += 1
        for left in (env.power_cut(), env.kill()):
            current = read_current(left.open_directory("db"))
            assert current in ("MANIFEST-000001", "MANIFEST-000002")
            if done:
                assert current == "MANIFEST-000002"
    assert done == 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"MANIFEST-000001",
        b"MANIFEST-000001\n\n",
        b"MANIFEST-000001\r\n",
        b"MANIFEST-\n",
        b"MANIFEST-1x\n",
        b" MANIFEST-1\n",
        b"MANIFEST-1\nMANIFEST-2\n",
        b"../MANIFEST-1\n",
        b"sub/MANIFEST-1\n",
        b"/etc/passwd\n",
        b"000003.log\n",
        b"MANIFEST-1\0\n",
        "MANIFEST-\u0663\n".encode(),
        b"MANIFEST-123456789012345678901\n",
        b"MANIFEST-1\n" + bytes(100),
        b"1" * 10_000,
    ],
)
def test_malformed_content_of_current_is_refused(directory: Directory, content: bytes) -> None:
    write(directory, "CURRENT", content)
    with pytest.raises(CorruptionError) as caught:
        read_current(directory)
    assert caught.value.path == "db/CURRENT"


def test_an_error_while_reading_current_is_not_corruption() -> None:
    env = FaultyEnv()
    directory = env.open_directory("db", create=True)
    with pytest.raises(FileNotFoundError):
        read_current(directory)
    set_current(directory, 1)
    env.fail_at(1, calls=["read"])
    with pytest.raises(OSError, match=r"db/CURRENT"):
        read_current(directory)


def test_names_of_a_worker() -> None:
    name = worker_table_name("0123456789abcdef", 17)
    assert name == ".worker-0123456789abcdef-17.tmp"
    assert worker_token(name) == "0123456789abcdef"
    for other in ("000017.dbtmp", "000017.ldb", "CURRENT", "notes", name + "x"):
        assert worker_token(other) is None
