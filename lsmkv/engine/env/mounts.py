"""Finds out which file systems keep the space that a file has reserved, and which are of networks.

A store into a mapped page must never fail: if the file system has no space for it, SIGBUS ends the
process.  After ``posix_fallocate``, ext4, tmpfs, and XFS without reflinks always have that space.
Copy-on-write file systems (btrfs, ZFS, XFS with reflinks) may need new blocks even for reserved
ones.  Network and user-space file systems guarantee nothing.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

MOUNTS = "/proc/self/mountinfo"
_KEEPING = ("ext4", "tmpfs")
_OF_SEVERAL_MACHINES = frozenset(
    (
        "9p", "afs", "beegfs", "ceph", "ceph-fuse", "cifs", "coda", "gcsfuse", "gfs2", "glusterfs",
        "gpfs", "juicefs", "lustre", "nfs", "nfs4", "ocfs2", "orangefs", "pvfs2", "rclone", "s3fs",
        "smb2", "smb3", "smbfs", "sshfs",
    )
)  # fmt: skip
# struct xfs_fsop_geom_v1, 112 bytes, with its flags at 92 (source: Linux, ``libxfs/xfs_fs.h``).
_XFS_GEOMETRY = 0x80705864
_XFS_GEOMETRY_SIZE = 112
_XFS_FLAGS_AT = 92
_XFS_HAS_REFLINKS = 1 << 20


def keeps_reservations(descriptor: int) -> bool:
    """Return True if the file system of an open file or directory certainly keeps reserved space.

    False if that is unknown: on systems other than Linux, and for overlays.  Reads
    ``/proc/self/mountinfo``, which has a line per mount.
    """
    if sys.platform != "linux":
        return False
    try:
        kind = _type_of_device(os.fstat(descriptor).st_dev)
        return kind in _KEEPING or (kind == "xfs" and not _has_reflinks(descriptor))
    except OSError:
        return False


def shared_file_system_of(path: str) -> str:
    """The type of a path's file system if other machines may also have it mounted; else empty.

    A path that does not exist yet is in the file system of the directory above it.
    """
    while not os.path.exists(path) and path not in (os.curdir, os.path.dirname(path)):
        path = os.path.dirname(path) or os.curdir
    kind = file_system_of(path)
    return kind if kind.removeprefix("fuse.") in _OF_SEVERAL_MACHINES else ""


def file_system_of(path: str) -> str:
    """The type of the file system of a path; empty if it is unknown.

    If the device has no mount itself (a subvolume of btrfs), the deepest mount above it is
    used.
    """
    if sys.platform != "linux":
        return ""
    try:
        return _type_of_device(os.stat(path).st_dev) or _type_of_path(os.path.realpath(path))
    except OSError:
        return ""


def _type_of_device(device: int) -> str:
    """The type of the file system on a device; empty if no mount has it."""
    if sys.platform == "win32":
        raise NotImplementedError
    number = b"%d:%d" % (os.major(device), os.minor(device))
    for own, _, kind in _mounts():
        if own == number:
            return kind
    return ""


def _type_of_path(path: str) -> str:
    """The type of the deepest mount that contains a path without links; the later one of two."""
    inside = os.fsencode(path.rstrip(os.sep) + os.sep)
    deepest, kind = -1, ""
    for _, point, its_kind in _mounts():
        beginning = point.rstrip(b"/") + b"/"
        if inside.startswith(beginning) and len(beginning) >= deepest:
            deepest, kind = len(beginning), its_kind
    return kind


def _mounts() -> Iterator[tuple[bytes, bytes, str]]:
    """For each line of ``/proc/self/mountinfo``: the device's number, where it is mounted, and the
    type of the file system."""
    with open(MOUNTS, "rb") as mounts:
        for line in mounts:
            # 36 35 98:0 /root /mount/point options optional-fields... - type source options
            before, _, after = line.partition(b" - ")
            fields = before.split(b" ")
            if len(fields) > 5:
                kind = after.split(b" ", 1)[0].decode("ascii", "replace")
                yield fields[2], _unescaped(fields[4]), kind


def _unescaped(point: bytes) -> bytes:
    """A path whose spaces, tabs, line ends and backslashes were written in octal: ``\\040``."""
    first, *rest = point.split(b"\\")
    parts = [first]
    for part in rest:
        octal = part[:3]
        if len(octal) == 3 and octal.isdigit() and octal < b"400" and not octal.strip(b"01234567"):
            parts += bytes([int(octal, 8)]), part[3:]
        else:
            parts += b"\\", part
    return b"".join(parts)


def _has_reflinks(descriptor: int) -> bool:
    if sys.platform == "win32":
        raise NotImplementedError
    geometry = fcntl.ioctl(descriptor, _XFS_GEOMETRY, bytes(_XFS_GEOMETRY_SIZE))
    (flags,) = struct.unpack_from("=I", geometry, _XFS_FLAGS_AT)
    return bool(flags & _XFS_HAS_REFLINKS)
