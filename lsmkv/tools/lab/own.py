"""A custom filter policy, loaded from a Python file.

``lsmkv filter-lab`` and ``lsmkv inspect`` take it as ``--policy``.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Sequence
from typing import Any

from lsmkv import FilterPolicy
from lsmkv.engine.errors import Error
from lsmkv.tools.filter_lab import PolicyMaker

CREATE, ASK = "create_filter", "key_may_match"


class PolicyError(Error):
    """The user's policy failed."""


class OwnPolicy:
    """A policy that is not trusted: what it raises, and a filter that denies one of its own keys,
    is a :class:`PolicyError` that says so."""

    name: str = "lsmkv.filter-lab.own"

    def __init__(
        self, create: Callable[[list[bytes]], Any], ask: Callable[[bytes, bytes], Any]
    ) -> None:
        """``create`` makes the filter of some keys, and ``ask`` says whether it may have a key."""
        self._create = create
        self._ask = ask

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        """The filter; it has been asked for each of its keys."""
        made = _call(CREATE, self._create, list(keys))
        if not isinstance(made, bytes):
            raise PolicyError(f"your {CREATE} returned {type(made).__name__}, not bytes")
        for key in keys:
            if not self.key_may_match(key, made):
                raise PolicyError(
                    f"a false negative: your {ASK} says no to {key!r}, a key of the filter"
                )
        return made

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        """Return the custom code's answer."""
        return bool(_call(ASK, self._ask, key, filter_data))


def _call(name: str, function: Callable[..., Any], *arguments: object) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        raise PolicyError(f"your {name} raised {type(error).__name__}: {error}") from error


def load_policy(where: str) -> PolicyMaker:
    """Load a maker of filter policies from the code that ``where`` names.

    ``FILE.py`` has the functions ``create_filter(keys, bits_per_key)`` and ``key_may_match(key,
    filter_data)``, as lab 4 of the course has them.  ``FILE.py:NAME`` has a filter policy of this
    name, or what makes one of the bits a key, such as its class.  The file is run.  ``OSError`` if
    it cannot be read; ``ValueError`` if it fails, or has no such code.
    """
    path, colon, name = where.rpartition(":")
    if not colon or not path.endswith(".py"):
        path, name = where, ""
    with open(path, "rb"):
        pass  # for the plain error, with the file's name
    try:
        code = runpy.run_path(path, run_name="policy")
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"{path}: the file cannot be run: {reason}") from error
    if name:
        if name not in code:
            raise ValueError(f"{path} has no {name}")
        return _by_object(code[name], f"{name} of {path}")
    create, ask = code.get(CREATE), code.get(ASK)
    if not (callable(create) and callable(ask)):
        raise ValueError(
            f"{path} needs the functions {CREATE} and {ASK}, or name its policy: {path}:NAME"
        )
    return lambda bits: OwnPolicy(lambda keys: create(keys, _plain(bits)), ask)


def _by_object(own: Any, what: str) -> PolicyMaker:
    """By a policy, or what makes one."""

    def make(bits: float) -> FilterPolicy:
        is_maker = isinstance(own, type) or not hasattr(own, CREATE)
        policy = _call("policy", own, _plain(bits)) if is_maker else own
        if not (hasattr(policy, CREATE) and hasattr(policy, ASK)):
            raise ValueError(f"{what} is no filter policy: it has no {CREATE} and {ASK}")
        return OwnPolicy(policy.create_filter, policy.key_may_match)

    if not callable(own) and not hasattr(own, CREATE):
        raise ValueError(f"{what} is no filter policy")
    return make


def _plain(bits: float) -> float:
    """A whole number as an ``int``, as most write it."""
    return int(bits) if bits == int(bits) else bits
