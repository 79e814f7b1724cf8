"""Finds students' files: in a folder, below it, and under the names that downloads give them."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from typing import NamedTuple

from lsmkv.course.labs.registry import LABS
from lsmkv.tools.text import count

_COPY = re.compile(r"(?i)(?:[ _-]*\(\d+\)|[ _-]+copy(?:[ _-]*\(?\d+\)?)?|[ _-]+\d+)?\.py")
"""The end of a file's name, as browsers and desktops change it for a second copy."""


class Found(NamedTuple):
    """The files of a student."""

    files: dict[str, str]
    """The path of each lab's file, by the lab's own name of it."""
    warnings: list[str]
    """Remarks for the teacher on how they were found."""


def students(directory: str) -> list[str]:
    """The names of the folders in a directory, sorted, without hidden ones and ``__MACOSX``.

    Raises ``OSError`` if it cannot be read, or contains no folders.
    """
    with os.scandir(directory) as entries:
        names = sorted(e.name for e in entries if e.is_dir() and not _is_hidden(e.name))
    if not names:
        raise FileNotFoundError(errno.ENOENT, "it contains no folders of students", directory)
    return names


def loose_files(directory: str) -> list[str]:
    """The names of files of labs that are in no student's folder."""
    return sorted(name for name in os.listdir(directory) if lab_file_of(name) is not None)


def labs_beside(path: str) -> dict[str, str]:
    """The paths of the labs in the folder of a file, by the names of their modules."""
    folder = os.path.dirname(os.path.abspath(path))
    found = {lab.file_name: os.path.join(folder, lab.file_name) for lab in LABS}
    return modules({name: file for name, file in found.items() if os.path.isfile(file)})


def modules(files: dict[str, str]) -> dict[str, str]:
    """Paths by the names of modules, from those by the names of files."""
    return {name.removesuffix(".py"): path for name, path in files.items()}


def find_files(folder: str) -> Found:
    """The files of labs in a student's folder and below it.

    If there are several for a lab, the one with the lab's own name and the shortest way is taken.
    """
    candidates: dict[str, list[str]] = {}
    warnings: list[str] = []
    for path in _below(folder):
        base = os.path.basename(path)
        name = lab_file_of(base)
        if not stat.S_ISREG(os.lstat(path).st_mode):  # a FIFO would wait, and a link leads anywhere
            warnings.append(f"{_relative(path, folder)} is not a regular file")
        elif name is not None:
            candidates.setdefault(name, []).append(path)
        elif re.match(r"(?i)lab[ _-]?\d.*\.py\Z", base):
            warnings.append(f"{_relative(path, folder)} is not the name of a lab's file")
    files: dict[str, str] = {}
    for lab in LABS:
        paths = sorted(
            candidates.get(lab.file_name, ()),
            key=lambda path: (os.path.basename(path) != lab.file_name, path.count(os.sep), path),
        )
        if not paths:
            continue
        files[lab.file_name] = paths[0]
        if len(paths) > 1:
            warnings.append(
                f"lab {lab.number} has {count(len(paths), 'file')}; graded:"
                f" {_relative(paths[0], folder)}"
            )
        elif os.path.dirname(paths[0]) != folder or os.path.basename(paths[0]) != lab.file_name:
            warnings.append(f"lab {lab.number} was found as {_relative(paths[0], folder)}")
    return Found(files, warnings)


def lab_file_of(name: str) -> str | None:
    """The lab's own name of a file, if this is one of its copies.

    >>> lab_file_of("lab4_bloom (1).py"), lab_file_of("Lab4_Bloom - Copy.py")
    ('lab4_bloom.py', 'lab4_bloom.py')
    >>> lab_file_of("lab4_bloom_old.py")
    """
    for lab in LABS:
        stem = lab.file_name.removesuffix(".py")
        if name.lower().startswith(stem) and _COPY.fullmatch(name[len(stem) :]):
            return lab.file_name
    return None


def _below(folder: str) -> Iterator[str]:
    """The paths of all Python files in a folder and below it, sorted."""
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        yield from (os.path.join(path, name) for name in sorted(names) if name.endswith(".py"))


def _relative(path: str, folder: str) -> str:
    return os.path.relpath(path, folder).replace(os.sep, "/")


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "__"))
