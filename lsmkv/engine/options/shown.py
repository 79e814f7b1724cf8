"""The view of the options in ``inspect.signature`` and ``help``, made from their declaration.

Type checkers and editors see the keywords of ``**options: Unpack[OptionArguments]`` by themselves;
this shows them to a running program.  ``inspect`` and the source are read only when they are
needed.
"""

from __future__ import annotations

from typing import Any

from lsmkv.engine.options.arguments import OPTIONS, OptionArguments, TableArguments


class KeywordSignature:
    """Is the ``__signature__`` of a class whose ``__init__`` takes ``**options``, one of the two
    records of keywords: it shows them with their types and defaults.

    A subclass with its own ``__init__`` shows the signature of that one.

    >>> import inspect, lsmkv
    >>> inspect.signature(lsmkv.DB).parameters["block_size"].default
    4096
    """

    def __init__(self, keywords: type) -> None:
        self._keywords = keywords

    def __get__(self, instance: Any, owner: type) -> Any:
        """The signature, when the class is asked."""
        import inspect  # noqa: PLC0415 - for help alone

        for cls in owner.__mro__:
            if vars(cls).get("__signature__") is self:
                break
            if "__init__" in vars(cls) or "__new__" in vars(cls):
                raise AttributeError("__signature__")
        own = inspect.signature(owner.__init__)  # type: ignore[misc]
        first = [
            parameter
            for parameter in list(own.parameters.values())[1:]
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        types = self._keywords.__annotations__
        keywords = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=option.default,
                annotation=types[name].__origin__,
            )
            for name, option in OPTIONS.items()
            if name in types
        ]
        return own.replace(parameters=[*first, *keywords])


class OptionsDoc:
    """Is the docstring of :class:`~lsmkv.Options`: its own, and what each keyword means."""

    def __init__(self, head: str) -> None:
        self._head = head

    def __get__(self, instance: Any, owner: Any) -> str:
        """The docstring, whether the class or an instance is asked."""
        from inspect import cleandoc  # noqa: PLC0415 - for help alone

        meanings = option_meanings()
        keywords = [
            f"``{name}``: {option.default!r}\n  " + meanings.get(name, "").replace("\n", "\n  ")
            for name, option in OPTIONS.items()
        ]
        return "\n\n".join([cleandoc(self._head), "The keywords, with their defaults:", *keywords])


def option_meanings() -> dict[str, str]:
    """Return the meaning of each option, from its declaration; empty where the source is not
    available."""
    from lsmkv.engine.util.source import field_docs  # noqa: PLC0415 - for help alone

    records = (OptionArguments, TableArguments)
    return {
        name: meaning
        for record in records
        for name, meaning in field_docs(record.__module__, record.__name__).items()
    }
