"""The choice of scripts that run, and where: the option ``--scripts``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final, NamedTuple, Self

_SHA: Final = re.compile(r"[0-9a-fA-F]{40}")


class ScriptChoice(NamedTuple):
    """The choice of scripts that run, and where."""

    name: str
    """``inline``, ``process``, ``off``, or ``list``."""
    allowed: frozenset[bytes] | None = None
    """The SHA-1 of the scripts that may run, in lower-case hexadecimal digits; None for all."""

    @classmethod
    def of(cls, given: str | Iterable[str] | None, host: str | None) -> Self:
        """The choice of a program, or without one the default of a server that listens on ``host``.

        Raises ``ValueError`` if it is neither a mode nor a list of SHA-1.
        """
        if given is None:
            return cls("inline" if is_local(host) else "process")
        if isinstance(given, str):
            if given not in ("inline", "process", "off"):
                raise ValueError(
                    f"scripts must be inline, process, off or a list of SHA-1, not {given!r}"
                )
            return cls(given, frozenset() if given == "off" else None)
        allowed = set()
        for sha in given:
            if not _SHA.fullmatch(sha):
                raise ValueError(f"{sha!r} is not a SHA-1 in 40 hexadecimal digits")
            allowed.add(sha.lower().encode())
        return cls("list", frozenset(allowed))


INLINE: Final = ScriptChoice("inline")


def is_local(host: str | None) -> bool:
    """True if an address is reachable only from this machine, or there is none.

    >>> is_local("127.0.0.1"), is_local("::1"), is_local("0.0.0.0"), is_local("example.org")
    (True, True, False, False)
    """
    if host is None or host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
