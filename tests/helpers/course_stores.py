"""What the tests of a student's store share: folders of labs, and a store that is put to work."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from labs import COURSE

from lsmkv.course.labs.registry import find
from lsmkv.course.store.parts import PARTS, part_named
from lsmkv.course.store.session import Session

KEYS = 160
"""How many are written."""


def folder_of_references(path: Path) -> Path:
    """All labs, done by their reference solutions."""
    path.mkdir()
    for file in sorted((COURSE / "references").glob("*.py")):
        shutil.copy(file, path)
    return path


def plant(folder: Path, lab: int, source: str) -> int:
    """Add functions to a lab's file, which replace those before; returns the number of its last
    line."""
    path = folder / find(str(lab)).file_name
    path.write_text(path.read_text() + "\n\n" + source)
    return len(path.read_text().splitlines())


@contextlib.contextmanager
def running(folder: Path, names: list[str] | None = None) -> Iterator[Session]:
    """A store with some parts, by default all."""
    chosen = PARTS if names is None else [part_named(name) for name in names]
    with Session(str(folder), str(folder / "store"), chosen, 60) as session:
        yield session


def value_of(number: int) -> str:
    return f"value {number} " + "." * (number % 90)


def work(session: Session) -> None:
    """Write, read, scan, flush, compact, kill and reopen; every answer must be right."""
    content = {f"key{number * 7 % KEYS:04d}": value_of(number) for number in range(KEYS)}
    pairs = list(content.items())
    session.ask("load", pairs=pairs[: KEYS // 2])
    session.ask("put", key="gone", value="1")
    session.ask("delete", key="gone")
    session.ask("flush")
    require(session, content | {key: None for key, _ in pairs[KEYS // 2 :]}, 60)
    session.ask("load", pairs=pairs[KEYS // 2 :])
    session.ask("delete", key="gone")
    require(session, content, 60)
    session.ask("flush")
    session.kill()
    session.reopen()
    session.ask("put", key="later", value="2")
    session.kill()
    session.reopen()
    content["later"] = "2"
    require(session, content, 60)
    session.ask("compact")
    require(session, content, 60)
    for reverse in (False, True):
        found = session.ask("scan", start="", stop=None, reverse=reverse, most=10_000)
        assert found == [list(one) for one in sorted(content.items(), reverse=reverse)]


def require(session: Session, content: dict[str, str | None], every: int) -> None:
    """Some Gets, of absent keys as well."""
    keys = [*list(content)[::every], "gone", "key0000x", "zoo"]
    assert session.ask("get_all", keys=keys) == [content.get(key) for key in keys]


def failed(folder: Path, part: str, source: str) -> str:
    """Let a part of the references fail while a store works; what was reported, in one line.

    The store must answer rightly all the same, and the part must be the only one that fails.
    """
    lab = part_named(part).lab
    plant(folder, lab, source)
    with running(folder, [part]) as session:
        work(session)
        assert session.aside == {part}
        assert session.used == []
        (failure,) = session.failures
    return f"{failure.what} {failure.place}"
