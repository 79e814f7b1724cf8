"""What tests of ``lsmkv rescue`` share: folders as programs make them, with damaged stores."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import lsmkv

SMALL: dict[str, Any] = {"block_size": 512, "compression": None, "seek_compaction": False}


def make_store(path: Path, damaged: bool = True, **options: Any) -> dict[bytes, bytes]:
    """A store of 300 entries at a path whose parents are made too; returns what it contains."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {b"_https://a.org\0\1%04d" % n: b"\1value %d" % n for n in range(300)}
    with lsmkv.DB(path, create_if_missing=True, **SMALL, **options) as db:
        for key, value in content.items():
            db.put(key, value)
        db.flush()
    if damaged:
        (path / "CURRENT").unlink()
    return content


def make_foreign(path: Path) -> None:
    """A directory with the names that RocksDB gives to its files."""
    path.mkdir(parents=True)
    (path / "CURRENT").write_text("MANIFEST-000004\n")
    (path / "MANIFEST-000004").write_bytes(b"not for us" * 9)
    (path / "IDENTITY").write_text("x")
    (path / "OPTIONS-000007").write_text("x")
    (path / "000009.sst").write_bytes(b"rocks" * 99)


def make_world(folder: Path, name: str = "My World") -> dict[bytes, bytes]:
    """A world of Minecraft's Bedrock edition, whose store is damaged."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "levelname.txt").write_text(name, encoding="utf-8")
    (folder / "level.dat").write_bytes(b"\n\0\0\0")
    content = {b"~local_player": b"NBT " * 100} | {b"map_%d" % n: b"NBT " * 50 for n in range(50)}
    with lsmkv.DB(
        folder / "db", create_if_missing=True, compression="zlib-raw", block_size=512
    ) as db:
        for key, value in content.items():
            db.put(key, value)
        db.flush()
    (folder / "db" / "CURRENT").unlink()
    return content


def zipped(folder: Path, target: Path) -> Path:
    """A zip of all files below a folder."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, file.relative_to(folder))
    return target


def all_bytes(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, byte for byte."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }
