"""Builds a directory that appears complete or not at all: under a temporary name, then renamed.

Checkpoints and repairs use it.
"""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable

from lsmkv.engine.env.base import Directory, Env, RandomAccessFile
from lsmkv.engine.format.filenames import CURRENT, LOST, parse_filename

_COPY_CHUNK = 1024 * 1024
_CANNOT_LINK = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP)

_stagings = itertools.count()  # two threads may build a directory of the same name at once


def refuse_taken(env: Env, path: str) -> None:
    """Raise ``FileExistsError`` if ``path`` exists, whatever it is."""
    target = os.path.normpath(path)
    with env.open_directory(os.path.dirname(target) or ".") as parent:
        if parent.exists(os.path.basename(target)):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)


def build_directory(env: Env, path: str, purpose: str, build: Callable[[Directory], None]) -> None:
    """Make the directory ``path``, which must not exist; ``build`` fills it.

    ``build`` is called with a directory of a temporary name and makes its contents durable.  If it
    raises, the directory is removed.  Raises ``FileExistsError`` if ``path`` exists.
    """
    target = os.path.normpath(path)
    staging = f"{target}.{purpose}-{os.getpid()}-{next(_stagings)}"
    refuse_taken(env, path)
    with env.open_directory(os.path.dirname(target) or ".") as parent:
        if parent.exists(os.path.basename(staging)):
            remove_staging(env, staging)  # left by a process of the same number that died
    try:
        with env.open_directory(staging, create=True) as directory:
            build(directory)
        env.rename_directory(staging, target)
    except BaseException:
        remove_staging(env, staging)
        raise


def link_or_copy(source: Directory, name: str, target: Directory) -> None:
    """Add an immutable file to ``target`` by a hard link.

    Where no link can be made, for example to another file system, the file is copied durably; the
    copy appears complete or not at all.
    """
    try:
        source.link(name, target)
    except OSError as error:
        if error.errno not in _CANNOT_LINK:
            raise
        parsed = parse_filename(name)
        temporary = f"{0 if parsed is None else parsed[0]:06d}.dbtmp"
        if target.exists(temporary):
            target.remove(temporary)  # left by a process that died
        with source.open(name) as file:
            copy(file, target, temporary, file.size)
        target.rename(temporary, name)


def copy(file: RandomAccessFile, target: Directory, name: str, end: int) -> None:
    """Copy the first ``end`` bytes of ``file`` into a new file, durably."""
    with target.create(name) as output:
        for offset in range(0, end, _COPY_CHUNK):
            output.append(file.read(offset, min(_COPY_CHUNK, end - offset)))
        output.sync()


def remove_staging(env: Env, path: str) -> None:
    """Remove a directory that is not to be used, if it exists; files that cannot be removed are
    left."""
    try:
        with env.open_directory(path) as directory:
            if directory.exists(LOST):
                with directory.subdirectory(LOST) as lost:
                    for name in lost.names():
                        lost.remove(name)
                env.remove_directory(os.path.join(path, LOST))
            for name in directory.names():
                if parse_filename(name) is not None or name == CURRENT:
                    directory.remove(name)
        env.remove_directory(path)
    except OSError:
        pass
