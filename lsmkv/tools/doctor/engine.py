"""The installed engine: compiled or not and why, its codecs, and the packages that it uses.

``lsmkv --version`` prints a part of it, also where the packages for the command are not installed.
"""

from __future__ import annotations

import platform
import sysconfig
from collections.abc import Callable
from typing import NamedTuple

import lsmkv
from lsmkv.engine.env.installed import (
    Installation,
    Requirement,
    installation,
    requirements,
    version_of,
)
from lsmkv.engine.util.checksum import CRC32C_IMPLEMENTATION
from lsmkv.engine.util.compression import codec_named, compress, decompress

EXTRAS = ("tools", "server", "remote", "plot")
"""The extras that users install; the others are for working on lsmkv."""
CODECS = ("snappy", "zstd")
CODECS_PACKAGE = "cramjam"

_SAMPLE = b"a block of keys and values " * 40


class Advice(NamedTuple):
    """A shortcoming, and what to do about it."""

    what: str
    do: str


class Engine(NamedTuple):
    """The installation that runs here."""

    version: str
    compiled: bool
    pure: Advice | None
    """The reason for which the engine is not compiled, and a way to compile it."""
    python: str
    system: str
    codecs: dict[str, bool]
    """For each compression by name, True if it works."""
    crc32c: str
    """The package that computes checksums."""
    dependencies: dict[str, str | None]
    """The version of each package that is always needed; None if it is not there."""
    extras: dict[str, dict[str, str | None]]
    """The same for the packages of each extra."""


def engine() -> Engine:
    """Look at what is installed.  Takes some 50 ms, nearly all for the metadata of packages."""
    needed = requirements()
    return Engine(
        version=lsmkv.__version__,
        compiled=lsmkv.COMPILED,
        pure=None if lsmkv.COMPILED else why_pure(installation(), platform.python_implementation()),
        python=_python(),
        system=_system(),
        codecs={name: _works(name) for name in CODECS},
        crc32c=CRC32C_IMPLEMENTATION,
        dependencies=_versions(needed, ""),
        extras={extra: _versions(needed, extra) for extra in EXTRAS},
    )


def version_text() -> str:
    """The version, whether the engine is compiled, and what it runs on: three lines or four."""
    found = engine()
    lines = [
        f"lsmkv {found.version} ({'compiled' if found.compiled else 'pure Python'})",
        f"{found.python}, {found.system}",
        f"{_codecs_text(found)}; CRC-32C by {crc32c_text(found)}",
    ]
    if found.pure is not None:
        lines.append(f"not compiled: {found.pure.what}; 'lsmkv doctor' says more")
    return "\n".join(lines)


def why_pure(installed: Installation, implementation: str) -> Advice:
    """Return the reason for which an engine is not compiled, and a way to compile it."""
    if implementation != "CPython":
        return Advice(
            f"mypyc compiles for CPython, and this is {implementation}",
            "The compiled engine needs CPython.",
        )
    if installed.kind == "source":
        return Advice(
            "this is a source tree that is not installed",
            "To compile it, install a C compiler and run 'pip install .' in that tree.",
        )
    if installed.kind == "editable":
        return Advice(
            "an editable install runs the source as it is being edited",
            "To compile it, install a C compiler and run 'pip install .', without -e.",
        )
    return Advice(
        "it was built where no C compiler worked, or with LSMKV_MYPYC=0",
        "Install a C compiler and Python's headers. Then run, in lsmkv's checkout: LSMKV_MYPYC=1"
        " pip install --force-reinstall --no-deps . (it stops and says why if it cannot compile).",
    )


def crc32c_text(found: Engine) -> str:
    """The package that computes checksums, with its version unless it is lsmkv."""
    package = found.crc32c
    if package == "lsmkv":
        return package
    if package == "crcmod" and version_of("crcmod-plus") is not None:
        package = "crcmod-plus"
    return named(package, version_of(package))


def named(name: str, version: str | None) -> str:
    """A package with its version."""
    return name if version is None else f"{name} {version}"


def _codecs_text(found: Engine) -> str:
    working = [name for name, works in found.codecs.items() if works]
    package = named(CODECS_PACKAGE, version_of(CODECS_PACKAGE))
    return f"{' and '.join(working) or 'no compression'} by {package}"


def _python() -> str:
    threads = ", free-threaded" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    return f"{platform.python_implementation()} {platform.python_version()}{threads}"


def _system() -> str:
    """The system, its release and the processor; never the machine's name."""
    library = " ".join(platform.libc_ver())
    parts = [platform.system(), platform.release(), platform.machine(), library]
    return " ".join(part for part in parts if part.strip())


def _works(codec: str) -> bool:
    return not _fails(lambda: _try_codec(codec))


def _try_codec(codec: str) -> None:
    known = codec_named(codec)
    if decompress(compress(_SAMPLE, known), known & 0xFF) != _SAMPLE:
        raise ValueError(codec)


def _fails(call: Callable[[], None]) -> bool:
    try:
        call()
    except Exception:  # whatever a package that was built for another machine raises
        return True
    return False


def _versions(needed: list[Requirement], extra: str) -> dict[str, str | None]:
    return {one.name: one.version for one in needed if one.extra == extra}
