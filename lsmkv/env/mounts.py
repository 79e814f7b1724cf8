"""Which file systems keep the room that a file has reserved.

A store into a mapped page must never fail: where the file system finds no room for it, the process
ends by SIGBUS.  After ``posix_fallocate`` ext4, tmpfs, and XFS without reflinks always have that
room.  Copy-on-write file systems (btrfs, ZFS, XFS with reflinks) may need new blocks even for
reserved ones, and network and user-space file systems promise nothing.
"""

from __future__ import annotations

import os
import struct
import sys

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

MOUNTS = "/proc/self/mountinfo"
_KEEPING = ("ext4", "tmpfs")
# struct xfs_fsop_geom_v1, 112 bytes, with its flags at 92 (source: Linux, ``libxfs/xfs_fs.h``).
_XFS_GEOMETRY = 0x80705864
_XFS_GEOMETRY_SIZE = 112
_XFS_FLAGS_AT = 92
_XFS_HAS_REFLINKS = 1 << 20


def keeps_reservations(descriptor: int) -> bool:
    """Whether the file system of an open file or directory is known to keep reserved room.

    False wherever it cannot be told: on systems other than Linux, and for overlays.  Reads
    ``/proc/self/mountinfo``, of one line a mount.
    """
    if sys.platform != "linux":
        return False
    try:
        kind = _file_system(os.fstat(descriptor).st_dev)
        return kind in _KEEPING or (kind == "xfs" and not _has_reflinks(descriptor))
    except OSError:
        return False


def _file_system(device: int) -> str:
    """The type of the file system on a device; empty if no mount has it."""
    if sys.platform == "win32":
        raise NotImplementedError
    number = b"%d:%d" % (os.major(device), os.minor(device))
    with open(MOUNTS, "rb") as mounts:
        for line in mounts:
            # 36 35 98:0 /root /mount/point options optional-fields... - type source options
            before, _, after = line.partition(b" - ")
            if before.split(b" ", 3)[2:3] == [number]:
                return after.split(b" ", 1)[0].decode("ascii", "replace")
    return ""


def _has_reflinks(descriptor: int) -> bool:
    if sys.platform == "win32":
        raise NotImplementedError
    geometry = fcntl.ioctl(descriptor, _XFS_GEOMETRY, bytes(_XFS_GEOMETRY_SIZE))
    (flags,) = struct.unpack_from("=I", geometry, _XFS_FLAGS_AT)
    return bool(flags & _XFS_HAS_REFLINKS)
