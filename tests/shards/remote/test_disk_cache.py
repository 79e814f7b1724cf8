"""lsmkv.shards.remote.disk_cache: pages on the local disk, for several processes at once."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from processes import ENVIRON, python
from threads import run_threads

from lsmkv.errors import CorruptionError
from lsmkv.shards.remote import disk_cache
from lsmkv.shards.remote.disk_cache import DiskCache

# Writes and reads pages of 1,000 bytes, and says so if one is another.  The last argument is the
# number of pages, or 0 for no end.
HAMMER = """
import random, sys
from lsmkv.shards.remote.disk_cache import DiskCache
path, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
cache = DiskCache(path, capacity=30_000)
chance = random.Random(seed)
done = 0
print("ready", flush=True)
while count == 0 or done < count:
    number = chance.randrange(60)
    data = cache.get("object", number)
    if data is None:
        cache.put("object", number, b"%04d" % number * 250)
    elif data != b"%04d" % number * 250:
        sys.exit(f"page {number} is {data!r}")
    done += 1
cache.close()
print(cache.hits, cache.puts, cache.puts_skipped, cache.damaged)
"""


def page(number: int) -> bytes:
    return b"%04d" % number * 250


def hammer(path: Path, seed: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-c", HAMMER, str(path), str(seed), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRON)


def page_files(path: Path) -> list[Path]:
    return [file for file in path.glob("??/*") if not file.name.startswith(".")]


def bytes_in(path: Path) -> int:
    """The bytes of all pages at one moment: under the lock that writers take."""
    with open(path / "SIZE", "rb+") as size:
        fcntl.flock(size, fcntl.LOCK_EX)
        return sum(file.stat().st_size for file in page_files(path))


def test_pages_are_found_until_and_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "made" / "cache"
    cache = DiskCache(path)
    assert cache.get("object", 0) is None
    cache.put("object", 0, b"zero")
    cache.put("object", 1, b"")
    cache.put("other", 0, b"other" * 5000)
    assert path.stat().st_mode & 0o777 == 0o700
    for opened in (cache, DiskCache(str(path)), DiskCache(path, 1 << 20)):
        assert opened.get("object", 0) == b"zero"
        assert opened.get("object", 1) == b""
        assert opened.get("other", 0) == b"other" * 5000
        assert opened.get("other", 1) is None
        opened.check()
        assert opened.hits == 3
        opened.close()
    assert (cache.hits, cache.misses, cache.puts) == (3, 2, 3)


def test_a_page_is_replaced(tmp_path: Path) -> None:
    with_old = DiskCache(tmp_path)
    for data in (b"old", b"a new one", b"short"):
        with_old.put("object", 7, data)
        assert with_old.get("object", 7) == data
        with_old.check()
    assert len(page_files(tmp_path)) == 1
    with_old.close()


def test_a_closed_cache_is_off(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.put("object", 0, b"data")
    cache.close()
    cache.close()
    cache.put("object", 1, b"data")
    assert cache.get("object", 0) is None
    assert len(page_files(tmp_path)) == 1


def test_the_pages_used_longest_ago_go_first(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 50_000)
    for number in range(40):
        cache.put("object", number, page(number))
    now = time.time()
    for at, file in enumerate(sorted(page_files(tmp_path))):
        os.utime(file, (now - 10_000 - at, now - 10_000 - at))
    used = set(range(0, 40, 4))
    for number in used:
        assert cache.get("object", number) == page(number)
    for number in range(100, 130):
        cache.put("object", number, page(number))
        assert bytes_in(tmp_path) <= 50_000
    cache.check()
    assert 0 < cache.evictions < 30
    assert all(cache.get("object", number) is not None for number in used)
    kept = sum(cache.get("object", number) is not None for number in range(40))
    assert kept + 30 == 70 - cache.evictions == len(page_files(tmp_path))
    cache.close()


def test_eviction_makes_room_for_a_tenth_of_the_capacity(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 50_000)
    most: list[int] = []
    for number in range(200):
        before = cache.evictions
        cache.put("object", number, page(number))
        if cache.evictions > before:
            most.append(bytes_in(tmp_path))
    assert 20 < len(most) < 30  # once for each five or six pages
    assert all(42_000 < size <= 45_000 for size in most)
    cache.close()


def test_a_use_is_noted_at_most_once_a_minute(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.put("object", 0, b"data")
    (file,) = page_files(tmp_path)
    for age, is_noted in ((30, False), (90, True)):
        then = time.time() - age
        os.utime(file, (then, then))
        cache.get("object", 0)
        assert (file.stat().st_mtime > then + 20) == is_noted
    cache.close()


def test_a_page_larger_than_the_cache_is_not_kept(tmp_path: Path) -> None:
    for capacity in (0, 1000):
        cache = DiskCache(tmp_path, capacity)
        cache.put("object", 0, page(0))
        assert cache.get("object", 0) is None
        cache.close()
    with pytest.raises(ValueError, match="-1"):
        DiskCache(tmp_path, -1)


def test_damage_of_every_byte_is_a_miss_and_removes_the_page(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.put("object", 0, b"data" * 5)
    (file,) = page_files(tmp_path)
    whole = file.read_bytes()
    damaged = [whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :] for at in range(len(whole))]
    damaged += [whole[:length] for length in range(len(whole))]
    damaged += [whole + b"\0", bytes(len(whole))]
    for content in damaged:
        file.write_bytes(content)
        with pytest.raises(CorruptionError) as caught:
            cache.check()
        assert caught.value.path == str(file)
        assert cache.get("object", 0) is None
        assert not file.exists()
    assert cache.damaged == len(damaged)
    cache.put("object", 0, b"data" * 5)
    assert cache.get("object", 0) == b"data" * 5
    cache.close()


@pytest.mark.parametrize("kind", ["fifo", "link", "sparse"])
def test_what_is_no_page_file_is_a_miss(tmp_path: Path, kind: str) -> None:
    cache = DiskCache(tmp_path / "cache")
    cache.put("object", 0, b"zero")
    (file,) = page_files(tmp_path / "cache")
    os.rename(file, tmp_path / "other")
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "link":
        file.symlink_to(tmp_path / "other")
    else:
        with open(file, "wb") as made:
            made.truncate(1 << 40)
    assert cache.get("object", 0) is None
    assert (tmp_path / "other").exists()
    cache.close()


def test_a_page_under_another_name_is_a_miss(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.put("object", 0, b"zero")
    (first,) = page_files(tmp_path)
    cache.put("object", 1, b"one")
    (second,) = set(page_files(tmp_path)) - {first}
    second.write_bytes(first.read_bytes())
    with pytest.raises(CorruptionError, match="another page's name"):
        cache.check()
    assert cache.get("object", 1) is None
    assert cache.get("object", 0) == b"zero"
    cache.close()


@pytest.mark.parametrize("damage", [b"", b"x" * 12, b"\xff" * 8 + b"sums", b"y" * 30, None])
def test_a_damaged_size_is_measured_again(tmp_path: Path, damage: bytes | None) -> None:
    cache = DiskCache(tmp_path, 30_000)
    for number in range(20):
        cache.put("object", number, page(number))
    cache.close()
    size = tmp_path / "SIZE"
    if damage is None:
        size.unlink()
    else:
        size.write_bytes(damage)
    cache = DiskCache(tmp_path, 30_000)
    cache.put("object", 20, page(20))
    assert cache.evictions == 0
    for number in range(21, 60):
        cache.put("object", number, page(number))
        cache.check()
    assert cache.evictions > 0
    cache.close()


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "00").mkdir()
    others = [tmp_path / "notes", tmp_path / "00" / "notes"]
    for other in others:
        other.write_bytes(bytes(100_000))
    cache = DiskCache(tmp_path, 20_000)
    for number in range(50):
        cache.put("object", number, page(number))
    assert bytes_in(tmp_path) - 100_000 > 15_000  # the other file is none of its pages
    assert all(other.exists() for other in others)
    cache.close()


def test_what_killed_writers_left_is_removed_when_it_is_old(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 20_000)
    cache.put("object", 0, page(0))
    folder = page_files(tmp_path)[0].parent
    old, new = folder / ".new-1-aa-0", folder / ".new-1-aa-1"
    for file, age in ((old, 4000), (new, 100)):
        file.write_bytes(b"torn")
        os.utime(file, (time.time() - age, time.time() - age))
    for number in range(30):
        cache.put("object", number, page(number))
    assert not old.exists()
    assert new.exists()
    cache.check()
    cache.close()


# A disk that fails


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "lsmkv"]


@pytest.mark.parametrize("call", ["write", "open", "replace", "lseek"])
def test_a_full_disk_ends_the_adding_of_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, call: str
) -> None:
    def fail(*args: object, **keywords: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    cache = DiskCache(tmp_path)
    cache.put("object", 0, b"data")
    with monkeypatch.context() as patch:
        patch.setattr(disk_cache.os, call, fail)
        for number in range(1, 4):
            cache.put("object", number, b"data")
    assert len(warnings_in(caplog)) == 1
    assert "No space left" in warnings_in(caplog)[0]
    assert cache.get("object", 0) == b"data"
    cache.put("object", 4, b"data")
    assert cache.get("object", 4) is None
    assert [file.name for file in tmp_path.glob("??/.*")] == []
    cache.close()


def test_too_many_descriptors_are_a_miss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: object, **keywords: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    cache = DiskCache(tmp_path)
    cache.put("object", 0, b"data")
    with monkeypatch.context() as patch:
        patch.setattr(disk_cache.os, "open", fail)
        assert cache.get("object", 0) is None
        cache.put("object", 1, b"data")
    assert warnings_in(caplog) == []
    assert cache.get("object", 0) == b"data"
    cache.put("object", 1, b"data")
    assert cache.get("object", 1) == b"data"
    cache.close()


def test_a_file_in_the_place_of_the_directory_turns_the_cache_off(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"mine")
    cache = DiskCache(path)
    cache.put("object", 0, b"data")
    assert cache.get("object", 0) is None
    assert len(warnings_in(caplog)) == 1
    assert path.read_bytes() == b"mine"
    cache.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_directory_for_reading_only_gives_pages(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = DiskCache(tmp_path)
    cache.put("object", 0, b"data")
    cache.close()
    (file,) = page_files(tmp_path)
    os.utime(file, (0, 0))
    for folder in (tmp_path, file.parent):
        folder.chmod(0o500)
    try:
        cache = DiskCache(tmp_path)
        cache.put("object", 1, b"data")
        assert cache.get("object", 0) == b"data"
        assert len(warnings_in(caplog)) == 1
        cache.close()
    finally:
        for folder in (tmp_path, file.parent):
            folder.chmod(0o700)


# Several at once


def test_processes_share_a_cache_within_its_capacity(tmp_path: Path) -> None:
    processes = [hammer(tmp_path, seed, 800) for seed in range(3)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    most = 0
    while any(process.poll() is None for process in processes):
        if (tmp_path / "SIZE").exists():
            most = max(most, bytes_in(tmp_path))
        time.sleep(0.005)
    counts = []
    for process in processes:
        output, _ = process.communicate()
        assert process.returncode == 0
        counts.append([int(word) for word in output.splitlines()[-1].split()])
    assert 20_000 < most <= 30_000
    cache = DiskCache(tmp_path, 30_000)
    cache.check()
    cache.close()
    assert all(hits > 0 and puts > 0 and damaged == 0 for hits, puts, _, damaged in counts)


def test_killed_writers_leave_a_sound_cache(tmp_path: Path) -> None:
    chance = random.Random(5)
    for seed in range(3):
        processes = [hammer(tmp_path, 10 * seed + at, 0) for at in range(2)]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0.02, 0.15))
        for process in processes:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        cache = DiskCache(tmp_path, 30_000)
        cache.check()
        for number in range(60):
            assert cache.get("object", number) in (None, page(number))
        assert cache.damaged == 0
        cache.put("object", 99, page(99))
        assert cache.get("object", 99) == page(99)
        cache.close()


def test_threads_share_a_cache(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 30_000)
    wrong: list[object] = []

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(400):
            number = chance.randrange(60)
            data = cache.get("object", number)
            if data is None:
                cache.put("object", number, page(number))
            elif data != page(number):
                wrong.append((number, data))

    assert run_threads(*[partial(work, seed) for seed in range(4)]) == []
    assert wrong == []
    assert cache.hits + cache.misses == 1600
    assert cache.puts + cache.puts_skipped == cache.misses
    cache.check()
    cache.close()


FORK = """
import os, sys
from lsmkv.shards.remote.disk_cache import DiskCache
cache = DiskCache(sys.argv[1])
cache.put("object", 0, b"data")  # so that the lock's file is open
go_out, go_in = os.pipe()
child = os.fork()
if child == 0:
    os.read(go_out, 1)
    cache.put("object", 1, b"data")
    os._exit(cache.puts_skipped)
replace = os.replace

def replace_after_the_child(old, new):
    os.write(go_in, b"x")
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    replace(old, new)

os.replace = replace_after_the_child
cache.put("object", 2, b"data")
cache.close()
"""


def test_a_forked_child_has_a_lock_of_its_own(tmp_path: Path) -> None:
    """The parent holds the lock while the child puts a page: it is not kept."""
    assert python(FORK, str(tmp_path)).stdout == "1\n"
    cache = DiskCache(tmp_path)
    assert [cache.get("object", number) for number in range(3)] == [b"data", None, b"data"]
    cache.close()


def test_a_busy_lock_is_not_waited_for(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.put("object", 0, b"data")
    with open(tmp_path / "SIZE", "rb+") as size:
        fcntl.flock(size, fcntl.LOCK_EX)
        cache.put("object", 1, b"data")
        assert cache.get("object", 0) == b"data"
    assert cache.get("object", 1) is None
    assert cache.puts_skipped == 1
    assert [file.name for file in tmp_path.glob("??/.*")] == []
    cache.put("object", 1, b"data")
    assert cache.get("object", 1) == b"data"
    cache.close()
