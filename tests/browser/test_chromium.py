"""Chromium's own databases, while it runs and after: ``make test-browser``.

The tests run in this order, with one browser.  With ``LSMKV_BROWSER_DATA=DIR`` the databases that
the page fills are kept in DIR, for the ordinary suite (see ``tests/data/README-browser.md``).
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from chromium_data import (
    fingerprint,
    indexeddb,
    local_storage,
    open_indexeddb,
    reported,
)
from chromium_page import PATIENCE, Browser, Page, chromium
from typer.testing import CliRunner
from waiting import wait_until

import lsmkv
from lsmkv.indexeddb import IndexedDBComparator, decode_key
from lsmkv.tools.app import app

log = logging.getLogger("browser")

WRITTEN = 1000
"""Records of 10,000 bytes: more than a memtable of Chromium's holds."""
LOG, BEHIND_LOG = bytes.fromhex("00010301"), bytes.fromhex("00010302")
"""The bounds of the object store that they go to: records of database 1, object store 3."""


@dataclass
class Profile:
    """A profile on disk, the page that writes to it, and what the page saw last."""

    directory: Path
    program: str
    page: Page
    browser: Browser
    seen: dict[str, Any]

    @property
    def local_storage(self) -> Path:
        return self.directory / "Default" / "Local Storage" / "leveldb"

    @property
    def indexeddb(self) -> Path:
        name = f"http_localhost_{self.page.port}.indexeddb.leveldb"
        return self.directory / "Default" / "IndexedDB" / name

    @property
    def both(self) -> tuple[Path, Path]:
        return self.local_storage, self.indexeddb


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Profile]:
    """A running browser whose page has filled its databases."""
    try:
        program = chromium()
    except FileNotFoundError as error:
        pytest.exit(str(error), returncode=1)
    home = tmp_path_factory.mktemp("browser")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    log.info("%s; lsmkv %s", done.stdout.strip(), lsmkv.__version__)
    with Page() as page, Browser(program, home / "profile", page.url) as browser:
        yield Profile(home / "profile", program, page, browser, page.ask("fill"))


@pytest.fixture(scope="module")
def finished(profile: Profile) -> Profile:
    """The profile after its browser has quit."""
    profile.browser.quit()
    profile.page.hang_up()
    return profile


def read_whole(directory: Path, **options: Any) -> dict[bytes, bytes]:
    """Everything that a store says, both ways, its checks included."""
    with lsmkv.DB(directory, read_only=True, **options) as db:
        found = list(db)
        assert found == list(db.iterator(reverse=True))[::-1]
        assert [db.get(key) for key, _ in found] == [value for _, value in found]
        assert db.verify() == []
        db.check()
        levels = [level.files for level in db.stats().levels]
    size = sum(len(key) + len(value) for key, value in found)
    log.info("%s: %d records, %d bytes, tables by level %s", directory, len(found), size, levels)
    return dict(found)


def agrees(profile: Profile) -> None:
    """IndexedDB's records and indexes are what the page sees, in the page's order."""
    with open_indexeddb(profile.indexeddb) as db:
        assert indexeddb(db) == reported(profile.seen["databases"])


def keep(profile: Profile) -> None:
    """Copy what the ordinary suite reads too, if this is asked for."""
    into = os.environ.get("LSMKV_BROWSER_DATA")
    if not into:
        return
    for directory, name in zip(profile.both, ("localstorage", "indexeddb"), strict=True):
        copy = Path(into) / f"{name}-chromium"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(directory, copy, ignore=shutil.ignore_patterns("LOG*", "LOCK"))
        for file in copy.iterdir():
            file.chmod(0o644)
        copy.chmod(0o755)
    text = json.dumps(profile.seen, ensure_ascii=True, separators=(",", ":"))
    (Path(into) / "chromium-seen.json").write_text(text + "\n", encoding="ascii")


# While it runs


def test_indexeddb(profile: Profile) -> None:
    agrees(profile)
    found = read_whole(profile.indexeddb, comparator=IndexedDBComparator())
    assert len(found) > 900
    assert any(name.suffix == ".ldb" for name in profile.indexeddb.iterdir())


