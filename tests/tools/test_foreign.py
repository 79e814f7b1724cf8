from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lsmkv.tools import foreign
from lsmkv.tools.foreign import NotRegularError, open_foreign

CONTENT = b"six legs"


@pytest.fixture(params=["descriptors", "paths"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways, where the system has both."""
    monkeypatch.setattr(
        foreign, "_BY_DESCRIPTOR", foreign._BY_DESCRIPTOR and request.param == "descriptors"
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "inside" / "deep").mkdir(parents=True)
    (tmp_path / "inside" / "deep" / "file").write_bytes(CONTENT)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_bytes(b"secret")
    return tmp_path / "inside"


def test_a_file_is_opened_by_the_names_of_its_directories(place: Path, tmp_path: Path) -> None:
    with open_foreign(str(place), "deep", "file", alone=True) as file:
        assert file.read() == CONTENT
    with open_foreign(str(place / "deep"), "file") as file:
        assert file.read() == CONTENT


@pytest.mark.parametrize("name", ["", ".", "..", "../outside", "deep/file", "a\0b"])
def test_other_names_are_refused(place: Path, name: str) -> None:
    for names in ([name], [name, "file"], ["deep", name]):
        with pytest.raises(NotRegularError, match="not a name in the directory"):
            open_foreign(str(place), *names)


def test_a_missing_file_is_named(place: Path) -> None:
    for names in (["gone"], ["gone", "file"]):
        with pytest.raises(FileNotFoundError) as raised:
            open_foreign(str(place), *names)
        assert raised.value.filename == os.path.join(place, *names)


LINKS: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "directory": lambda path: path.mkdir(),
    "link": lambda path: path.symlink_to(path.parent.parent / "outside" / "file"),
    "link inside": lambda path: path.symlink_to(path.parent / "deep" / "file"),
    "dangling": lambda path: path.symlink_to(path.parent / "gone"),
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.skipif(sys.platform == "win32", reason="needs FIFOs and links")
@pytest.mark.parametrize("kind", LINKS)
def test_what_is_no_regular_file_is_refused(place: Path, kind: str) -> None:
    LINKS[kind](place / "odd")
    with pytest.raises(NotRegularError) as raised:
        open_foreign(str(place), "odd")
    assert (raised.value.filename, raised.value.errno) == (str(place / "odd"), errno.EINVAL)


@pytest.mark.skipif(sys.platform == "win32", reason="needs links")
def test_a_directory_below_is_not_followed_but_the_one_given_is(place: Path) -> None:
    (place / "odd").symlink_to(place.parent / "outside")
    with pytest.raises(NotRegularError):
        open_foreign(str(place), "odd", "file")
    with open_foreign(str(place / "odd"), "file") as file:
        assert file.read() == b"secret"


def test_a_file_with_other_names_is_refused_where_it_must_be_alone(place: Path) -> None:
    os.link(place.parent / "outside" / "file", place / "hard")
    with pytest.raises(NotRegularError, match="hard links"):
        open_foreign(str(place), "hard", alone=True)
    with open_foreign(str(place), "hard") as file:
        assert file.read() == b"secret"


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors")
def test_no_descriptor_is_left(place: Path) -> None:
    os.mkfifo(place / "odd")
    before = len(os.listdir("/proc/self/fd"))
    for names in (["odd"], ["gone"], ["deep", "gone"], ["gone", "file"], ["odd", "x"]):
        with pytest.raises(OSError, match=r"not|No"):
            open_foreign(str(place), *names)
    open_foreign(str(place), "deep", "file").close()
    assert len(os.listdir("/proc/self/fd")) == before
