"""The view of a compiled class in ``help``: its docstring, and the names and signatures of its
methods.

A public handle is an ordinary class even when mypyc compiles it (``native_class=False``), so that
users may subclass it and refer to it weakly.  But then its docstring is lost, and each method is
the only object of its own type.  That type has a docstring (``setup.py`` ensures it), but neither a
name nor a signature.  :func:`described` decorates each such class and adds what is missing.  The
docstring and the signatures are read from the source when they are first needed.  An interpreted
class is left as it is.

What a native class shows is compiled into it (also by ``setup.py``).  It has no annotations, since
the text signature of a builtin cannot hold any.

Fast paths: the types of the methods get hooks for attributes and ``repr``, but are called as
before, so a call costs no more.  Decorating all handles takes less than 0.4 ms.
"""

from __future__ import annotations

from typing import Any, TypeVar

from lsmkv.engine.util.search import IS_COMPILED

C = TypeVar("C", bound=type)


class ClassDoc:
    """Stands for the docstring of a compiled class until it is asked for."""

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def __get__(self, instance: Any, owner: Any) -> Any:
        """The docstring, whether the class or an instance is asked."""
        from lsmkv.engine.util.source import class_facts  # noqa: PLC0415 - for help alone

        return class_facts(self._module, self._name).doc


class MethodDoc:
    """The docstring of a method that differs from that of the method's type: ``help`` omits the
    docstring of an object if its type has the same.
    """

    def __init__(self, doc: Any) -> None:
        self._doc = doc

    def __get__(self, instance: Any, owner: Any) -> Any:
        """The docstring, when the method is asked."""
        return None if instance is None else self._doc


def described(cls: C) -> C:
    """Give a class its docstring, and its methods names and signatures, where compiling lost them.

    A decorator, for each public class that is not native.
    """
    if not IS_COMPILED:
        return cls

    # Nested, since other compiled functions do not bind to the object whose attribute they are.
    def attribute(method: Any, name: str) -> Any:
        kind = type(method)
        if name == "__name__":
            return kind.__name__
        if name == "__qualname__":
            return kind.__qualname__
        if name == "__objclass__":
            return cls
        if name == "__signature__":
            from lsmkv.engine.util.source import class_facts  # noqa: PLC0415 - for help alone

            facts = class_facts(cls.__module__, cls.__qualname__)
            signature = facts.signatures.get(kind.__name__)
            if signature is not None:
                return signature
        raise AttributeError(f"'function' object has no attribute {name!r}")

    def represent(method: Any) -> str:
        return f"<function {type(method).__qualname__} at {id(method):#x}>"

    whole: Any = cls
    whole.__doc__ = ClassDoc(cls.__module__, cls.__qualname__)
    suffix = f"_{cls.__name__}_obj"  # as mypyc names the type of a method
    for name, member in vars(cls).items():
        kind: Any = type(getattr(member, "__func__", member))  # within a static or class method
        if kind.__name__ == name + suffix:
            kind.__name__ = name
            kind.__qualname__ = f"{cls.__qualname__}.{name}"
            kind.__doc__ = MethodDoc(kind.__doc__ or None)
            kind.__getattr__ = attribute
            kind.__repr__ = represent
    return cls