def test_another_order_is_refused(profile: Profile) -> None:
    order = lsmkv.BytewiseComparator()
    with pytest.raises(lsmkv.ComparatorMismatchError) as caught:
        lsmkv.DB(profile.indexeddb, read_only=True, comparator=order)
    assert caught.value.stored == "idb_cmp1"


def test_the_command_reads_it(profile: Profile) -> None:
    before = read_whole(profile.indexeddb, comparator=IndexedDBComparator())
    done = CliRunner().invoke(app, ["scan", "--hex", "--keys-only", str(profile.indexeddb)])
    assert done.exit_code == 0
    assert done.stdout.split() == [key.hex() for key in before]


def test_local_storage(profile: Profile) -> None:
    seen = profile.seen["local"]
    assert len(seen) > 100
    with lsmkv.DB(profile.local_storage, read_only=True) as db:

        def is_written() -> bool:
            db.refresh()
            return local_storage(db, profile.seen["origin"]) == seen

        wait_until(is_written, PATIENCE)  # nothing tells when Chromium has written Local Storage
    read_whole(profile.local_storage)


def test_reading_leaves_it_as_it_is(profile: Profile) -> None:
    """Byte for byte, inode and time included; Chromium stands still, or it might write itself."""
    with profile.browser.stopped():
        before = [fingerprint(directory) for directory in profile.both]
        read_whole(profile.local_storage)
        read_whole(profile.indexeddb, comparator=IndexedDBComparator())
        agrees(profile)
        CliRunner().invoke(app, ["stats", str(profile.indexeddb)])
        assert [fingerprint(directory) for directory in profile.both] == before
        keep(profile)
    assert profile.page.ask("report") == profile.seen  # it goes on


def test_refresh_follows_it(profile: Profile) -> None:
    """Views taken while it writes hold what was written until then, and nothing out of turn."""
    first_log = next(profile.indexeddb.glob("*.log")).name
    views = set()
    with open_indexeddb(profile.indexeddb) as db:
        profile.page.tell("write", WRITTEN)
        while not profile.page.has_answered:
            db.refresh()
            numbers = [
                decode_key(key).values[0]
                for key in db.iterator(start=LOG, stop=BEHIND_LOG, include_value=False)
            ]
            assert numbers == [float(n + 1) for n in range(len(numbers))]
            views.add(len(numbers))
        profile.seen = profile.page.answer()
        db.refresh()
        assert indexeddb(db) == reported(profile.seen["databases"])
    log.info("%d transactions watched through %d different views", WRITTEN, len(views))
    assert len(views) > 2, "nothing was read while it wrote"
    assert first_log not in os.listdir(profile.indexeddb), "it did not even fill a memtable"
    read_whole(profile.indexeddb, comparator=IndexedDBComparator())


# After it has quit


def test_reading_what_it_left(finished: Profile) -> None:
    before = [fingerprint(directory) for directory in finished.both]
    with lsmkv.DB(finished.local_storage, read_only=True) as db:
        assert local_storage(db, finished.seen["origin"]) == finished.seen["local"]
    read_whole(finished.local_storage)
    read_whole(finished.indexeddb, comparator=IndexedDBComparator())
    agrees(finished)
    assert [fingerprint(directory) for directory in finished.both] == before


def test_writing_to_a_copy_and_chromium_reading_it(finished: Profile, tmp_path: Path) -> None:
    before = [fingerprint(directory) for directory in finished.both]
    copied = shutil.copytree(finished.directory, tmp_path / "copy", symlinks=True)
    copy = Profile(copied, finished.program, finished.page, finished.browser, finished.seen)
    for directory, order in zip(copy.both, (None, IndexedDBComparator()), strict=True):
        content = read_whole(directory, comparator=order)
        last = max(content) if order is None else max(content, key=order.sort_key)
        with lsmkv.DB(directory, comparator=order) as db:
            db.put(last, b"something else")
            db.compact_range()
            db.put(last, content[last])
            db.compact_range()
            db.check()
            assert dict(db) == content
        assert read_whole(directory, comparator=order) == content
    assert [fingerprint(directory) for directory in finished.both] == before
    for name in ("SingletonLock", "SingletonCookie", "SingletonSocket"):
        (copied / name).unlink(missing_ok=True)
    with Browser(copy.program, copied, copy.page.url) as browser:
        assert copy.page.ask("report") == finished.seen
        browser.quit()
    agrees(copy)
