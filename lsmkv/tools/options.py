"""Declaration of a command's options: a line each, as the default of a parameter.

A parameter's name and type are those of the option; ``*names`` are given where the command line has
others.  An argument, and an option that has to be given, have no default: theirs is metadata of the
type, ``Annotated[str, argument("KEY", "The key.")]``.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import typer

T = TypeVar("T")


def flag(words: str, *names: str) -> bool:
    """An option that is given or not; ``words`` are its help."""
    return cast(bool, typer.Option(False, *names, help=words))


def option(default: T, metavar: str, words: str, *names: str, **more: Any) -> T:
    """An option with a value, which the help calls ``metavar``; ``more`` is as for ``typer``."""
    return cast(T, typer.Option(default, *names, metavar=metavar, help=words, **more))


def choice(default: T, words: str, *names: str, **more: Any) -> T:
    """An option whose values are those of its type, which the help lists."""
    return cast(T, typer.Option(default, *names, help=words, **more))


def argument(metavar: str, words: str, **more: Any) -> Any:
    """Metadata of an argument, for ``Annotated``; ``more`` is as for ``typer.Argument``."""
    return typer.Argument(metavar=metavar, help=words, **more)


def required(metavar: str, words: str, *names: str) -> Any:
    """Metadata of an option that has to be given, for ``Annotated``."""
    return typer.Option(*names, metavar=metavar, help=words)
