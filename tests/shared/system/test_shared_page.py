"""The page of a shared store: memory that nobody can shorten, and that outlives its owner."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from lsmkv.shared.system.shared_page import (
    EPOCH,
    HAS_PAGES,
    SEQUENCE,
    SIZE,
    TOKEN,
    SharedPage,
    close_descriptor,
    find_page,
    make_page,
)

pytestmark = pytest.mark.skipif(not HAS_PAGES, reason="this system has no sealed memory files")


def test_what_the_owner_stores_a_member_reads() -> None:
    page, reading = make_page(3, 99)
    member = SharedPage(reading, False)
    assert (member.words[EPOCH], member.words[TOKEN]) == (3, 99)
    page.words[SEQUENCE] = 12345
    assert member.words[SEQUENCE] == 12345
    with pytest.raises(TypeError):
        member.words[SEQUENCE] = 1
    page.close()
    member.close()


def test_a_page_cannot_be_shortened_nor_lengthened() -> None:
    page, reading = make_page(1, 1)
    for size in (0, SIZE - 1, SIZE + 1):
        with pytest.raises(PermissionError):
            os.ftruncate(page.fd, size)
    page.close()
    close_descriptor(reading)


def test_what_could_be_shortened_is_no_page(tmp_path: Path) -> None:
    page, reading = make_page(1, 1)
    content = bytes(page.words)
    (tmp_path / "page").write_bytes(content)
    linux: Any = os
    unsealed = linux.memfd_create("page", linux.MFD_ALLOW_SEALING)
    linux.pwrite(unsealed, content, 0)
    on_disk = os.open(tmp_path / "page", os.O_RDONLY)
    for fd in (unsealed, on_disk):
        with pytest.raises(ValueError, match="not a page"):
            SharedPage(fd, False)
        assert find_page(os.getpid(), fd, 1) is None
        os.close(fd)
    page.close()
    close_descriptor(reading)


def test_a_slot_tells_of_a_request_only_when_all_is_noted() -> None:
    page, reading = make_page(1, 1)
    assert page.noted(5)[0] == 0
    page.note(5, 7, 100, 3)
    assert page.noted(5) == (7, 102)
    assert page.noted(4)[0] == page.noted(6)[0] == 0
    page.clear(5)
    assert page.noted(5)[0] == 0
    page.close()
    close_descriptor(reading)


def test_an_epoch_can_be_ended_by_whoever_has_the_page() -> None:
    page, reading = make_page(1, 1)
    member = SharedPage(reading, False)
    page.close()
    assert not member.superseded
    member.supersede()
    assert member.superseded
    member.close()


def test_a_page_is_found_through_a_process_that_has_it() -> None:
    page, reading = make_page(1, 42)
    found = find_page(os.getpid(), reading, 42)
    assert found is not None
    page.words[SEQUENCE] = 9
    assert found.words[SEQUENCE] == 9
    found.close()
    assert find_page(os.getpid(), reading, 43) is None
    assert find_page(os.getpid(), 12345, 42) is None
    assert find_page(2**22 + 1, reading, 42) is None
    with open(sys.executable, "rb") as other:
        assert find_page(os.getpid(), other.fileno(), 42) is None
    page.close()
    close_descriptor(reading)


def test_a_descriptor_that_is_no_page() -> None:
    fd = os.memfd_create("other")
    os.ftruncate(fd, SIZE)
    with pytest.raises(ValueError, match="not a page"):
        SharedPage(fd, False)
    os.ftruncate(fd, 10)
    with pytest.raises(ValueError, match="not a page"):
        SharedPage(fd, False)
    os.close(fd)
