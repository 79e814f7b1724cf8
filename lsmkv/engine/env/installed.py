"""The installation: the distribution of this package, and its requirements.

A distribution of the same name may belong to another copy of the package; it is not used for this
one.  A source tree on the module path has no version, even if the package is installed as well.

``lsmkv.__version__`` is looked up here only when it is read: finding and reading the metadata takes
30 ms.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from importlib import metadata
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

NAME: Final = "lsmkv"
NOT_INSTALLED: Final = "0+not.installed"
"""The version of a source tree that is not installed; below every real one in PEP 440's order."""

Kind = Literal["wheel", "editable", "source"]
"""The kind of installation: normal, a link to a source tree, or none."""

PACKAGE: Final = os.path.realpath(os.path.join(os.path.dirname(__file__), os.pardir, os.pardir))
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_EXTRA = re.compile(r"""\bextra\s*==\s*["']([^"']+)["']""")


class Installation(NamedTuple):
    """The origin of the package."""

    kind: Kind
    version: str


class Requirement(NamedTuple):
    """A distribution that this one requires."""

    name: str
    extra: str
    """The extra that requires it; empty if it is always required."""
    version: str | None
    """The installed version; None if it is not installed."""


def installation() -> Installation:
    """Return how this package is installed, and its version."""
    found = _distribution()
    if found is None:
        return Installation("source", NOT_INSTALLED)
    kind: Kind = "editable" if _is_editable(found) else "wheel"
    return Installation(kind, found.version)


def requirements() -> list[Requirement]:
    """The requirements of the installed distribution, in order; none if it is not installed."""
    found = _distribution()
    return [] if found is None else list(_requirements(found.requires or []))


def version_of(name: str) -> str | None:
    """The version of an installed distribution; None if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _requirements(lines: list[str]) -> Iterator[Requirement]:
    """The requirements of a distribution, without those on its own extras."""
    for line in lines:
        name, extra = _REQUIREMENT.match(line), _EXTRA.search(line)
        if name is not None and name[1] != NAME:
            yield Requirement(name[1], "" if extra is None else extra[1], version_of(name[1]))


def _distribution() -> metadata.Distribution | None:
    """The distribution to which this copy of the package belongs."""
    for found in metadata.distributions(name=NAME):
        # What builds leave in a source tree (lsmkv.egg-info) has no WHEEL, and may be outdated.
        whole = found.read_text("WHEEL") is not None
        beside = os.path.realpath(str(found.locate_file(NAME))) == PACKAGE
        if whole and (beside or _is_editable(found)):
            return found
    return None


def _is_editable(found: metadata.Distribution) -> bool:
    """True if a distribution is a link to the source tree of this package (source: PEP 610)."""
    try:
        fields = json.loads(found.read_text("direct_url.json") or "{}")
        tree = unquote(urlsplit(str(fields["url"])).path)
        editable = fields["dir_info"]["editable"] is True
    except (ValueError, KeyError, TypeError):
        return False
    if os.name == "nt":
        tree = tree.lstrip("/")  # file:///C:/tree
    return editable and os.path.realpath(os.path.join(tree, NAME)) == PACKAGE


__version__: Final = installation().version
